"""Documents as rows, some at a time: read and made here, or in worker processes where the source comes in portions.

A batch holds Arrow tables and a few texts a document, so a large transaction needs little memory. Few transactions
matter because keys are hashes: each transaction touches nearly all pages of a collection and writes them again.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.manifest import as_table
from hades.ingest.nodes import node_rows
from hades.ingest.source_document import Material, Portion, PortionedSource, RejectedInput, Source
from hades.ingest.workers.worker_pool import WorkerPool
from schemas.ids import node_id

BATCH_DOCUMENTS = 512
SMALL_BYTES = 4 << 20  # a child takes most of a second to start: less than this is read here

Items = Sequence[Material | RejectedInput]


@dataclass(frozen=True)
class NodeBatch:
    """Documents in the order of their source, what each is known by, and their rows by collection."""

    keys: tuple[str, ...]
    origins: tuple[str, ...]
    digests: tuple[str, ...]
    places: tuple[int, ...]  # of each document among the items that were read
    records: tuple[bytes, ...]  # the digest of what each was read from, where the source is one of records
    tables: dict[str, pa.Table]
    rejected: tuple[tuple[int, RejectedInput], ...]

    @property
    def nbytes(self) -> int:
        """The size of the rows."""
        return sum(table.nbytes for table in self.tables.values())

    def only(self, chosen: Sequence[int]) -> NodeBatch:
        """The batch with some of its documents."""
        if len(chosen) == len(self.keys):
            return self
        keys = tuple(self.keys[row] for row in chosen)
        owners = pa.array([node_id("documents", key) for key in keys], pa.string())
        tables = {
            name: table.take(pa.array(chosen, pa.int64()))
            if name == "documents"
            else table.filter(pc.is_in(table.column("document"), value_set=owners))
            for name, table in self.tables.items()
        }
        return NodeBatch(
            keys,
            tuple(self.origins[row] for row in chosen),
            tuple(self.digests[row] for row in chosen),
            tuple(self.places[row] for row in chosen),
            tuple(self.records[row] for row in chosen),
            tables,
            self.rejected,
        )


def read_batches(source: Source, domain: str, pool: WorkerPool) -> Iterator[NodeBatch]:
    """The documents of a source in its order; of two of one key in a batch the last stays."""
    if isinstance(source, PortionedSource):
        return _read_portions(source, domain, pool)
    return (make_batch(items, source.corpus, domain) for items in _take(source.read(), BATCH_DOCUMENTS))


def make_batch(items: Items, corpus: str, domain: str) -> NodeBatch:
    """Some documents as rows."""
    made = {}
    for place, item in enumerate(items):
        if isinstance(item, Material):
            one = node_rows(replace(item, domain=domain) if domain else item, corpus)
            made[one.key] = (place, item, one)
    rows: dict[str, list[dict[str, Any]]] = {}
    for _, _, one in made.values():
        for collection, listed in one.rows.items():
            rows.setdefault(collection, []).extend(listed)
    return NodeBatch(
        tuple(made),
        tuple(item.origin for _, item, _ in made.values()),
        tuple(one.digest for _, _, one in made.values()),
        tuple(place for place, _, _ in made.values()),
        tuple(item.record for _, item, _ in made.values()),
        {collection: as_table(collection, listed) for collection, listed in rows.items() if listed},
        tuple((place, item) for place, item in enumerate(items) if isinstance(item, RejectedInput)),
    )


def read_portion(reader: str, arguments: tuple[object, ...], corpus: str, domain: str) -> NodeBatch:
    """One portion of a source as rows, as a worker process makes them."""
    module, _, function = reader.partition(":")
    return make_batch(getattr(importlib.import_module(module), function)(*arguments), corpus, domain)


def _read_portions(source: PortionedSource, domain: str, pool: WorkerPool) -> Iterator[NodeBatch]:
    """The batches of all portions; a document that came before is set aside as the source says."""
    seen: set[str] = set()
    portions: list[Portion] = []  # in the order in which they were sent, so in that of the answers

    def send() -> Iterator[tuple[int, tuple[object, ...]]]:
        for portion in source.portions():
            portions.append(portion)
            yield portion.size, (portion.reader, portion.arguments, source.corpus, domain)

    for number, batch in enumerate(pool.map_large(read_portion, send(), SMALL_BYTES)):
        portion, portions[number] = portions[number], Portion("", (), 0)
        fresh = [row for row, origin in enumerate(batch.origins) if origin not in seen]
        again = [
            (batch.places[row], source.reject_repeat(portion, batch.places[row], origin))
            for row, origin in enumerate(batch.origins)
            if origin in seen
        ]
        seen.update(batch.origins)
        yield replace(batch.only(fresh), rejected=tuple(sorted([*batch.rejected, *again], key=lambda one: one[0])))
    rest = tuple(enumerate(source.reject_rest(seen)))
    if rest:
        yield NodeBatch((), (), (), (), (), {}, rest)


def _take(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
