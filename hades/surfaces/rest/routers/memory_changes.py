"""Memory, written: new versions, edges, promotion, change, facts; and, for administrators, erasure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from hades.memory.history.change import Fact
from hades.memory.history.names import MAX_TOPIC
from hades.memory.service import Memory
from hades.surfaces.rest.plain import shown
from hades.surfaces.rest.routers.memory import Topic
from hades.surfaces.rest.services import CalledBy, Served, Services
from hades.surfaces.rest.shapes import ID_CHARACTERS, FreeForm, Id, Moment, Sent
from hades.wiring import open_language_model
from schemas.memory import MemoryEdgeKind

writing = APIRouter(prefix="/memory", tags=["memory"])
erasing = APIRouter(prefix="/memory", tags=["memory"])

EdgeId = Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS)]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Text = Annotated[str, Field(max_length=500)]
Content = Annotated[str, Field(min_length=1, max_length=100_000)]


class StateBody(Sent):
    """Something new about a topic."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"topic": "design/approach_x", "content": "Approach X needs a second index.", "tags": ["design"]}
            ]
        }
    )

    topic: str = Field(min_length=1, max_length=MAX_TOPIC)
    content: Content
    tags: tuple[Annotated[str, Field(max_length=100)], ...] = Field((), max_length=64)
    confidence: Unit = 1.0
    metadata: FreeForm = Field(default_factory=dict, max_length=64)
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    importance: Unit | None = None
    why: Text = ""


class LinkBody(Sent):
    """An edge between two topics or states."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"source": "design/approach_x", "target": "design/index", "relation": "blocked_by"}]
        }
    )

    source: Id = Field(description="a topic, which stands for its newest version, or a state's id")
    target: Id
    relation: str = Field(min_length=1, max_length=64, description="for example blocked_by")
    kind: MemoryEdgeKind | None = None
    strength: Unit = 1.0
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    description: Text = ""
    bidirectional: bool = False
    metadata: FreeForm = Field(default_factory=dict, max_length=64)
    why: Text = ""


class CloseBody(Sent):
    """When an edge stopped being true, and what took its place."""

    at: Moment | None = Field(None, description="left out: now")
    superseded_by: Id | None = None
    why: Text = ""


class PromoteBody(Sent):
    """Why a topic gets its next version; without content it is made of what is known."""

    reason: Annotated[str, Field(min_length=1, max_length=500)]
    content: Content | None = None


class FactPart(Sent):
    """What is true now of the changed topic."""

    relation: str = Field(min_length=1, max_length=64)
    target: Id
    replaces: Id | None = Field(None, description="the edge it takes the place of, by id or by relation")
    description: Text = ""
    strength: Unit = 1.0


class ChangeBody(Sent):
    """A fact that changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "old_state_id": "design/approach_x",
                    "change_description": "The index was built, X works now.",
                    "facts": [{"relation": "enabled_by", "target": "design/index", "replaces": "blocked_by"}],
                }
            ]
        }
    )

    old_state_id: Id = Field(description="a state's id, or a topic")
    change_description: Annotated[str, Field(min_length=1, max_length=4000)]
    facts: tuple[FactPart, ...] = Field((), max_length=64)
    content: Content | None = None
    at: Moment | None = Field(None, description="when it became so; left out: now")


class AssertBody(Sent):
    """A fact to believe: where it excludes another, a rule decides and a record says how."""

    subject: Id
    relation: str = Field(min_length=1, max_length=64)
    object_: Id = Field(alias="object")
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    confidence: Unit = 1.0
    source: Text = ""
    functional: bool | None = Field(None, description="whether it holds of one object at a time")
    description: Text = ""
    why: Text = ""


class ResolveBody(Sent):
    """Which of two facts is kept."""

    keep: Literal["new", "old"]
    why: Text = ""


class UndoBody(Sent):
    """Why an act is taken back."""

    why: Text = ""


class EraseBody(Sent):
    """What is erased for good: states by id, whole topics by name."""

    names: tuple[Id, ...] = Field(min_length=1, max_length=1000)
    why: Annotated[str, Field(min_length=1, max_length=500)]


@writing.post("/states", summary="Say something new about a topic", status_code=201)
async def add(body: StateBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Its next version."""
    return shown(await services.change(_memory(services).add, **given(body), who=caller.name))


@writing.post("/links", summary="Join two topics", status_code=201)
async def link(body: LinkBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """An edge between their newest versions, or between states that are named."""
    return shown(await services.change(_memory(services).link, **given(body), who=caller.name))


@writing.post("/links/{edge_id}/close", summary="End an edge")
async def close(edge_id: EdgeId, body: CloseBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """It stays in the history; from then on it is not true."""
    return shown(await services.change(_memory(services).close, edge_id, **given(body), who=caller.name))


@writing.post("/{topic:path}/promote", summary="Make the next version of a topic", status_code=201)
async def promote(topic: Topic, body: PromoteBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Out of the newest version, its history and its neighbours; or with the content given."""
    made = await services.change(_memory(services).promote, topic, body.reason, body.content, who=caller.name)
    return shown(made)


@writing.post("/change", summary="Say that a fact changed", status_code=201)
async def change(body: ChangeBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """A new version; edges that it makes untrue end, the stated facts are drawn, reasons say why."""
    facts = [Fact(**fact.model_dump()) for fact in body.facts]
    done = await services.change(
        _memory(services).change,
        body.old_state_id,
        body.change_description,
        facts=facts,
        content=body.content,
        at=body.at,
        who=caller.name,
    )
    return shown(done)


@writing.post("/facts", summary="Believe a fact", status_code=201)
async def believe(body: AssertBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Conflicts with what was believed are decided by rule, or left for a person."""
    return shown(await services.change(_memory(services).assert_fact, **given(body), who=caller.name))


@writing.post("/conflicts/{conflict_id}/resolve", summary="Decide a conflict")
async def resolve(conflict_id: EdgeId, body: ResolveBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Keep the new or the old fact."""
    return shown(
        await services.change(_memory(services).resolve, conflict_id, body.keep, who=caller.name, why=body.why)
    )


@writing.post("/acts/{act_id}/undo", summary="Take back an act")
async def undo(act_id: EdgeId, body: UndoBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """By new beliefs and new versions; what was said stays in the history."""
    return shown(await services.change(_memory(services).undo, act_id, who=caller.name, why=body.why))


@erasing.post("/erase", summary="Erase for good")
async def erase(body: EraseBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """States and topics with all that was made of them; returns a certificate that says what is left."""
    done = await services.change(_memory(services).erase, list(body.names), who=caller.name, why=body.why)
    return done.as_dict()


def given(body: Sent) -> dict[str, Any]:
    """The fields of a body by name."""
    return {name: getattr(body, name) for name in type(body).model_fields}


def _memory(services: Services) -> Memory:
    assert services.writable is not None
    return Memory(
        services.writable,
        services.answers.tools.embedder,
        language_model=open_language_model(services.settings),
    )
