"""Memory as tasks: promoting, changing, searching and maintaining it, from a flow or a served worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hades.compat import functions
from hades.memory.recall.context import MAX_TOKENS
from hades.settings.load import load_settings
from hades.surfaces.capabilities.memory_recall import consolidate as CONSOLIDATE
from hades.surfaces.capabilities.memory_recall import learn as LEARN
from hades.surfaces.capabilities.memory_states import at, at_or_null, change, check, promote, when
from hades.wiring import open_memory
from tasks import artifacts, policies
from tasks.retrieval import capability_task, perform
from tasks.unit import unit

promote_memory = capability_task(promote, policies.LOCAL)
handle_fact_change = capability_task(change, policies.LOCAL)
find_edge_change = capability_task(when, policies.LOCAL)
check_memory = capability_task(check, policies.LOCAL)


@unit(at.task, policies.LOCAL)
def query_at_time(topic: str, timestamp: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """What was true of a topic at a time, with the edges that held; `state` is None before the first version."""
    with open_memory(load_settings()) as memory:
        return at_or_null(memory, topic, timestamp, known_at)


@unit("search memories", policies.LOCAL)
def search_memories(
    query: str, time_window: Sequence[datetime | None] | None = None, limit: int | None = None
) -> dict[str, Any]:
    """Topics near to a question, each as it is now."""
    with open_memory(load_settings()) as memory:
        return functions.search_memories(memory, query, time_window, limit)


@unit("graph enhanced retrieval", policies.LOCAL)
def graph_enhanced_retrieval(query: str, depth: int = 2) -> dict[str, Any]:
    """Matches of a question with what true edges join to them."""
    with open_memory(load_settings()) as memory:
        return functions.graph_enhanced_retrieval(memory, query, depth)


@unit("retrieve within budget", policies.LOCAL)
def retrieve_within_budget(query: str, max_tokens: int = MAX_TOKENS) -> dict[str, Any]:
    """The context for a question within a number of tokens."""
    with open_memory(load_settings()) as memory:
        return functions.retrieve_within_budget(memory, query, max_tokens)


@unit("get relevant subgraph", policies.LOCAL)
def get_relevant_subgraph(query_embedding: Sequence[float], max_nodes: int = 100) -> dict[str, Any]:
    """The versions that are relevant for a vector, ranked, then cut."""
    with open_memory(load_settings()) as memory:
        return functions.get_relevant_subgraph(memory, query_embedding, max_nodes)


@unit(CONSOLIDATE.task, policies.HEAVY)
def consolidate(level: int, as_of: datetime | None) -> dict[str, Any]:
    """Summaries of past periods, of a level and those below it."""
    levels = perform(CONSOLIDATE, {"level": level, "as_of": as_of})["levels"]
    shown = [{**one, "written": len(one["written"])} for one in levels]
    artifacts.table("summaries", shown, "what consolidation wrote")
    return {"levels": shown}


@unit(LEARN.task, policies.HEAVY)
def learn_from_use() -> dict[str, Any]:
    """Count what was read and join related topics by edges with a confidence."""
    learned = perform(LEARN, {})
    return {**learned, "edges": len(learned["edges"])}


@unit("embed memory again", policies.HEAVY)
def embed_memory_again() -> dict[str, Any]:
    """Vectors of the model that HADES_EMBEDDER names for every state."""
    with open_memory(load_settings()) as memory:
        return {"states": memory.reembed()}
