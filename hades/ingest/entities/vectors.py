"""Vectors and near-parallel pairs."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.chunks import as_lists
from hades.ingest.entities.corpus import sign_texts
from hades.ports.services import Embedder, ProgressReport, silent
from hades.ports.store import RowStore, Term
from hades.text.words import place_in_run
from schemas.ids import edge_key, node_id
from schemas.nodes import EntityType, RelationType

# Which vectors came near each other and how near, kept between derivations: only new ones are compared with others.
# Vectors are known by a digest. A cache that is absent, damaged or of another threshold costs time, never a result.


Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Matrix = NDArray[np.float32]
Digests = NDArray[np.bytes_]
_FILE = "similar-pairs.npz"
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class KnownPairs:
    """Which of the digests asked for are known, the pairs of known ones, and the known vectors at unit length."""

    is_known: NDArray[np.bool_]
    left: Longs  # places among the digests asked for
    right: Longs
    cosine: Doubles  # of each pair
    own: Doubles  # of each known vector with itself, which rounding may put below 1
    units: Matrix  # one row a known digest, in their order; no rows when every digest is known and none was dropped

    @classmethod
    def none(cls, asked: int) -> KnownPairs:
        """Nothing is known."""
        empty, zero = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
        return cls(np.zeros(asked, dtype=np.bool_), empty, empty, zero, zero, np.zeros((0, 0), dtype=np.float32))


@dataclass(frozen=True)
class _Held:
    """The file but for the vectors, which are read when some digest is new or gone."""

    digests: Digests  # in order
    left: Longs
    right: Longs
    cosine: Doubles
    own: Doubles


class PairCache:
    """Digests of vectors in order, the vectors, and pairs of places whose products came near the threshold."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._held: tuple[float, _Held | None] | None = None  # as last read, with the threshold asked for

    def find(self, digests: Digests, threshold: float) -> KnownPairs:
        """What is known of these distinct digests, which are in order."""
        held, units = self._load(digests, threshold)
        self._held = threshold, held
        if held is None or not len(digests) or not len(held.digests):
            return KnownPairs.none(len(digests))
        place = np.searchsorted(digests, held.digests)
        place[place == len(digests)] = 0
        still = np.flatnonzero(digests[place] == held.digests)
        number = np.full(len(held.digests), -1, dtype=np.int64)
        number[still] = place[still]
        known = np.zeros(len(digests), dtype=np.bool_)
        known[place[still]] = True
        both = np.flatnonzero((number[held.left] >= 0) & (number[held.right] >= 0))
        return KnownPairs(
            known,
            number[held.left[both]],
            number[held.right[both]],
            held.cosine[both],
            held.own[still],
            units[still] if len(units) else units,
        )

    def keep(self, digests: Digests, rows: Longs, pairs: KnownPairs, threshold: float) -> None:
        """Write these vectors and their pairs in place of those held, unless they are the same.

        `rows` are places among the digests, those that have a vector, beside `units` and `own`; so are the ends of the
        pairs.
        """
        order = np.argsort(rows, kind="stable")
        held = self._held[1] if self._held and self._held[0] == threshold else None
        if held is not None and np.array_equal(digests[rows[order]], held.digests):
            return
        number = np.full(len(digests), -1, dtype=np.int64)
        number[rows[order]] = np.arange(len(rows))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(f"{_FILE}.{os.getpid()}.partial")
        with partial.open("wb") as out:
            np.savez(
                out,
                digests=digests[rows[order]],
                units=pairs.units[order],
                own=pairs.own[order],
                left=number[pairs.left],
                right=number[pairs.right],
                cosine=pairs.cosine,
                threshold=np.array(threshold),
            )
        partial.replace(self._file)

    def _load(self, digests: Digests, threshold: float) -> tuple[_Held | None, Matrix]:
        """What the file holds, and its vectors unless these digests are exactly those held."""
        none = np.zeros((0, 0), dtype=np.float32)
        try:
            with np.load(self._file, allow_pickle=False) as file:
                held = _Held(file["digests"], file["left"], file["right"], file["cosine"], file["own"])
                is_same = float(file["threshold"]) == threshold
                is_needed = is_same and not np.array_equal(held.digests, digests)
                units = file["units"] if is_needed else none
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None, none
        ends = np.concatenate([held.left, held.right])
        is_whole = len(held.left) == len(held.right) == len(held.cosine) and len(held.own) == len(held.digests)
        is_whole &= not is_needed or (units.ndim == 2 and len(units) == len(held.digests))
        is_whole &= not len(ends) or bool(ends.min() >= 0 and ends.max() < len(held.digests))
        return (held, units) if is_same and is_whole else (None, none)


