"""Replies: results of the tools of agents, where a field that does not apply is left out, and
records of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from hades.memory.history.rows import UnknownMemory
from hades.memory.memory import Memory
from schemas.answer import Path, PathEdge
from schemas.memory import MemoryEdge


class ToolReply(BaseModel):
    """What every tool returns: whether the call succeeded, and if not, why and what to do."""

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
        serialize_by_alias=True,
    )

    success: bool = Field(description="whether the call succeeded")
    error: str | None = Field(None, description="what failed, and what to do")


class TurnReply(ToolReply):
    """What every tool that answers a question returns beside its results."""

    query: str | None = Field(None, description="the question as it was asked")
    count: int | None = Field(
        None,
        description="how many results; none at all is a success",
    )
    reasons: list[str] | None = Field(
        None,
        description="what cut the turn: codes of docs/reference/settings.md",
    )
    query_id: str | None = Field(
        None,
        description="for `hades explain` and `hades feedback`",
    )
    snapshot: str | None = Field(None, description="the published graph that answered")


class EdgeDocument(PathEdge):
    """An edge, with its ends also as `_from` and `_to`."""

    model_config = ConfigDict(extra="allow")


class PathDocument(Path):
    """A path, also by the field names of specification 000: `vertices`, `edge_weights`,
    `path_length`, ...
    """

    model_config = ConfigDict(extra="allow")
    edges: tuple[EdgeDocument, ...]


class PathsReply(TurnReply):
    """Of `pathrag_retrieve`; with `format_for_llm` only `success` and `formatted_prompt`."""

    paths: list[PathDocument] | None = Field(
        None,
        description="best first, with text, nodes, edges and sources",
    )
    pruned_from: int | None = Field(
        None,
        description="how many paths were found before the best were chosen",
    )
    reason: str | None = Field(None, description="`no_paths` when there is none")
    tier: str | None = Field(
        None,
        description="which tier of the cache gave the answer; RAID5 is the graph itself",
    )
    formatted_prompt: str | None = Field(
        None,
        description="what a language model is told, within the token budget",
    )


class ExplanationReply(ToolReply):
    """Of `hades_explain`."""

    query_id: str | None = Field(None, description="the answer that is explained")
    query: str | None = Field(None, description="its question")
    recipe: str | None = Field(None, description="the recipe that answered")
    snapshot: str | None = Field(None, description="the published graph that answered")
    at: str | None = Field(None, description="when it was asked")
    paths: list[dict[str, Any]] | None = Field(
        None,
        description="the paths, each with why it was kept",
    )
    reasons: dict[str, str] | None = Field(
        None,
        description="what cut the turn, and what that means",
    )
    missing: dict[str, Any] | None = Field(
        None,
        description="why a node was not reached, where one was named",
    )
    sources: list[dict[str, Any]] | None = Field(
        None,
        description="the passages: `needed` is the share of support that is lost without one",
    )
    without: dict[str, Any] | None = Field(
        None,
        description="what the turn says without a source, where one was named",
    )


class RetrievalResult(BaseModel):
    """One passage."""

    chunk_id: str = Field(description="id of the passage")
    text: str = Field(description="its text")
    score: float = Field(description="comparable within one answer")
    rank: int = Field(description="1 is best")
    entities: list[str] = Field(
        description="names of the entities it mentions, most important first"
    )
    metadata: dict[str, Any] = Field(
        description="document, title, headings, path of its file (also as file_path), span, "
        "timestamp (the document's date, null where it has none), and what found it"
    )


class PassagesReply(TurnReply):
    """Of `hipporag_retrieve`."""

    results: list[RetrievalResult] | None = Field(None, description="best first")


class Citation(BaseModel):
    """Where one edge of a path was read."""

    edge: str = Field(description="id of the edge")
    doc: str = Field(
        description="id of the document, as it came in; empty for an edge that was measured, not "
        "read"
    )
    span: tuple[int, int] | None = Field(description="characters of it")


class PathString(BaseModel):
    """A path for a person and for a citation."""

    rank: int
    score: float
    text: str = Field(description="A --[relation; snippet]--> B")
    nodes: list[str] = Field(description="ids of its nodes, in order")
    citations: list[Citation] = Field(description="one for each edge, in order")


class PathStringsReply(TurnReply):
    """Of `graph_query_paths`."""

    paths: list[PathString] | None = Field(None, description="cheapest first")


class EntityEditReply(ToolReply):
    """Of `graph_entity_update`."""

    edit: str | None = Field(
        None,
        description="id of the edit, for `hades entity undo`; empty when nothing changed",
    )
    entity: str | None = Field(None, description="id of the entity")
    state: str | None = Field(
        None,
        description="applied, or pending until a second person approves",
    )
    changed: bool | None = Field(None, description="whether this call changed anything")
    fields: dict[str, Any] | None = Field(None, description="what was changed")
    before: dict[str, Any] | None = Field(None, description="what those fields said")
    needs: list[str] | None = Field(None, description="why another person must approve")
    approvals_missing: int | None = Field(None, description="how many approvals are missing")
    note: str | None = Field(None, description="when questions see it")


class MemoryVersion(BaseModel):
    """One version of what is known about a topic."""

    id: str = Field(description="id of the version")
    topic: str
    content: str
    version: int = Field(description="1 is the first")
    timestamp: datetime = Field(description="when it was said")
    valid_from: datetime | None = Field(description="since when it holds")
    valid_until: datetime | None = Field(description="until when it held; null: it still does")
    tags: list[str]
    confidence: float
    metadata: dict[str, Any]


class MemoryStateReply(ToolReply):
    """Of `memory_add`, `memory_latest` and `memory_at`; without a state nothing is known."""

    topic: str | None = Field(None, description="the topic asked for")
    state: MemoryVersion | None = Field(None, description="null: nothing is or was known")


class MemorySearchHit(BaseModel):
    """A state and how near it is to what was asked."""

    score: float = Field(
        description="similarity, comparable within one answer",
        validation_alias=AliasChoices("score", "similarity"),
    )
    state: MemoryVersion


class MemorySearchReply(ToolReply):
    """Of `memory_search`."""

    query: str | None = Field(None, description="what was searched for")
    results: list[MemorySearchHit] | None = Field(
        None,
        description="newest version of each topic, nearest first",
    )
    count: int | None = Field(None, description="how many")


class MemoryRecallReply(ToolReply):
    """Of `memory_recall`."""

    query: str | None = Field(None, description="what was asked")
    text: str | None = Field(None, description="the contexts of all passes")
    intent: str | None = Field(None, description="what kind of question it is")
    steps: list[str] | None = Field(None, description="what was looked for")
    missing: list[str] | None = Field(None, description="steps that found nothing")
    grounded: bool | None = Field(
        None,
        description="whether there is something to answer from",
    )


class MemoryErasureReply(ToolReply):
    """Of `memory_erase`: the certificate that the command prints."""

    model_config = ConfigDict(
        extra="allow",
        populate_by_name=True,
        serialize_by_alias=True,
    )

    complete: bool | None = Field(
        None,
        description="whether no row, file or byte of it is left",
    )
    commands: list[str] | None = Field(None, description="commands that remove what is left")


def edge_documents(
    memory: Memory,
    edges: Iterable[MemoryEdge],
) -> list[dict[str, Any]]:
    """Edges as JSON, each with the topics and versions that it joins."""
    edges = list(edges)
    ends = {edge.source for edge in edges} | {edge.target for edge in edges}
    states = memory.states(sorted(ends))

    names = {}
    for state in states:
        names[state.key] = f"{state.topic} v{state.version}"

    return [_edge_document(edge, names) for edge in edges]


def _edge_document(edge: MemoryEdge, names: Mapping[str, str]) -> dict[str, Any]:
    """An edge as JSON; `names` are those of the states by key."""
    return {
        "id": edge.id,
        "revision": edge.revision,
        "source_state_id": edge.source_state_id,
        "target_state_id": edge.target_state_id,
        "source_topic": names.get(edge.source.rpartition("/")[2], edge.source),
        "target_topic": names.get(edge.target.rpartition("/")[2], edge.target),
        **edge.model_dump(
            mode="json",
            exclude={"key", "source", "target"},
        ),
    }


def unknown_topic(topic: str) -> UnknownMemory:
    """The error of a topic that memory does not hold."""
    return UnknownMemory(f"memory holds no topic {topic!r}; `hades memory topics` lists the topics")
