"""Every row of a store as Parquet files, and back into any store: how a graph leaves one machine for another.

Only the store port is used, so rows of the embedded store can go into ArangoDB and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hades.ports.store import GraphStore, RowStore
from hades.stages.release.backup_manifest import BackupError
from schemas.catalogue import COLLECTIONS, Collection, collection_named

_GROUP_ROWS = 16_384


def export_rows(store: RowStore, folder: Path) -> dict[str, int]:
    """Write one file a collection that has rows; how many each holds. Each is as it was when its scan began."""
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    for collection in COLLECTIONS:
        rows = 0
        with pq.ParquetWriter(folder / _file(collection), collection.schema, compression="zstd") as writer:
            for batch in store.scan(collection.name, batch_rows=_GROUP_ROWS):
                writer.write_batch(batch)
                rows += batch.num_rows
        if rows:
            counts[collection.name] = rows
        else:
            (folder / _file(collection)).unlink()
    return counts


def export_one_state(store: GraphStore, folder: Path) -> dict[str, int]:
    """`export_rows` of a store on a server; refused where an ingest or a build wrote meanwhile.

    The server reads each collection as of the moment its scan begins. No write half applied before or after, and the
    same ledgers before and after, mean that all collections are of one state.
    """
    with store.reading() as rows:
        before = _ledgers(rows)
        counts = export_rows(rows, folder)
    with store.reading() as rows:
        if _ledgers(rows) != before:
            raise BackupError(
                "an ingest or a build wrote while the rows were read, so they are of two states; run the backup again "
                "when it is done"
            )
    return counts


def import_rows(store: GraphStore, folder: Path, counts: Mapping[str, int]) -> dict[str, int]:
    """Make the store hold exactly these rows; how many each collection has now.

    Nodes come before the edges that need them, and rows that the files do not have go edges first. Killed in the
    middle, doing it again ends at the same place.
    """
    wanted = [collection for collection in COLLECTIONS if collection.name in counts]
    for collection in sorted(wanted, key=lambda one: one.edge is not None):
        with pq.ParquetFile(folder / _file(collection)) as file:
            store.upsert(collection.name, (_as_declared(batch, collection) for batch in file.iter_batches(_GROUP_ROWS)))
    for collection in sorted(COLLECTIONS, key=lambda one: one.edge is None):
        _drop_others(store, collection, folder if collection.name in counts else None)
    return {name: rows for name, rows in store.counts().items() if rows}


def _ledgers(rows: RowStore) -> dict[str, list[dict[str, object]]]:
    """The rows that every ingest and every stage of a build writes last."""
    return {
        name: [row for batch in rows.scan(name) for row in batch.to_pylist()]
        for name in ("build_stages", "ingest_manifest")
    }


def unknown_collections(counts: Mapping[str, int]) -> list[str]:
    """Collections of a backup that this version does not declare."""
    return sorted(name for name in counts if collection_named(name) is None)


def _file(collection: Collection) -> str:
    return f"{collection.name}.parquet"


def _as_declared(batch: pa.RecordBatch, collection: Collection) -> pa.RecordBatch:
    """The columns that are still declared; the store fills in those that came later."""
    held = [field for field in collection.schema if field.name in batch.schema.names]
    return pa.RecordBatch.from_arrays(
        [batch.column(field.name).cast(field.type) for field in held], schema=pa.schema(held)
    )


def _drop_others(store: GraphStore, collection: Collection, folder: Path | None) -> None:
    """Remove rows whose key is not in the collection's file."""
    if not store.count(collection.name):
        return
    kept = pa.array([], pa.string())
    if folder is not None:
        kept = pq.read_table(folder / _file(collection), columns=["_key"]).column("_key").combine_chunks()
    surplus: list[str] = []
    for batch in store.scan(collection.name, columns=["_key"]):
        keys = batch.column("_key")
        surplus += keys.filter(pc.invert(pc.is_in(keys, value_set=kept))).to_pylist()
    if surplus:
        store.delete(collection.name, keys=surplus)
