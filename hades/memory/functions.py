"""Memory by the names other tools already call: plain values in, plain JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hades.memory.history.names import MemoryRefused
from hades.memory.recall import graph_retrieval as graph
from hades.memory.recall.context import MAX_TOKENS
from hades.memory.recall.search import MemoryMatch, Window, plain_state
from hades.memory.service import Memory
from schemas.intervals import Mask


def search_memories(
    memory: Memory,
    query: str,
    time_window: Sequence[datetime | None] | None = None,
    limit: int | None = None,
    *,
    mask: Mask = Mask(),
) -> dict[str, Any]:
    """Topics near to a question, nearest first, each as it is now (D47)."""
    found = memory.search(query, _window(time_window), limit=limit, mask=mask)
    return find_as_dict(query, found)


def find_as_dict(query: str, found: Sequence[MemoryMatch]) -> dict[str, Any]:
    """What a search found, as JSON."""
    return {"query": query, "results": [one.as_dict() for one in found], "count": len(found)}


def graph_enhanced_retrieval(
    memory: Memory, query: str, depth: int = 2, *, matches: int = graph.MATCHES, mask: Mask = Mask()
) -> dict[str, Any]:
    """What a question finds, related states by edge strength, and three versions before (D48)."""
    return {
        "query": query,
        **memory.graph_enhanced_retrieval(query, depth, matches=matches, mask=mask).as_dict(),
    }


def query_at_time(memory: Memory, topic: str, timestamp: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """What was true of a topic then; `state` is None before the first version (D49)."""
    state = memory.at(topic, timestamp, known_at=known_at)
    return {"topic": topic, "state": None if state is None else plain_state(state)}


def retrieve_within_budget(
    memory: Memory, query: str, max_tokens: int = MAX_TOKENS, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The context for a question, and the tokens of each part (D50)."""
    return memory.retrieve_within_budget(query, max_tokens, mask=mask).as_dict()


def get_relevant_subgraph(
    memory: Memory, query_embedding: Sequence[float], max_nodes: int = 100, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The versions worth reading for a vector, ranked, then cut (D52)."""
    return memory.get_relevant_subgraph(query_embedding, max_nodes, mask=mask).as_dict()


def _window(window: Sequence[datetime | None] | None) -> Window | None:
    if window is None:
        return None
    if len(window) != 2:
        raise MemoryRefused(f"a time window has two ends, not {len(window)}; leave an open one None")
    return window[0], window[1]
