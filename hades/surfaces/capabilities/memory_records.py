"""Fields and reply parts that the capabilities of memory share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from hades.surfaces.capabilities.capability import OmittedSurface, Shell
from hades.surfaces.capabilities.fields import ID_CHARACTERS, Id, Moment

if TYPE_CHECKING:
    from hades.memory.service import Memory
    from schemas.memory import MemoryAudit, MemoryEdge, MemoryState

TOPIC_CHARACTERS = 500
Topic = Annotated[str, Field(min_length=1, max_length=TOPIC_CHARACTERS), Shell(metavar="TOPIC")]
TopicOrState = Annotated[
    str, Field(min_length=1, max_length=max(TOPIC_CHARACTERS, ID_CHARACTERS)), Shell(metavar="TOPIC_OR_STATE")
]
EdgeId = Annotated[Id, Shell(metavar="EDGE_ID")]
Relation = Annotated[str, Field(min_length=1, max_length=64), Shell(metavar="RELATION")]
ValidFrom = Annotated[Moment, Shell(metavar="TIME")]

TOPIC = "Topic; may hold slashes, for example design/approach_x."
TOPIC_OR_STATE = "A topic, or the id of one version."
VALID_FROM = "True from this time on, for example 2026-01-31; by default now."
VALID_UNTIL = "True until this time, exclusive; by default without end."
WHY = "Reason, kept in the audit."
AS_OF = "As it was true at this time, for example 2026-01-31."
KNOWN_AT = "As it was known at this time."

NO_TASK = OmittedSurface("a step of a conversation, not of a flow")
NO_TOOL = OmittedSurface("agents add, read and search memory; people curate it")


def state_document(state: MemoryState) -> dict[str, Any]:
    """A version as JSON, without its vector."""
    return {"id": state.id, **state.model_dump(mode="json", exclude={"embedding", "key"})}


def edge_documents(memory: Memory, edges: Iterable[MemoryEdge]) -> list[dict[str, Any]]:
    """Edges as JSON, each with the topics and versions that it joins."""
    listed = list(edges)
    ends = sorted({end for edge in listed for end in (edge.source, edge.target)})
    names = {state.key: f"{state.topic} v{state.version}" for state in memory.states(ends)}
    return [
        {
            "id": edge.id,
            "revision": edge.revision,
            "source_state_id": edge.source_state_id,
            "target_state_id": edge.target_state_id,
            "source_topic": names.get(edge.source.rpartition("/")[2], edge.source),
            "target_topic": names.get(edge.target.rpartition("/")[2], edge.target),
            **edge.model_dump(mode="json", exclude={"key", "source", "target"}),
        }
        for edge in listed
    ]


def edge_document(memory: Memory, edge: MemoryEdge) -> dict[str, Any]:
    """One edge as JSON."""
    return edge_documents(memory, [edge])[0]


def act_document(act: MemoryAudit | None) -> dict[str, Any] | None:
    """One step of an act as JSON."""
    return None if act is None else {"id": act.key, **act.model_dump(mode="json", exclude={"key"})}


def plain(value: Any) -> Any:
    """A record or report as JSON values, without vectors."""
    if isinstance(value, BaseModel):
        named = {"id": getattr(value, "id", None)} if hasattr(value, "id") else {}
        return {**named, **value.model_dump(mode="json", exclude={"embedding", "key"})}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value
