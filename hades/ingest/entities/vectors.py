"""Vectors of entities, and `similar_to` edges between names whose vectors nearly agree."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.chunks import as_lists
from hades.ingest.entities.tables import edge_columns, fill
from hades.ports.services import Embedder, ProgressReport, silent
from hades.ports.store import RowStore, Term
from hades.text.words import strongest
from models.arrays import Flags, Floats, Longs, Singles, blocks_of
from schemas.ids import node_id
from schemas.nodes import EntityType, RelationType

NAME, DOCUMENT = "name", "document"
WINDOW = 4_096  # names embedded at a time
SIMILAR_THRESHOLD = 0.8
SIMILAR_ENTITIES = 10_000  # the most frequent ones; all pairs of more would cost minutes
SIMILAR_PER_ENTITY = 8
_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine


def with_vectors(
    store: RowStore,
    embedder: Embedder,
    entities: pa.Table,
    titles: pa.Table,
    progress: ProgressReport = silent,
) -> pa.Table:
    """The entities with their vectors: of the documents that an entity titles, else of its name.

    `titles` are `_id`s of documents and of the entities they title. A name that was embedded before
    keeps its vector.
    """
    tag = embedder.model.tag
    keys, names = (entities[name].combine_chunks() for name in ("_key", "name"))
    vectors = np.zeros((len(keys), embedder.model.dimension), np.float32)
    of_document = _document_vectors(store, tag, titles)
    is_titled = np.zeros(len(keys), np.bool_)

    for row, key in enumerate(keys.to_pylist()):
        if (vector := of_document.get(node_id("entities", key))) is not None:
            vectors[row], is_titled[row] = vector, True

    has_vector = _copy_name_vectors(
        store,
        tag,
        keys,
        names,
        vectors,
        is_wanted=~is_titled,
    )
    missing = np.flatnonzero(~is_titled & ~has_vector)
    for start in range(0, len(missing), WINDOW):
        part = missing[start : start + WINDOW]
        vectors[part] = embedder.embed(names.take(pa.array(part)).to_pylist())
        progress(
            "names",
            min(start + WINDOW, len(missing)),
            len(missing),
        )

    columns = {
        "embedding": as_lists(vectors),
        "vector_of": pa.array(np.where(is_titled, DOCUMENT, NAME).tolist(), pa.string()),
        "embedding_model": pa.repeat(tag, len(keys)),
    }
    for name, values in columns.items():
        entities = entities.set_column(
            entities.schema.get_field_index(name),
            name,
            values,
        )

    return entities


def similar_edges(entities: pa.Table) -> pa.Table:
    """`similar_to` between names whose vectors nearly agree, among the most frequent entities.

    Code symbols are left out: those of one class share most of their qualified name and would all
    be similar.
    """
    is_name = pc.and_(
        pc.equal(entities["vector_of"], NAME),
        pc.not_equal(entities["type"], str(EntityType.CODE_SYMBOL)),
    )
    frequency = np.where(
        is_name.to_numpy(),
        entities["frequency"].to_numpy(),
        -1,
    )
    order = np.argsort(-frequency, kind="stable")[:SIMILAR_ENTITIES]
    frequent = pa.array(np.sort(order[frequency[order] >= 0]))
    chosen = entities.select(["_key", "embedding"]).take(frequent)
    ids = pc.binary_join_element_wise(
        "entities",
        chosen["_key"].combine_chunks(),
        "/",
    )
    vectors = _matrix(chosen["embedding"])
    source, target, cosine = similar_pairs(
        vectors,
        SIMILAR_THRESHOLD,
        SIMILAR_PER_ENTITY,
    )
    tail = ids.take(pa.array(source))
    head = ids.take(pa.array(target))
    columns = edge_columns(RelationType.SIMILAR_TO, tail, head)
    columns["strength"] = pa.array(np.clip(cosine, 0.0, 1.0))
    return fill("relations", len(source), columns)


def similar_pairs(
    vectors: Singles,
    threshold: float = SIMILAR_THRESHOLD,
    max_per_node: int = 32,
) -> tuple[Longs, Longs, Floats]:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in order; each row keeps its
    `max_per_node` nearest.

    `vectors` is (n_rows, dim) and need not be of unit length; rows of zeros or of non-finite
    numbers have no pairs. A pair stays when it is among the nearest of both its rows, ties going to
    the smaller row number. A product of blocks only nominates pairs; each is then measured in
    double precision, so that blocks do not show in the numbers.
    """
    rows = np.flatnonzero(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    exact = vectors[rows].astype(np.float64)
    exact /= np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    units = exact.astype(np.float32)
    parts: list[Longs] = [np.zeros((2, 0), np.int64)]

    for begin, column_begin in combinations_with_replacement(range(0, len(units), _BLOCK), 2):
        product = units[begin : begin + _BLOCK] @ units[column_begin : column_begin + _BLOCK].T
        rows_near, columns_near = np.nonzero(product >= threshold - _SLACK)
        pairs = np.stack([begin + rows_near, column_begin + columns_near])
        parts.append(pairs[:, pairs[0] < pairs[1]])

    source, target = np.concatenate(parts, axis=1)
    cosine = np.zeros(len(source))
    for part in blocks_of(len(source), 16 * _BLOCK):
        products = np.einsum(
            "ij,ij->i",
            exact[source[part]],
            exact[target[part]],
        )
        cosine[part] = np.minimum(products, 1.0)

    near = np.flatnonzero(cosine >= threshold)
    near = near[
        strongest(
            rows[source[near]],
            rows[target[near]],
            cosine[near],
            max_per_node,
        )
    ]
    near = near[np.lexsort((target[near], source[near]))]
    return rows[source[near]], rows[target[near]], cosine[near]


def _copy_name_vectors(
    store: RowStore,
    tag: str,
    keys: pa.Array,
    names: pa.Array,
    vectors: Singles,
    is_wanted: Flags,
) -> Flags:
    """Copy stored vectors of names that are still called so into wanted rows; which rows have
    one.
    """
    has_vector = np.zeros(len(keys), np.bool_)
    columns = ["_key", "name", "vector_of", "embedding"]

    for batch in store.scan(
        "entities",
        where=[Term("embedding_model", "==", tag)],
        columns=columns,
    ):
        is_of_name = pc.equal(batch["vector_of"], NAME)
        named_rows = batch.filter(pc.and_(is_of_name, pc.is_valid(batch["embedding"])))
        place = pc.index_in(named_rows["_key"], value_set=keys)
        is_same = pc.fill_null(pc.equal(names.take(place), named_rows["name"]), False)
        is_same = pc.and_(is_same, pc.fill_null(pa.array(is_wanted).take(place), False))
        rows = place.filter(is_same).to_numpy()
        embeddings = named_rows["embedding"].filter(is_same)
        vectors[rows] = _matrix(embeddings, vectors.shape[1])
        has_vector[rows] = True

    return has_vector


def _document_vectors(
    store: RowStore,
    tag: str,
    titles: pa.Table,
) -> dict[str, Singles]:
    """Entity id to the mean vector of the chunks of the documents it titles, unit length.

    Sums run in float64 over chunks in key order, so the mean does not depend on how they were read.
    """
    entity_of = {}
    for row in titles.to_pylist():
        entity_of[row["document"]] = row["entity"]

    sums: dict[str, Floats] = {}
    where = [Term("embedding_model", "==", tag)]
    if not entity_of:
        return {}

    for batch in store.scan(
        "doc_chunks",
        where=where,
        columns=["document", "embedding"],
    ):
        rows = _matrix(batch["embedding"]).astype(np.float64)
        for document, vector in zip(batch["document"].to_pylist(), rows, strict=True):
            entity = entity_of.get(document)
            if entity is not None:
                sums[entity] = sums[entity] + vector if entity in sums else vector

    vectors: dict[str, Singles] = {}
    for entity, total in sums.items():
        norm = float(np.sqrt(np.einsum("i,i->", total, total)))
        if norm > 0:
            vectors[entity] = (total / norm).astype(np.float32)

    return vectors


def _matrix(lists: pa.Array | pa.ChunkedArray, dimension: int = 0) -> Singles:
    """(n_rows, dim) of a list column without nulls."""
    if isinstance(lists, pa.ChunkedArray):
        whole = lists.combine_chunks()
    else:
        whole = lists

    flat: Singles = whole.flatten().to_numpy()
    return flat.reshape(len(whole), dimension or len(flat) // max(1, len(whole)))
