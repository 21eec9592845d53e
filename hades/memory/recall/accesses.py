"""What was read how often: kept for analytics, beside the record of acts; it ranks only where somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hades.memory.history.audit import Act
from hades.memory.history.names import STATES, key_of
from hades.memory.history.states import by_keys
from hades.ports.store import RowStore

_SCHEMA = pa.schema(
    [("_key", pa.string()), ("access_count", pa.int64()), ("last_accessed", pa.timestamp("us", tz="UTC"))]
)


def note_access(rows: RowStore, state_ids: Sequence[str], act: Act) -> int:
    """Count one access to each of these versions, in the caller's transaction; how many exist.

    Nobody calls it unless told to, and the records say `access`, so that whoever learns from use can leave them out.
    """
    found = by_keys(rows, sorted({key_of(one) for one in state_ids}))
    counted = [{"_key": state.key, "access_count": state.access_count + 1, "last_accessed": act.at} for state in found]
    if counted:
        rows.patch(STATES, pa.Table.from_pylist(counted, schema=_SCHEMA))
        act.note("access", found[0].key, {"states": [state.key for state in found]})
    return len(found)
