"""The importance of one version as it is written, and as it was before a rating."""

from __future__ import annotations

import pyarrow as pa

from hades.memory.history.audit import Act
from hades.memory.history.names import STATES
from hades.memory.history.states import by_keys
from hades.ports.store import RowStore
from schemas.memory import MemoryState

RATED = "rate"


def set_importance(rows: RowStore, state: MemoryState, importance: float, act: Act) -> None:
    """Write the importance of a version and note what it was, in the caller's transaction."""
    rows.patch(STATES, pa.table({"_key": [state.key], "importance_score": pa.array([importance], pa.float64())}))
    act.note(RATED, state.key, {"topic": state.topic, "before": state.importance_score, "after": importance})


def undo_rating(rows: RowStore, key: str, before: float, act: Act) -> None:
    """Give a version the importance that it had before a rating; one that was erased since has none."""
    for state in by_keys(rows, [key]):
        set_importance(rows, state, before, act)