def vector_digests(vectors: Matrix, rows: Longs) -> Digests:
    """One digest for each of these rows, as hexadecimal digits."""
    texts = (hashlib.blake2b(vectors[row].tobytes(), digest_size=_DIGEST_BYTES).hexdigest() for row in rows.tolist())
    return np.array([text.encode() for text in texts], dtype=f"S{2 * _DIGEST_BYTES}")


# Pairs of nearly parallel vectors, for `similar_to` edges: found in blocks, measured one by one. A product of
# blocks only nominates pairs; each nominated pair is then measured alone in double precision, so the number does
# not depend on how the rows were blocked, nor on which pairs were measured by an earlier run (`PairCache`).


_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine
Fetch = Callable[[Longs], Matrix]
Pairs = tuple[Longs, Longs, Doubles]
_NONE: Longs = np.zeros(0, dtype=np.int64)


def similar_pairs(
    vectors: Matrix, threshold: float = 0.8, max_per_node: int = 32, cache: PairCache | None = None
) -> Pairs:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in order; each row keeps its `max_per_node` nearest.

    `vectors` is (n_rows, dim) and need not be of unit length; rows of zeros or of non-finite numbers have no pairs. A
    pair stays when it is among the nearest of both its rows, ties going to the smaller row number. With a cache only
    vectors that it does not know are compared with the others.
    """
    digests = vector_digests(vectors, np.arange(len(vectors)))
    return find_similar_pairs(digests, vectors.__getitem__, threshold, max_per_node, cache)


def find_similar_pairs(
    digests: Digests, fetch: Fetch, threshold: float, max_per_node: int, cache: PairCache | None = None
) -> Pairs:
    """The pairs of rows that are known by digests; equal digests mean equal vectors.

    `fetch` gives the vectors of rows. It is asked for those that the cache does not know and for those of new pairs.
    """
    if max_per_node < 1 or not 0.0 < threshold <= 1.0:
        raise ValueError(f"need 0 < threshold <= 1 and max_per_node >= 1, not {threshold} and {max_per_node}")
    left, right, cosine = _nominate(digests, fetch, threshold, cache)
    near = cosine >= threshold
    left, right, cosine = left[near], right[near], cosine[near]
    keep = _nearest(left, right, cosine, max_per_node)
    left, right, cosine = left[keep], right[keep], cosine[keep]
    order = np.lexsort((right, left))
    return left[order], right[order], cosine[order]


def _nominate(digests: Digests, fetch: Fetch, threshold: float, cache: PairCache | None) -> Pairs:
    """Pairs left < right of rows whose product in single precision comes near the threshold, with their cosines."""
    distinct, first, of = np.unique(digests, return_index=True, return_inverse=True)
    known = cache.find(distinct, threshold) if cache else KnownPairs.none(len(distinct))
    fresh = np.flatnonzero(~known.is_known)
    units, own = known.units, known.own
    if len(fresh):
        made = fetch(first[fresh])
        is_usable = np.isfinite(made).all(axis=1) & made.any(axis=1)
        fresh = fresh[is_usable]
        new_units, new_own = _make_units(made[is_usable])
        units = np.concatenate([new_units, units]) if len(units) else new_units
        own = np.concatenate([new_own, own])
    order = np.concatenate([fresh, np.flatnonzero(known.is_known)])  # beside `units` and `own`
    one, two = _compare(units, len(fresh), threshold)
    pairs = KnownPairs(
        known.is_known,
        np.concatenate([known.left, order[one]]),
        np.concatenate([known.right, order[two]]),
        np.concatenate([known.cosine, _measure(fetch, first[order[one]], first[order[two]])]),
        own,
        units,
    )
    if cache:
        cache.keep(distinct, order, pairs, threshold)
    place = np.full(len(distinct), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    rows = np.flatnonzero(place[of] >= 0)
    return _spread(pairs, own, place, rows, of[rows])


def _measure(fetch: Fetch, left: Longs, right: Longs) -> Doubles:
    """The cosine of each pair of rows; only rows that stand in a pair are read and scaled."""
    if not len(left):
        return np.zeros(0, dtype=np.float64)
    rows, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    unit = _scale(fetch(rows))
    return _multiply(unit[place[: len(left)]], unit[place[len(left) :]])


def _multiply(left: Doubles, right: Doubles) -> Doubles:
    """The product of each row of `left` with the same row of `right`, at most 1."""
    cosine: Doubles = np.einsum("ij,ij->i", left, right)
    return np.minimum(cosine, 1.0)


def _scale(vectors: Matrix) -> Doubles:
    """The rows, finite and none of zeros, at unit length."""
    exact = vectors.astype(np.float64)
    scaled: Doubles = exact / np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    return scaled


def _make_units(vectors: Matrix) -> tuple[Matrix, Doubles]:
    """The rows at unit length in single precision, and the cosine of each with itself.

    Some rows at a time: in double precision all of them would take much room.
    """
    units, own = np.empty_like(vectors), np.empty(len(vectors), dtype=np.float64)
    for begin in range(0, len(vectors), _BLOCK):
        scaled = _scale(vectors[begin : begin + _BLOCK])
        units[begin : begin + _BLOCK], own[begin : begin + _BLOCK] = scaled, _multiply(scaled, scaled)
    return units, own


def _compare(units: Matrix, n_fresh: int, threshold: float) -> tuple[Longs, Longs]:
    """Pairs of rows near the threshold, each once: of the first `n_fresh` with all after them."""
    lefts, rights = [_NONE], [_NONE]
    for begin in range(0, n_fresh, _BLOCK):
        block = units[begin : min(begin + _BLOCK, n_fresh)]
        for other in range(begin, len(units), _BLOCK):
            one, two = np.nonzero(block @ units[other : other + _BLOCK].T >= threshold - _SLACK)
            is_new = begin + one < other + two
            lefts.append(begin + one[is_new])
            rights.append(other + two[is_new])
    return np.concatenate(lefts), np.concatenate(rights)


def _spread(pairs: KnownPairs, own: Doubles, place: Longs, rows: Longs, of: Longs) -> Pairs:
    """Pairs of distinct vectors as pairs of the rows that have them, and every pair of rows with the same vector.

    `of` is the distinct vector of each of `rows`; `place` is where each distinct vector stands in `own`.
    """
    members = np.argsort(of, kind="stable")
    count = np.bincount(of, minlength=len(place))
    begin = np.cumsum(count) - count
    twins = np.flatnonzero(count > 1)
    left, right = np.concatenate([pairs.left, twins]), np.concatenate([pairs.right, twins])
    cosine = np.concatenate([pairs.cosine, own[place[twins]]])
    times = count[left] * count[right]
    pair = np.repeat(np.arange(len(left)), times)
    turn = place_in_run(pair)
    one = members[begin[left[pair]] + turn // count[right[pair]]]
    two = members[begin[right[pair]] + turn % count[right[pair]]]
    keep = (left[pair] != right[pair]) | (one < two)
    one, two = one[keep], two[keep]
    return rows[np.minimum(one, two)], rows[np.maximum(one, two)], cosine[pair][keep]


def _nearest(left: Longs, right: Longs, cosine: Doubles, most: int) -> NDArray[np.bool_]:
    """Whether each pair is among the `most` nearest of both its rows."""
    row, partner = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((partner, -np.concatenate([cosine, cosine]), row))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = place_in_run(row[order])
    near = rank < most
    return near[: len(left)] & near[len(left) :]


# Vectors of entities: of the document an entity titles, else of its name; what is already there is kept. An entity
# whose name and whose documents' chunks are those of the last derivation has the vector it had; only the others are
# worked out. From the vectors of names follow the `similar_to` edges.


NAME, DOCUMENT = "name", "document"
BASIS = "vector_basis"  # a digest of the chunks that an entity's vector is the mean of; "" for a vector of a name
WINDOW = 4_096
SIMILAR_THRESHOLD = 0.8
SIMILAR_ENTITIES = 10_000  # the most frequent ones; all pairs of more would cost minutes
SIMILAR_PER_ENTITY = 8
SCAN_SHARE = 10  # at most a tenth of the rows is looked up by key; more are found by a scan of all


@dataclass
class EntityVectors:
    """Makes and reads vectors of entities; those it made are held until they are written."""

    store: RowStore
    embedder: Embedder
    titles: pa.Table  # document and entity: which document (`_id`) titles which entity (`_id`)
    progress: ProgressReport = silent
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
