"""Which rows of a document that was read again differ from those the store holds: only these are written.

Keys are hashes, so the rows of one large file lie on nearly all pages of a collection. Writing equal rows again would
write those pages again, and every contract would check every row on them.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.increment.equal_rows import equal_rows
from hades.ports.store import RowStore
from hades.text.arrays import Longs
from schemas.catalogue import Collection, collection_named
from schemas.columns import repeated


def find_different(
    store: RowStore, collection: str, rows: pa.Table, kept: Sequence[str], left_out: Names[str] = ()
) -> pa.Table:
    """The rows (each key once) that are new or that the store holds otherwise; `kept` are the keys that it has.

    What the rows do not say counts as the default, as it does when they are written. Columns that are `left_out` are
    not compared.
    """
    if not kept:
        return rows
    declared = collection_named(collection)
    assert declared is not None
    names = [column.name for column in declared.columns if column.name not in left_out]
    held = store.get(collection, kept, columns=names)
    place: Longs = pc.fill_null(
        pc.index_in(rows.column("_key"), value_set=held.column("_key").combine_chunks()), -1
    ).to_numpy()
    known = np.flatnonzero(place >= 0)
    same = equal_rows(held, _as_stored(declared, rows, names), place[known].astype(np.int64), known)
    differs = np.ones(rows.num_rows, dtype=np.bool_)
    differs[known[same]] = False
    return rows.filter(pa.array(differs))


def _as_stored(declared: Collection, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """These columns of rows as the store keeps them: what is not given is the default, or absent."""
    given = set(rows.column_names)
    by_name = {column.name: column for column in declared.columns}
    return pa.table(
        {
            name: rows.column(name)
            if name in given
            else pa.nulls(rows.num_rows, by_name[name].type)
            if by_name[name].default is None
            else repeated(by_name[name].default, by_name[name].type, rows.num_rows)
            for name in names
        }
    )
