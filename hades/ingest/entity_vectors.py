"""Vectors of entities: of the document an entity titles, else of its name; what is already there is kept.

An entity whose name and whose documents' chunks are those of the last derivation has the vector it had; only the others
are worked out. From the vectors of names follow the `similar_to` edges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.embeddings import as_lists
from hades.ingest.entities.pair_cache import PairCache
from hades.ingest.entities.similar import find_similar_pairs
from hades.ingest.readings.signatures import sign_texts
from hades.ingest.report import Progress, silent
from hades.ports.store import RowStore, Term
from hades.ports.text import Embedder
from schemas.graph_types import EntityType, RelationType
from schemas.ids import edge_key, node_id

NAME, DOCUMENT = "name", "document"
BASIS = "vector_basis"  # a digest of the chunks that an entity's vector is the mean of; "" for a vector of a name
WINDOW = 4_096
SIMILAR_THRESHOLD = 0.8
SIMILAR_ENTITIES = 10_000  # the most frequent ones; all pairs of more would cost minutes
SIMILAR_PER_ENTITY = 8
SCAN_SHARE = 10  # at most a tenth of the rows is looked up by key; more are found by a scan of all

Matrix = NDArray[np.float32]


@dataclass
class EntityVectors:
    """Makes and reads vectors of entities; those it made are held until they are written."""

    store: RowStore
    embedder: Embedder
    titles: pa.Table  # document and entity: which document (`_id`) titles which entity (`_id`)
    progress: Progress = silent
    made: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    is_document: dict[str, bool] = field(default_factory=dict)
    newest: tuple[pa.Array, NDArray[np.float32]] | None = None  # what was made last, whole

    def make(self, keys: pa.Array, names: pa.Array) -> None:
        """Work out the vectors of these entities, unless that was done before."""
        fresh = [row for row, key in enumerate(keys.to_pylist()) if key not in self.made]
        if not fresh:
            return
        keys, names = keys.take(pa.array(fresh, pa.int64())), names.take(pa.array(fresh, pa.int64()))
        vectors = np.zeros((len(keys), self.embedder.model.dimension), dtype=np.float32)
        has_vector = self._keep_names(keys, names, vectors)
        of_document = self._document_vectors(keys.to_pylist())
        is_titled = np.zeros(len(keys), dtype=np.bool_)
        for row, key in enumerate(keys.to_pylist()):
            if key in of_document:
                vectors[row], is_titled[row] = of_document[key], True
        missing = np.flatnonzero(~(has_vector | is_titled))
        for start in range(0, len(missing), WINDOW):
            part = missing[start : start + WINDOW]
            vectors[part] = self.embedder.embed(names.take(pa.array(part)).to_pylist())
            self.progress("names", min(start + WINDOW, len(missing)), len(missing))
        self.made.update(zip(keys.to_pylist(), vectors, strict=True))
        self.newest = keys, vectors
        self.is_document.update(zip(keys.to_pylist(), is_titled.tolist(), strict=True))

    def read(self, keys: Sequence[str]) -> Matrix:
        """(n_keys, dim) of vectors: those made here, else those stored; zeros where there is none."""
        vectors = np.zeros((len(keys), self.embedder.model.dimension), dtype=np.float32)
        stored: dict[str, int] = {}
        for row, key in enumerate(keys):
            if key in self.made:
                vectors[row] = self.made[key]
            else:
                stored[key] = row
        for batch in self._entities(pa.array(list(stored), pa.string())):
            held = batch.filter(pc.is_valid(batch.column("embedding")))
            rows = [stored[key] for key in held.column("_key").to_pylist()]
            vectors[rows] = _matrix(held.column("embedding"))
        return vectors

    def fill(self, entities: pa.Table) -> pa.Table:
        """The entities as they are stored, with their vectors."""
        entities = entities.drop_columns([BASIS])
        keys = entities.column("_key").combine_chunks()
        self.make(keys, entities.column("name").combine_chunks())
        is_whole = self.newest is not None and self.newest[0].equals(keys)  # all in one: no second copy
        vectors = self.newest[1] if self.newest is not None and is_whole else self.read(keys.to_pylist())
        return _replace(entities, "embedding", as_lists(vectors))

    def clear(self) -> None:
        """Let go of the vectors that were made."""
        self.made, self.is_document, self.newest = {}, {}, None

    def _entities(self, keys: pa.Array) -> list[pa.RecordBatch]:
        """Stored rows of vectors by the embedder in use."""
        where = [Term("embedding_model", "==", self.embedder.model.tag)]
        if len(keys) * SCAN_SHARE <= self.store.count("entities"):
            where.append(Term("_key", "in", keys.to_pylist()))
        columns = ["_key", "name", "vector_of", "embedding"]
        batches = self.store.scan("entities", where=where, columns=columns) if len(keys) else ()
        return [batch.filter(pc.is_in(batch.column("_key"), value_set=keys)) for batch in batches]

    def _keep_names(self, keys: pa.Array, names: pa.Array, vectors: Matrix) -> NDArray[np.bool_]:
        """Copy vectors of names that were embedded before and are still called so; which rows have one."""
        has_vector = np.zeros(len(keys), dtype=np.bool_)
        for held in self._entities(keys):
            batch = held.filter(
                pc.and_(pc.equal(held.column("vector_of"), NAME), pc.is_valid(held.column("embedding")))
            )
            place = pc.index_in(batch.column("_key"), value_set=keys)
            is_same = pc.fill_null(pc.equal(names.take(place), batch.column("name")), False)
            rows = place.filter(is_same).to_numpy()
            vectors[rows], has_vector[rows] = _matrix(batch.column("embedding").filter(is_same), vectors.shape[1]), True
        return has_vector

    def _document_vectors(self, keys: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """Entity key to the mean vector of the chunks of the documents it titles, unit length.

        Sums run in float64 over chunks in key order, so the mean does not depend on how they were read.
        """
        ids = pa.array([node_id("entities", key) for key in keys], pa.string())
        titled = self.titles.filter(pc.is_in(self.titles.column("entity"), value_set=ids))
        pairs = zip(*(titled.column(name).to_pylist() for name in ("document", "entity")), strict=True)
        entity_of = {document: entity.partition("/")[2] for document, entity in pairs}
        where = [Term("embedding_model", "==", self.embedder.model.tag)]
        if len(entity_of) * SCAN_SHARE <= self.store.count("doc_chunks"):
            where.append(Term("document", "in", sorted(entity_of)))
        sums: dict[str, NDArray[np.float64]] = {}
        batches = self.store.scan("doc_chunks", where=where, columns=["document", "embedding"]) if entity_of else ()
        for batch in batches:
            rows = _matrix(batch.column("embedding"))
            for document, vector in zip(batch.column("document").to_pylist(), rows, strict=True):
                entity = entity_of.get(document)
                if entity is not None:
                    held = sums.get(entity)
                    if held is None:
                        sums[entity] = vector.astype(np.float64)
                    else:
                        held += vector
        norms = {key: float(np.sqrt(np.einsum("i,i->", total, total))) for key, total in sums.items()}
        return {key: (total / norms[key]).astype(np.float32) for key, total in sums.items() if norms[key] > 0}


def mark_vectors(vectors: EntityVectors, entities: pa.Table, chunks: pa.Table, before: pa.Table | None) -> pa.Table:
    """The entities with embedding_model, vector_of and what their vectors are made of; new vectors are made.

    `chunks` have _key, document, sha256 and embedding_model; `before` are the entities of the last derivation.
    """
    tag = vectors.embedder.model.tag
    keys, names = (entities.column(name).combine_chunks() for name in ("_key", "name"))
    basis = _find_basis(keys, vectors.titles, chunks, tag)
    origin = pa.nulls(len(keys), pa.string())
    if before is not None and before.num_rows:
        place = pc.index_in(keys, value_set=before.column("_key").combine_chunks())
        held = before.select(["name", BASIS, "embedding_model", "vector_of"]).take(place)
        is_same = pc.and_(pc.equal(held.column("name"), names), pc.equal(held.column(BASIS), basis))
        is_same = pc.fill_null(pc.and_(is_same, pc.equal(held.column("embedding_model"), tag)), False)
        origin = pc.if_else(is_same, held.column("vector_of"), None).combine_chunks()
    stale = pc.is_null(origin)
    vectors.make(keys.filter(stale), names.filter(stale))
    made = [DOCUMENT if vectors.is_document[key] else NAME for key in keys.filter(stale).to_pylist()]
    entities = _replace(entities, "vector_of", pc.replace_with_mask(origin, stale, pa.array(made, pa.string())))
    entities = _replace(entities, "embedding_model", pa.repeat(tag, len(keys)))
    return _replace(entities, BASIS, basis)


def similar_edges(vectors: EntityVectors, entities: pa.Table, cache: PairCache | None) -> pa.Table:
    """`similar_to` between names whose vectors nearly agree, among the most frequent entities.

    Code symbols are left out: those of one class share most of their qualified name and would all be similar.
    """
    is_name = pc.and_(
        pc.equal(entities.column("vector_of"), NAME),
        pc.not_equal(entities.column("type"), str(EntityType.CODE_SYMBOL)),
    )
    frequency = np.where(is_name.to_numpy(), entities.column("frequency").to_numpy(), -1)
    order = np.argsort(-frequency, kind="stable")[:SIMILAR_ENTITIES]
    chosen = pa.array(np.sort(order[frequency[order] >= 0]))
    keys, names = (entities.column(name).take(chosen).to_pylist() for name in ("_key", "name"))
    tag = vectors.embedder.model.tag
    digests = np.array([_digest(f"{tag}\n{name}") for name in names], dtype="S32")
    left, right, cosine = find_similar_pairs(
        digests,
        lambda rows: vectors.read([keys[row] for row in rows.tolist()]),
        SIMILAR_THRESHOLD,
        SIMILAR_PER_ENTITY,
        cache,
    )
    ends = [
        (node_id("entities", keys[i]), node_id("entities", keys[j]))
        for i, j in zip(left.tolist(), right.tolist(), strict=True)
    ]
    kind = str(RelationType.SIMILAR_TO)
    return pa.table(
        {
            "_key": pa.array([edge_key(tail, kind, head) for tail, head in ends], pa.string()),
            "_from": pa.array([tail for tail, _ in ends], pa.string()),
            "_to": pa.array([head for _, head in ends], pa.string()),
            "type": pa.array([kind] * len(ends), pa.string()),
            "strength": pa.array(np.clip(cosine, 0.0, 1.0)),
        }
    )


def _find_basis(keys: pa.Array, titles: pa.Table, chunks: pa.Table, tag: str) -> pa.Array:
    """For each entity a digest of the chunks of its documents that have a vector of this model, "" without any."""
    held = chunks.filter(pc.fill_null(pc.equal(chunks.column("embedding_model"), tag), False))
    title = pc.index_in(held.column("document"), value_set=titles.column("document").combine_chunks())
    held = held.filter(pc.is_valid(title))
    ids = pc.binary_join_element_wise("entities", keys, "/")
    entity = pc.index_in(titles.column("entity").take(title.drop_null()), value_set=ids).to_numpy()
    parts = pc.binary_join_element_wise(held.column("_key"), held.column("sha256"), " ").to_pylist()
    of_entity, group = np.unique(entity, return_inverse=True)
    signed = sign_texts(parts).add_up(group, len(of_entity))
    letters = np.stack([signed.high, signed.low], axis=1).astype(">u8").tobytes().hex()
    digests = [letters[begin : begin + 32] for begin in range(0, len(letters), 32)]
    place = np.full(len(keys), -1, dtype=np.int64)
    place[of_entity] = np.arange(len(of_entity))
    return pa.array([*digests, ""], pa.string()).take(pa.array(np.where(place < 0, len(digests), place)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest().encode()


def _matrix(lists: pa.Array, dimension: int = 0) -> Matrix:
    """(n_rows, dim) of a list column without nulls."""
    flat: Matrix = lists.flatten().to_numpy()
    return flat.reshape(len(lists), dimension or len(flat) // max(1, len(lists)))


def _replace(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.append_column(name, values) if index < 0 else table.set_column(index, name, values)
