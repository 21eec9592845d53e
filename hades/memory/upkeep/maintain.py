"""Whether memory is as it must be: versions without gaps, parents, pointers, beliefs in a row, no
circles; vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hades.memory.history.rows import STATES, put, scan, state_key
from hades.memory.history.states import by_keys, trace
from hades.ports.services import Embedder
from hades.ports.store import RowStore, Term, scan_rows
from schemas.catalogue import as_table
from schemas.memory import LatestState, MemoryEdge

_COLUMNS = ("topic", "version", "timestamp", "parent_state_id")


def problems(rows: RowStore) -> list[str]:
    """What is wrong, in sentences; empty when memory is sound. Reads all of it."""
    return [*_version_problems(rows), *_belief_problems(rows)]


def write_traces(rows: RowStore) -> int:
    """Write each topic's versions as one row of `memory_traces`; how many topics there are."""
    names = [pointer.topic for pointer in scan(rows, LatestState)]
    put(rows, [trace(rows, name) for name in names])
    return len(names)


def _version_problems(rows: RowStore) -> Iterator[str]:
    known = {}
    for pointer in scan(rows, LatestState):
        known[pointer.topic] = pointer

    counted = dict.fromkeys(known, 0)
    previous: tuple[str, datetime] | None = None
    for row in scan_rows(rows, STATES, columns=_COLUMNS):
        topic = row["topic"]
        version = counted.get(topic, 0) + 1
        where = f"{topic!r} version {row['version']}"

        if row["version"] != version or row["_key"] != state_key(topic, version):
            yield f"{where}: version {version} was expected"

        if version > 1:
            parent = state_key(topic, version - 1)
        else:
            parent = None

        if row["parent_state_id"] != parent:
            yield f"{where}: its parent is {row['parent_state_id']}, not the version before"
        if previous and previous[0] == topic and row["timestamp"] <= previous[1]:
            yield f"{where}: not later than the version before"

        counted[topic] = row["version"]
        previous = (topic, row["timestamp"])

    for topic, count in counted.items():
        if topic not in known:
            yield f"{topic!r}: {count} versions, but nothing points at the newest"
        elif known[topic].version != count:
            newest = known[topic].version
            yield f"{topic!r}: {count} versions, but the newest is said to be {newest}"


def _belief_problems(rows: RowStore) -> Iterator[str]:
    current: dict[str, MemoryEdge] = {}
    for edge in scan(rows, MemoryEdge):
        previous = current.get(edge.id)
        if edge.revision != (previous.revision + 1 if previous else 1):
            yield f"edge {edge.id}: belief {edge.revision} does not follow the one before"
        ended = previous and previous.retracted_at
        if previous and (ended is None or edge.recorded_at < ended):  # type: ignore[operator]
            yield f"edge {edge.id}: beliefs {previous.revision} and {edge.revision} overlap"

        current[edge.id] = edge

    for identity, edge in current.items():
        visited = {identity}
        step = edge.superseded_by
        while step in current and step not in visited:
            visited.add(step)
            step = current[step].superseded_by

        if step in visited:
            yield f"edge {identity}: its supersessions go in a circle"
        elif step is not None:
            yield f"edge {identity}: superseded by {step}, which is not there"


_BATCH = 1_000


def reembed_states(rows: RowStore, embedder: Embedder) -> int:
    """Embed again every state whose vector is missing or of another model, in batches; how many
    there were.
    """
    tag = embedder.model.tag

    done = 0
    for keys in stale_keys(rows, tag):
        if not (states := by_keys(rows, keys)):
            continue

        vectors = embedder.embed([state.content for state in states])
        fresh = []
        for state, vector in zip(states, vectors, strict=True):
            fresh.append(
                {
                    "_key": state.key,
                    "embedding": vector.tolist(),
                    "embedding_model": tag,
                }
            )

        rows.patch(STATES, as_table(STATES, fresh))
        done += len(fresh)

    return done


def stale_keys(rows: RowStore, tag: str) -> Iterator[list[str]]:
    """Keys of the states without a vector of the model, some at a time; erased places have none and
    want none.
    """
    stale = []
    readable = [Term("valid_from", "not_null")]

    for row in scan_rows(
        rows,
        STATES,
        where=readable,
        columns=["embedding_model"],
    ):
        if row["embedding_model"] != tag:
            stale.append(row["_key"])

    for start in range(0, len(stale), _BATCH):
        yield stale[start : start + _BATCH]
