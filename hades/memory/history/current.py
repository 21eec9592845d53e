"""Which version of a topic holds at a moment, as far as was known at another. Every reader of memory asks here.

Of the versions that were known and not retracted at `known_at` and that hold at `as_of`, the one that began last holds;
of two that began together, the one said last. So a correction of the past leaves the present alone, and a version that
expired or has not begun yet is never shown as current.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from hades.memory.history import rows as records
from hades.memory.history.delta_chains import WITHOUT_VECTOR, make_whole
from hades.memory.history.names import (
    LATEST,
    NEWEST,
    STATES,
    UnknownMemory,
    check_topic,
    is_state_key,
    key_of,
    state_id,
    topic_key,
)
from hades.memory.history.states import by_keys, is_erased
from hades.ports.store import RowStore, Term
from schemas.intervals import Mask, is_visible
from schemas.memory import LatestState, MemoryState

_FIRST_LOOK, _MORE = 2, 8
_TIMES = ("valid_from", "valid_until", "timestamp", "retracted_at")


def choose_version(versions: Iterable[MemoryState], mask: Mask) -> MemoryState | None:
    """The version of one topic that holds at the mask, or None. This is the rule; the rest of the module finds rows."""
    held = [one for one in versions if holds(one, mask)]
    return max(held, key=lambda one: (one.valid_from or one.timestamp, one.version), default=None)


def holds(state: MemoryState, mask: Mask) -> bool:
    """Whether a version was known and in force at the mask."""
    times = state.valid_from, state.valid_until, state.timestamp, state.retracted_at
    return not is_erased(state) and is_visible(mask, *times)


def state_at(rows: RowStore, topic: str, moment: datetime, known_at: datetime) -> MemoryState | None:
    """The version that held at the moment, None where none did.

    Versions come from an index in the order in which they began, last first; those that do not hold are skipped, and
    each look reads more of them.
    """
    mask = Mask(as_of=moment, known_at=known_at)
    same = Term("topic", "==", check_topic(topic))
    first = rows.last(STATES, same=same, by="valid_from", at_most=moment, limit=_FIRST_LOOK, columns=WITHOUT_VECTOR)
    for state in records.read(first, MemoryState):
        if holds(state, mask):
            return make_whole(rows, [state])[0]
    seen, limit = _FIRST_LOOK, _FIRST_LOOK * _MORE
    more = first.num_rows == seen
    while more:
        table = rows.last(STATES, same=same, by="valid_from", at_most=moment, limit=limit, columns=_TIMES)
        for row in table.slice(seen).to_pylist():
            if is_visible(mask, row["valid_from"], row["valid_until"], row["timestamp"], row["retracted_at"]):
                found = by_keys(rows, [row["_key"]])  # empty for one that was erased
                if found:
                    return found[0]
        seen, limit, more = table.num_rows, limit * _MORE, table.num_rows == limit
    return None


def states_at(rows: RowStore, topic_keys: Iterable[str], mask: Mask, now: datetime) -> list[MemoryState]:
    """The version of each of these topics that holds at the mask, in the order of their keys.

    A mask that names no moment asks about now. Clocks of writers differ, so now is never before the topic's last write.
    """
    pointers = records.fetch(rows, LATEST, sorted(set(topic_keys)), LatestState)
    known_at = mask.known_at or NEWEST
    moments = {key: mask.as_of or mask.known_at or max(now, one.updated_at) for key, one in pointers.items()}
    direct = {
        key: one.latest_state_id for key, one in pointers.items() if is_newest_current(one, moments[key], known_at)
    }
    found = {state.key: state for state in by_keys(rows, sorted(direct.values()))}
    chosen: list[MemoryState] = []
    for key, pointer in sorted(pointers.items()):
        state = found.get(direct[key]) if key in direct else state_at(rows, pointer.topic, moments[key], known_at)
        if state is not None:
            chosen.append(state)
    return chosen


def is_newest_current(pointer: LatestState, moment: datetime, known_at: datetime) -> bool:
    """Whether the pointer alone shows that the version said last is the one that holds."""
    return known_at == NEWEST and pointer.in_order and pointer.began is not None and pointer.began <= moment


def named(rows: RowStore, name: str, now: datetime) -> MemoryState:
    """The version that an id names, or the one of a topic that holds now; else the one it was given last.

    Writers need the last resort: a topic whose only version expired can still be linked or changed.
    """
    key = key_of(name) if name.startswith(f"{STATES}/") else name
    found = by_keys(rows, [key]) if is_state_key(key) else _of_topic(rows, name, now)
    if not found:
        raise UnknownMemory(f"memory holds no topic or state {name!r}; `hades memory topics` lists what there is")
    return found[0]


def resolve_ids(rows: RowStore, names: Sequence[str], now: datetime) -> dict[str, str]:
    """The `_id` that each of these topics or states stands for; one look-up for all of them."""
    keys = {name: key_of(name) if name.startswith(f"{STATES}/") else name for name in names}
    topics = {name: topic_key(check_topic(name)) for name, key in keys.items() if not is_state_key(key)}
    pointers = records.fetch(rows, LATEST, sorted(set(topics.values())), LatestState)
    for name, key in topics.items():
        if key not in pointers:
            raise UnknownMemory(f"memory holds no topic {name!r}; `hades memory topics` lists what there is")
        pointer = pointers[key]
        is_direct = is_newest_current(pointer, max(now, pointer.updated_at), NEWEST)
        keys[name] = pointer.latest_state_id if is_direct else named(rows, pointer.topic, now).key
    return {name: state_id(key) for name, key in keys.items()}


def _of_topic(rows: RowStore, topic: str, now: datetime) -> list[MemoryState]:
    pointers = records.read(rows.get(LATEST, [topic_key(check_topic(topic))]), LatestState)
    if not pointers:
        return []
    current = states_at(rows, [pointers[0].key], Mask(), now)
    return current or by_keys(rows, [pointers[0].latest_state_id])
