"""Memory as tasks: promoting, changing, searching and maintaining it, from a flow or a served
worker.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from hades.compat import functions
from hades.settings.load import load_settings
from hades.surfaces.capabilities.memory_recall import consolidate as CONSOLIDATE
from hades.surfaces.capabilities.memory_recall import learn as LEARN
from hades.surfaces.capabilities.memory_states import at, at_or_null, change, check, promote, when
from hades.wiring import open_memory
from tasks import artifacts, policies
from tasks.retrieval import capability_task, name_after, perform
from tasks.unit import Unit, unit

promote_memory = capability_task(promote, policies.LOCAL)
handle_fact_change = capability_task(change, policies.LOCAL)
find_edge_change = capability_task(when, policies.LOCAL)
check_memory = capability_task(check, policies.LOCAL)


@unit(at.task, policies.LOCAL)
def query_at_time(
    topic: str,
    timestamp: datetime,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """What was true of a topic at a time, with the edges that held; `state` is None before the
    first version.
    """
    with open_memory(load_settings()) as memory:
        return at_or_null(memory, topic, timestamp, known_at)


def memory_task(function: Callable[..., dict[str, Any]]) -> Unit[dict[str, Any]]:
    """The task of a function of memory, with its name and its arguments after the memory."""

    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        with open_memory(load_settings()) as memory:
            return function(memory, *args, **kwargs)

    return unit(function.__name__.replace("_", " "), policies.LOCAL)(name_after(function, call))


search_memories = memory_task(functions.search_memories)
graph_enhanced_retrieval = memory_task(functions.graph_enhanced_retrieval)
retrieve_within_budget = memory_task(functions.retrieve_within_budget)
get_relevant_subgraph = memory_task(functions.get_relevant_subgraph)


@unit(CONSOLIDATE.task, policies.HEAVY)
def consolidate(
    level: int,
    as_of: datetime | None,
    pays: bool | None = None,
) -> dict[str, Any]:
    """Summaries of past periods, of a level and those below it."""
    settings = artifacts.settings_after(pays)
    report = perform(
        CONSOLIDATE,
        {"level": level, "as_of": as_of},
        settings,
    )

    levels = []
    for entry in report["levels"]:
        levels.append(
            {
                **entry,
                "written": len(entry["written"]),
            }
        )

    artifacts.table(
        "summaries",
        levels,
        "what consolidation wrote",
    )
    return {"levels": levels}


@unit(LEARN.task, policies.HEAVY)
def learn_from_use() -> dict[str, Any]:
    """Count what was read and join related topics by edges with a confidence."""
    learned = perform(LEARN, {})
    return {
        **learned,
        "edges": len(learned["edges"]),
    }


@unit("embed memory again", policies.HEAVY)
def embed_memory_again() -> dict[str, Any]:
    """Vectors of the model that HADES_EMBEDDER names for every state."""
    with open_memory(load_settings()) as memory:
        return {"states": memory.reembed()}
