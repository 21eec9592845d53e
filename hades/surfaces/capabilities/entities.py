"""Corrections of entities: make one, list them, approve one, undo one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Mcp, OmittedSurface, Request, Rest, Shell
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import FreeForm, Id, Reason, Share, read_pairs

EntityId = Annotated[Id, Shell(metavar="ENTITY_ID")]
EditId = Annotated[Id, Shell(metavar="EDIT_ID")]
_WHY = "Reason, for whoever reads the list of edits."
_EDIT_ID = "Id of the edit, as `hades entity edits` lists it."


def read_fields(pairs: Sequence[str]) -> dict[str, Any]:
    """FIELD=VALUE pairs of the command line."""
    return read_pairs(pairs)


class UpdateEntityRequest(Request):
    """Correct what the graph says about an entity. The edit is idempotent, survives rebuilds and can be undone.

    A change of identity of a much connected entity, or against another person's edit, waits for a second approval.
    Questions see it after the next publish.
    """

    entity_id: EntityId = Field(description="Id of the entity, as paths show it.", examples=["entities/ada_lovelace"])
    fields: Annotated[
        FreeForm,
        Shell(flags=("--set",), metavar="FIELD=VALUE", read=read_fields, is_list=True,
              help="name, aliases, summary, type or domain; JSON or plain text; may be repeated."),
    ] = Field(
        max_length=8,
        description="What to change: name, aliases (replaces the list), summary, type (concept, method or person), "
        "domain.",
        examples=[{"summary": "a British mathematician"}, {"name": "Ada King", "aliases": ["Ada Lovelace"]}],
    )  # fmt: skip
    why: Reason = Field("", description=_WHY)
    confidence: Share = Field(1.0, description="Confidence, 0 to 1; an uncertain edit waits for approval.")


class EditsRequest(Request):
    """List corrections, oldest first: who made them, who approved them, and which wait."""

    entity: Annotated[Id, Shell(metavar="[ENTITY_ID]")] | None = Field(
        None, description="Only corrections of this entity."
    )
    state: Literal["pending", "applied", "undone"] | None = Field(None, description="Only corrections in this state.")


class ApproveRequest(Request):
    """Approve another person's correction; it applies once enough people have."""

    edit_id: EditId = Field(description=_EDIT_ID)


class UndoEditRequest(Request):
    """Undo a correction; the documents, or an older correction, count again."""

    edit_id: EditId = Field(description=_EDIT_ID)
    why: Reason = Field("", description=_WHY)


def update(request: UpdateEntityRequest, context: CallContext) -> dict[str, Any]:
    """Make the edit."""
    from hades.curation.apply import update_entity
    from hades.ports.clock import utc_now

    return update_entity(
        context.writable,
        request.entity_id,
        request.fields,
        who=context.who,
        why=request.why,
        at=utc_now(),
        confidence=request.confidence,
        embedder=context.embedder,
    ).as_dict()


def edits(request: EditsRequest, context: CallContext) -> dict[str, Any]:
    """The edits as records."""
    from hades.curation.edits import list_edits
    from schemas.curation import EditState

    state = None if request.state is None else EditState(request.state)
    found = list_edits(context.readable, entity_id=request.entity, state=state)
    return {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in found]}


def approve(request: ApproveRequest, context: CallContext) -> dict[str, Any]:
    """Add the approval."""
    from hades.curation.review import approve as approve_edit
    from hades.ports.clock import utc_now

    report = approve_edit(context.writable, request.edit_id, who=context.who, at=utc_now(), embedder=context.embedder)
    return report.as_dict()


def undo(request: UndoEditRequest, context: CallContext) -> dict[str, Any]:
    """Reverse the edit."""
    from hades.curation.undo import undo as undo_edit
    from hades.ports.clock import utc_now

    report = undo_edit(
        context.writable, request.edit_id, who=context.who, why=request.why, at=utc_now(), embedder=context.embedder
    )
    return report.as_dict()


_VIEW = "hades.surfaces.cli.entity_views:show_edit"
_NO_TOOL = OmittedSurface("an agent proposes an edit; people list, approve and undo edits")
_NO_TASK = OmittedSurface("corrections are made by people and agents, not by flows")
ENTITY_CAPABILITIES = (
    Capability(
        "entity.edits", "ro", EditsRequest, edits,
        cli=Cli(("entity", "edits"), ("entity",), "hades.surfaces.cli.entity_views:show_edits"),
        rest=Rest("GET", "/entities/edits", "entities", "Corrections"), mcp=_NO_TOOL, task=_NO_TASK,
    ),
    Capability(
        "entity.approve", "rw", ApproveRequest, approve,
        cli=Cli(("entity", "approve"), ("edit_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/edits/{edit_id}/approve", "entities", "Approve a correction"),
        mcp=_NO_TOOL, task=_NO_TASK,
    ),
    Capability(
        "entity.undo", "rw", UndoEditRequest, undo,
        cli=Cli(("entity", "undo"), ("edit_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/edits/{edit_id}/undo", "entities", "Undo a correction"),
        mcp=_NO_TOOL, task=_NO_TASK,
    ),
    Capability(
        "entity.update", "rw", UpdateEntityRequest, update,
        cli=Cli(("entity", "update"), ("entity_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/{entity_id}", "entities", "Correct an entity", examples=(
            {"fields": {"summary": "runs callbacks, one at a time"}, "why": "was empty"},)),
        mcp=Mcp("graph_entity_update", "Correct an entity", "hades.surfaces.mcp.replies:EntityEditReply"),
        task=_NO_TASK,
    ),
)  # fmt: skip
