"""What a write costs of the server's transaction limit, and how much of the limit one unit of work may take.

The server counts, for every key that a transaction writes, the lock (about 230 bytes), the document, and every index
entry that is removed and written again. The figures here lie above those of a 3.12 server (a mention 1.8 KB, a
relation 2.6 KB, an entity with its vector 5.1 KB), and a unit takes only a share of the limit: `journal` halves one
that the server refuses all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.stores.arango.encode import json_bytes
from schemas.catalogue import Collection

DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024  # up to 3.12.3
LATER_LIMIT_BYTES, LATER_LIMIT_SINCE = 512 * 1024 * 1024, (3, 12, 4)
LARGEST_UNIT_BYTES = 32 * 1024 * 1024  # the client holds one unit, and the journal keeps it as one document
DEFAULT_SHARE = 0.25
WHOLE_SHARE = 0.6  # of the limit, for a write of several units that is applied in one transaction
OPTION = "transaction.streaming-max-transaction-size"
_LOCK_BYTES = 230
_ENTRY_BYTES = 160
_DOCUMENT_BYTES = 200
_VECTOR_BYTES = 4_096  # of a stored vector that a patch of another column writes again
_TEXT_BYTES = 2_048  # of a stored text that a patch of another column writes again

Bytes = NDArray[np.int64]


@dataclass(frozen=True)
class UnitSize:
    """How much one unit of work may cost: a share of the server's limit, and where the limit is known from."""

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    share: float = DEFAULT_SHARE
    source: str = "assumed"

    @property
    def unit_bytes(self) -> int:
        """What the writes of one unit may cost together."""
        return max(1, min(int(self.limit_bytes * self.share), LARGEST_UNIT_BYTES))

    @property
    def whole_bytes(self) -> int:
        """What a write of several units may cost to be applied in one transaction, not piece by piece."""
        return int(self.limit_bytes * max(self.share, WHOLE_SHARE))


def put_costs(collection: Collection, table: pa.Table) -> Bytes:
    """What writing each row whole costs."""
    return json_bytes(table) + _fix(collection)


def change_costs(collection: Collection, table: pa.Table) -> Bytes:
    """What patching each row costs: the server writes the whole document again."""
    held = _TEXT_BYTES if collection.text_fields else 512
    held += _VECTOR_BYTES if collection.vector_field else 0
    return json_bytes(table) + _fix(collection) + held


def remove_costs(collection: Collection, table: pa.Table) -> Bytes:
    """What removing each row costs."""
    return np.full(table.num_rows, _fix(collection), dtype=np.int64)


def default_limit(version: tuple[int, ...]) -> int:
    """The limit of a server of this version that nobody configured."""
    return LATER_LIMIT_BYTES if version >= LATER_LIMIT_SINCE else DEFAULT_LIMIT_BYTES


def limit_of(options: dict[str, Any]) -> int | None:
    """The server's limit among the options it tells, or None."""
    held = options.get(OPTION)
    return held if isinstance(held, int) and held > 0 else None


def _fix(collection: Collection) -> int:
    entries = len(collection.indexes) + (2 if collection.edge else 0) + 1
    return _LOCK_BYTES + _DOCUMENT_BYTES + 2 * _ENTRY_BYTES * entries
