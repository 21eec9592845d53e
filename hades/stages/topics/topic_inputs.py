"""What the topics are made of, read once: entities with their vectors, and the relations between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.topics.fingerprints import basis_of, key_hashes
from models.hierarchy.arrays import Flags, Graph, Vectors
from models.hierarchy.links import Links, join_links
from schemas.catalogue import collection_named
from schemas.graph_types import EntityType

NAME = "name"  # a vector of the entity's name alone
_ENTITY = ["_key", "name", "type", "vector_of", "embedding_model", "cluster_id"]


@dataclass(frozen=True)
class Material:
    """Entities in key order. Arrays have one row each; `vectors` is zero where there is no vector of the model."""

    keys: list[str]
    names: list[str]
    vectors: Vectors
    has_vector: Flags
    of_name: Flags
    is_person: Flags
    is_symbol: Flags
    links: Links
    hashes: np.ndarray
    basis: list[str]
    held: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def edges(self) -> Graph:
        """The relations as a matrix, for a full build."""
        return self.links.matrix()

    @property
    def of_document(self) -> Flags:
        """Whose vector is that of a whole text."""
        return self.has_vector & ~self.of_name


def read_material(store: RowStore, model: str) -> Material:
    """All entities and relations that stand; vectors of other models are not compared and count as absent."""
    entities, vectors = _entities(store, model)
    keys = entities.column("_key").to_pylist()
    has_vector = np.any(vectors != 0, axis=1) if len(keys) else np.zeros(0, bool)
    tails, heads, kinds, strength = _relations(store, entities.column("_key"))
    hashes = key_hashes(keys)
    return Material(
        keys=keys,
        names=entities.column("name").to_pylist(),
        vectors=vectors,
        has_vector=has_vector,
        of_name=_is(entities, "vector_of", NAME),
        is_person=_is(entities, "type", str(EntityType.PERSON)),
        is_symbol=_is(entities, "type", str(EntityType.CODE_SYMBOL)),
        links=join_links(tails, heads, strength, len(keys)),
        hashes=hashes,
        basis=basis_of(vectors, hashes, tails, heads, kinds, strength),
        held=entities.column("cluster_id").to_pylist(),
    )


def _entities(store: RowStore, model: str) -> tuple[pa.Table, Vectors]:
    """Everything but the vectors as a table, the vectors as one matrix; a batch at a time, so they are held once."""
    parts: list[pa.Table] = []
    blocks: list[tuple[int, np.ndarray, Vectors]] = []
    rows = dimension = 0
    for batch in store.scan("entities", columns=[*_ENTITY, "embedding"]):
        column = batch.column("embedding")
        ours = pc.fill_null(pc.equal(batch.column("embedding_model"), model), False)
        present = np.flatnonzero(pc.and_(ours, pc.is_valid(column)).to_numpy(zero_copy_only=False))
        if len(present):
            held = column if len(present) == len(column) else column.take(pa.array(present))
            flat = held.flatten().to_numpy(zero_copy_only=False)
            block = flat.astype(np.float32, copy=False).reshape(len(present), -1)
            dimension = block.shape[1]
            blocks.append((rows, present, block))
        parts.append(pa.Table.from_batches([batch.select(_ENTITY)]))
        rows += batch.num_rows
    vectors = np.zeros((rows, dimension), np.float32)
    for start, present, block in blocks:
        vectors[start + present] = block
    return pa.concat_tables([_nothing("entities", _ENTITY), *parts]).combine_chunks(), vectors


def _relations(store: RowStore, keys: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends as rows, type as a hash, and strength (1 where nobody stated one) of each relation that stands."""
    columns = ["_from", "_to", "type", "strength", "retracted_at"]
    batches = [batch.select(columns) for batch in store.scan("relations", columns=columns)]
    table = pa.concat_tables(
        [_nothing("relations", columns), pa.Table.from_batches(batches)]
        if batches
        else [_nothing("relations", columns)]
    )
    table = table.filter(pc.is_null(table.column("retracted_at"))).combine_chunks()
    ids = pc.binary_join_element_wise(pa.scalar("entities/"), keys.combine_chunks(), "")
    tails, heads = (
        pc.fill_null(pc.index_in(table.column(name), value_set=ids), -1).to_numpy().astype(np.int64)
        for name in ("_from", "_to")
    )
    kinds = table.column("type").combine_chunks().dictionary_encode()
    codes = key_hashes(kinds.dictionary.to_pylist())[kinds.indices.to_numpy()] if len(kinds) else np.zeros(0, np.uint64)
    strength = pc.fill_null(table.column("strength"), 1.0).to_numpy().astype(np.float32)
    known = (tails >= 0) & (heads >= 0)
    return tails[known], heads[known], codes[known], strength[known]


def _is(entities: pa.Table, column: str, value: str) -> Flags:
    flags: Flags = pc.fill_null(pc.equal(entities.column(column), value), False).to_numpy()
    return flags


def _nothing(collection: str, columns: list[str]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    return pa.schema([declared.schema.field(name) for name in columns]).empty_table()
