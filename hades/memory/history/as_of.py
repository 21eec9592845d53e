"""What was true at a moment, as far as was known at another: one step in an index, not a walk through the versions."""

from __future__ import annotations

from datetime import datetime

from hades.memory.history import rows as records
from hades.memory.history.delta_chains import WITHOUT_VECTOR, made_whole
from hades.memory.history.names import STATES, checked_topic
from hades.memory.history.states import by_keys, is_erased
from hades.ports.store import RowStore, Term
from schemas.intervals import Mask, is_visible
from schemas.memory import MemoryState

_FIRST_LOOK, _MORE = 2, 8
_TIMES = ("valid_from", "valid_until", "timestamp")


def state_at(rows: RowStore, topic: str, moment: datetime, known_at: datetime) -> MemoryState | None:
    """The version that held at the moment, None before the first.

    Of several that held, the one that began last, and of these the last said: a correction of the past leaves the
    present alone. Versions said after `known_at` and versions that had ended are stepped over, more at each look.
    """
    mask = Mask(as_of=moment, known_at=known_at)
    same = Term("topic", "==", checked_topic(topic))
    first = rows.last(STATES, same=same, by="valid_from", at_most=moment, limit=_FIRST_LOOK, columns=WITHOUT_VECTOR)
    for state in records.read(first, MemoryState):
        if is_visible(mask, state.valid_from, state.valid_until, state.timestamp, None) and not is_erased(state):
            return made_whole(rows, [state])[0]
    seen, limit = _FIRST_LOOK, _FIRST_LOOK * _MORE
    more = first.num_rows == seen
    while more:
        table = rows.last(STATES, same=same, by="valid_from", at_most=moment, limit=limit, columns=_TIMES)
        for row in table.slice(seen).to_pylist():
            if is_visible(mask, row["valid_from"], row["valid_until"], row["timestamp"], None):
                found = by_keys(rows, [row["_key"]])  # empty for one that was erased
                if found:
                    return found[0]
        seen, limit, more = table.num_rows, limit * _MORE, table.num_rows == limit
    return None
