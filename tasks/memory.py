"""Memory as tasks: promoting, changing, asking and looking after it, from a flow or a served worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hades.memory import functions
from hades.memory.history.change import Fact
from hades.memory.recall.context import MAX_TOKENS
from hades.memory.service import Memory
from hades.settings import load_settings
from hades.wiring import open_memory
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryState
from tasks import artifacts, policies
from tasks.unit import unit


@unit("promote memory", policies.LOCAL)
def promote_memory(topic: str, reason: str, content: str | None = None, who: str = "flow") -> dict[str, Any]:
    """The next version of a topic, made of what is known of it."""
    with open_memory(load_settings()) as memory:
        done = memory.promote(topic, reason, content, who=who)
    return {"state": _state(done.state), "edges": [_edge(edge) for edge in done.edges], "act": done.act}


@unit("handle fact change", policies.LOCAL)
def handle_fact_change(
    old_state_id: str,
    change_description: str,
    facts: Sequence[Mapping[str, Any]] = (),
    content: str | None = None,
    who: str = "flow",
) -> dict[str, Any]:
    """A new version for a changed fact, the edges that ended and those that began, with reasons."""
    with open_memory(load_settings()) as memory:
        stated = [Fact(**fact) for fact in facts]
        done = memory.handle_fact_change(old_state_id, change_description, facts=stated, content=content, who=who)
    return {
        "new_state": _state(done.new_state),
        "previous_state_id": done.previous_state_id,
        "new_edges": [_edge(edge) for edge in done.new_edges],
        "obsolete_edges": [_edge(edge) for edge in done.obsolete_edges],
        "reasons": done.reasons,
        "act": done.act,
    }


@unit("find edge change", policies.LOCAL)
def find_edge_change(topic: str, from_rel: str, to_rel: str) -> dict[str, Any]:
    """When one relation of a topic gave way to another; `at` is None when it never did."""
    with open_memory(load_settings()) as memory:
        change = memory.find_edge_change(topic, from_rel, to_rel)
    if change is None:
        return {"at": None}
    return {"at": change.at.isoformat(), "ended": _edge(change.ended), "began": _edge(change.began)}


@unit("query at time", policies.LOCAL)
def query_at_time(topic: str, timestamp: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """What was true of a topic then, with the edges that held; `state` is None before the first version."""
    with open_memory(load_settings()) as memory:
        state = memory.query_at_time(topic, timestamp, known_at=known_at)
        edges = _edges_then(memory, topic, timestamp, known_at) if state else []
    return {"state": _state(state) if state else None, "edges": [_edge(edge) for edge in edges]}


@unit("search memories", policies.LOCAL)
def search_memories(
    query: str, time_window: Sequence[datetime | None] | None = None, limit: int | None = None
) -> dict[str, Any]:
    """Topics near to a question, each as it is now."""
    with open_memory(load_settings()) as memory:
        return functions.search_memories(memory, query, time_window, limit)


@unit("graph enhanced retrieval", policies.LOCAL)
def graph_enhanced_retrieval(query: str, depth: int = 2) -> dict[str, Any]:
    """What a question finds, with what true edges join to it."""
    with open_memory(load_settings()) as memory:
        return functions.graph_enhanced_retrieval(memory, query, depth)


@unit("retrieve within budget", policies.LOCAL)
def retrieve_within_budget(query: str, max_tokens: int = MAX_TOKENS) -> dict[str, Any]:
    """The context for a question that fits into so many tokens."""
    with open_memory(load_settings()) as memory:
        return functions.retrieve_within_budget(memory, query, max_tokens)


@unit("get relevant subgraph", policies.LOCAL)
def get_relevant_subgraph(query_embedding: Sequence[float], max_nodes: int = 100) -> dict[str, Any]:
    """The versions worth reading for a vector, ranked, then cut."""
    with open_memory(load_settings()) as memory:
        return functions.get_relevant_subgraph(memory, query_embedding, max_nodes)


@unit("consolidate memory", policies.HEAVY)
def consolidate(level: int, as_of: datetime | None) -> dict[str, Any]:
    """Summaries of the periods that are over, of a level and those below it."""
    with open_memory(load_settings()) as memory:
        levels = [one.as_dict() for one in memory.consolidate(level, as_of=_zoned(as_of), who="flow")]
    shown = [{**one, "written": len(one["written"])} for one in levels]
    artifacts.table("summaries", shown, "what consolidation wrote")
    return {"levels": shown}


@unit("place memory in tiers", policies.HEAVY)
def place_in_tiers(as_of: datetime | None) -> dict[str, Any]:
    """Give every version its storage tier by its strength."""
    with open_memory(load_settings()) as memory:
        return memory.refresh(as_of=_zoned(as_of)).as_dict()


@unit("check memory", policies.LOCAL)
def check_memory(write_out: bool = True) -> dict[str, Any]:
    """What is wrong with memory, for the nightly flow; the traces are written out for other tools."""
    with open_memory(load_settings()) as memory:
        return {"problems": memory.check(write_out=write_out), "topics": len(memory.topics())}


def _zoned(moment: datetime | None) -> datetime | None:
    """A moment without a zone is one of UTC, as in every flow."""
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _edges_then(memory: Memory, topic: str, timestamp: datetime, known_at: datetime | None) -> list[MemoryEdge]:
    return memory.edges(topic, mask=Mask(as_of=timestamp, known_at=known_at))


def _state(state: MemoryState) -> dict[str, Any]:
    return {"id": state.id, **state.model_dump(mode="json", exclude={"embedding", "key"})}


def _edge(edge: MemoryEdge) -> dict[str, Any]:
    return {"id": edge.id, **edge.model_dump(mode="json", exclude={"key"})}
