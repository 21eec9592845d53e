"""Relations and mentions as arrays, with what weighing needs to know of the entities they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from hades.stages.weights.weight_config import TYPES
from hades.stages.weights.weight_rules import WeightError
from models.weights.components import Codes, Longs
from schemas.catalogue import collection_named

_RELATION_COLUMNS = (
    "_key", "_from", "_to", "type", "created", "evidence_count", "strength",
    "weight", "weight_components", "cost", "learned", "sim",
)  # fmt: skip
_MENTION_COLUMNS = ("_key", "_to", "count", "positions", "weight", "learned")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOWHERE = -1


@dataclass(frozen=True)
class EntityColumns:
    """Entities by row: their ids, the vectors of one model (the row of each, -1: none), and which are mere terms."""

    ids: pa.Array
    vectors: NDArray[np.float32]
    vector_row: Longs
    is_term: NDArray[np.bool_]

    def rows_of(self, identifiers: pa.ChunkedArray) -> Longs:
        """The row of each id, -1 for one that is not there."""
        return _whole(pc.index_in(identifiers, value_set=self.ids), _NOWHERE)

    def vectors_of(self, identifiers: pa.ChunkedArray) -> Longs:
        """The row of each id's vector, -1 for one without."""
        return np.append(self.vector_row, _NOWHERE)[self.rows_of(identifiers)]


def read_entities(store: RowStore, model: str) -> EntityColumns:
    """Every entity once. Vectors of another model are as good as none: they cannot be compared."""
    keys, blocks, has_vector, is_term = [], [], [], []
    for batch in store.scan("entities", columns=["_key", "embedding", "embedding_model", "metadata"]):
        keys.append(batch.column("_key"))
        lists = batch.column("embedding")
        ours = pc.and_(pc.equal(batch.column("embedding_model"), model), pc.is_valid(lists)).fill_null(False)
        has_vector.append(ours.to_numpy(zero_copy_only=False))
        if (n_ours := int(has_vector[-1].sum())) > 0:
            held = lists if n_ours == len(lists) else lists.filter(ours)
            blocks.append(held.flatten().to_numpy().reshape(n_ours, -1))
        is_term.append(_are_terms(batch.column("metadata")))
    present = np.concatenate(has_vector) if has_vector else np.zeros(0, dtype=np.bool_)
    return EntityColumns(
        ids=pc.binary_join_element_wise("entities", pa.chunked_array(keys, pa.string()).combine_chunks(), "/"),
        vectors=np.concatenate(blocks) if blocks else np.zeros((0, 0), dtype=np.float32),
        vector_row=np.where(present, np.cumsum(present) - 1, _NOWHERE),
        is_term=np.concatenate(is_term) if is_term else np.zeros(0, dtype=np.bool_),
    )


def read_relations(store: RowStore) -> pa.Table:
    """What weighing reads and writes of every relation, in key order."""
    return _all(store, "relations", _RELATION_COLUMNS)


def read_mentions(store: RowStore) -> pa.Table:
    """What weighing reads and writes of every mention, in key order."""
    return _all(store, "mentions", _MENTION_COLUMNS)


def type_codes(relations: pa.Table) -> Codes:
    """The place of each relation's type in `TYPES`; a type that has none is an error, never a default."""
    found = pc.index_in(relations.column("type"), value_set=pa.array(TYPES))
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        key, kind = (relations.column(name)[row].as_py() for name in ("_key", "type"))
        raise WeightError(
            f"relations/{key} is of type {kind!r}, which has no prior and no boost; the types are {', '.join(TYPES)}"
        )
    codes: Codes = _whole(found).astype(np.uint8)
    return codes


def ages(relations: pa.Table, as_of: datetime) -> tuple[Longs, NDArray[np.bool_]]:
    """Whole days from each relation's event date to `as_of`, and which have a date; the others count 0 here."""
    created = relations.column("created")
    day = pc.cast(pc.floor_temporal(created, unit="day"), pa.int64())
    days = _whole(day) // 86_400_000_000
    return (as_of - _EPOCH).days - days, pc.is_valid(created).to_numpy()


def in_title(mentions: pa.Table) -> NDArray[np.bool_]:
    """Which mentions the title or the source itself makes: they are counted, but stand nowhere in the text."""
    places = pc.list_value_length(mentions.column("positions"))
    return _whole(mentions.column("count")) > _whole(places)


def floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column of numbers, NaN where there is none."""
    values: NDArray[np.float64] = pc.cast(column, pa.float64()).to_numpy()
    return values


def whole(column: pa.ChunkedArray) -> Longs:
    """A column of whole numbers, 0 where there is none."""
    return _whole(column)


def _whole(column: pa.ChunkedArray | pa.Array, missing: int = 0) -> Longs:
    filled = pc.cast(column, pa.int64()).fill_null(missing)
    values: Longs = (filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled).to_numpy()
    return values


def _are_terms(metadata: pa.Array) -> NDArray[np.bool_]:
    """Which entities are known only as plain repeated terms; few different texts say so, each is read once."""
    encoded = metadata.dictionary_encode()
    terms = np.array(
        [orjson.loads(text).get("origin") == ["term"] for text in encoded.dictionary.to_pylist()], np.bool_
    )
    codes = _whole(encoded.indices, _NOWHERE)
    flags: NDArray[np.bool_] = np.append(terms, False)[codes]
    return flags


def _all(store: RowStore, collection: str, columns: Sequence[str]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in columns])
    batches = [batch.select(list(columns)).cast(schema) for batch in store.scan(collection, columns=list(columns))]
    return pa.Table.from_batches(batches, schema=schema)
