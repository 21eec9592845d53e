"""Correcting entities by hand: the same twice is once, what many relations lean on waits for a second party."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field

from hades.curation.apply import update_entity
from hades.curation.edits import EditReport, list_edits
from hades.curation.review import approve
from hades.curation.undo import undo
from hades.ports.clock import utc_now
from hades.ports.store import GraphStore
from hades.surfaces.rest.services import CalledBy, Served, Services
from hades.surfaces.rest.shapes import ID_CHARACTERS, FreeForm, Id, Sent
from schemas.curation import EditState

reading = APIRouter(tags=["entities"])
writing = APIRouter(tags=["entities"])

EditId = Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS)]
Why = Annotated[str, Field(max_length=500)]


class EntityBody(Sent):
    """What should stand in an entity, and why."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"fields": {"summary": "runs callbacks, one at a time"}, "why": "was empty"}]}
    )

    fields: FreeForm = Field(description="name, aliases, summary, type or domain", max_length=8)
    why: Why = ""
    confidence: float = Field(1.0, ge=0.0, le=1.0, description="how sure; an unsure edit waits")


class WhyBody(Sent):
    """Why something is done."""

    why: Why = ""


@reading.get("/entities/edits", summary="Corrections")
async def edits(
    services: Served,
    entity: Annotated[Id | None, Query(description="only those of this entity")] = None,
    state: Literal["pending", "applied", "undone"] | None = None,
) -> dict[str, Any]:
    """Who said what, who agreed, what waits; oldest first."""
    wanted = None if state is None else EditState(state)
    found = await services.work(list_edits, services.readable, entity_id=entity, state=wanted)
    return {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in found]}


@writing.post("/entities/edits/{edit_id}/approve", summary="Agree to a correction")
async def agree(edit_id: EditId, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Stand behind somebody else's correction; it applies once enough parties do."""
    embedder = services.answers.tools.embedder
    return await _changed(
        services, lambda store: approve(store, edit_id, who=caller.name, at=utc_now(), embedder=embedder)
    )


@writing.post("/entities/edits/{edit_id}/undo", summary="Take a correction back")
async def take_back(edit_id: EditId, body: WhyBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """What the documents say, or an older correction, counts again."""
    embedder = services.answers.tools.embedder
    return await _changed(
        services, lambda store: undo(store, edit_id, who=caller.name, why=body.why, at=utc_now(), embedder=embedder)
    )


@writing.post("/entities/{entity}", summary="Correct an entity")
async def update(
    entity: Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS, description="key of the entity")],
    body: EntityBody,
    services: Served,
    caller: CalledBy,
) -> dict[str, Any]:
    """Idempotent. A safe change applies at once, any other waits; questions see it after the next publish."""
    embedder = services.answers.tools.embedder
    return await _changed(
        services,
        lambda store: update_entity(
            store,
            entity,
            body.fields,
            who=caller.name,
            why=body.why,
            at=utc_now(),
            confidence=body.confidence,
            embedder=embedder,
        ),
    )


async def _changed(services: Services, change: Callable[[GraphStore], EditReport]) -> dict[str, Any]:
    assert services.writable is not None
    report = await services.change(change, services.writable)
    return report.as_dict()
