"""Vectors by node and nodes by vector, within one model: exact, or by a faiss index where there are
many.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import BadQuery, SnapshotError
from hades.ports.graph import Flags, Numbers, Weights
from hades.snapshot.files import NOWHERE, Arrays, Folder, best
from models.arrays import Ints, Singles, blocks_of, unit_rows

APPROXIMATE_FROM = 100_000  # vectors; an exact scan of fewer takes a few milliseconds
_PROBED = 64  # cells that an approximate search scans at least
_COMPARED = 8  # candidates for each wanted hit that are compared exactly
_LEAST_COMPARED = 384
_SAMPLED = 64  # vectors for each cell that the cells are fitted to
_REMEMBERED_BYTES = 1 << 26  # of cosines with questions asked lately, in each space
_REMEMBERED = 16
_FEW = 8  # fewer rows than one in this number are compared one by one


class VectorSpace:
    """The vectors of one model in one collection; rows are places in the collection."""

    def __init__(
        self,
        arrays: Arrays,
        collection: str,
        number: int,
    ) -> None:
        prefix = f"vector.{collection}.{number}"
        self._value: Singles = arrays[f"{prefix}.value"]
        self._norm: Singles = arrays[f"{prefix}.norm"]
        self._row: Ints = arrays[f"{prefix}.row"]
        self._place: Ints = arrays[f"{prefix}.place"]
        self._stored_index: NDArray[np.uint8] | None = arrays.get(f"{prefix}.index")
        remembered = _REMEMBERED_BYTES // max(1, 4 * len(self._norm))
        self._cosines = lru_cache(min(_REMEMBERED, max(1, remembered)))(
            partial(_compare, self._value, self._norm)
        )

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._value.shape[1])

    @property
    def is_approximate(self) -> bool:
        """Whether a search of the whole space looks at a part of it only."""
        return self._stored_index is not None

    def take(self, rows: Numbers) -> tuple[Singles, Flags]:
        """(n, dimension) and which rows have a vector; the others are zeros."""
        place = self._place[rows]
        has_vector = place >= 0
        values = np.zeros((len(rows), self.dimension), np.float32)
        values[has_vector] = self._value[place[has_vector]]
        return values, has_vector

    def nearest(
        self,
        unit: Singles,
        limit: int,
        rows: Numbers | None = None,
    ) -> tuple[Numbers, Weights]:
        """Rows by cosine to a vector of length 1, highest first, then by row; a vector of zeros
        scores 0.

        Exact among given `rows`, and in a space that has no index.
        """
        self._check(unit)
        place: NDArray[np.integer[Any]] | None = None

        if rows is not None:
            place = self._place[rows]
            place = np.sort(place[place >= 0])
        elif self.is_approximate:
            _, near_places = self._index.search(unit[None], max(_LEAST_COMPARED, _COMPARED * limit))
            place = np.sort(near_places[near_places >= 0])

        row = self._row if place is None else self._row[place]
        scores = self._compare_at(unit, place)
        nearest = best(scores, row, limit)
        return row[nearest].astype(np.int64), scores[nearest]

    def cosines(self, unit: Singles, rows: Numbers) -> Weights:
        """The cosine of each row with a vector of length 1; 0 for a row without a vector."""
        self._check(unit)
        place = self._place[rows]
        has_vector = place >= 0
        cosines = np.zeros(len(rows), np.float32)
        cosines[has_vector] = self._compare_at(unit, place[has_vector])
        return cosines

    @cached_property
    def _index(self) -> Any:
        import faiss  # only graphs with an index load it

        assert self._stored_index is not None
        return faiss.deserialize_index(self._stored_index)

    def _compare_at(
        self,
        unit: Singles,
        place: NDArray[np.integer[Any]] | None,
    ) -> Weights:
        """Cosines at these places; of all where they are None. Many places cost a comparison with
        all, which is cached.

        The cosine of a place is the same number either way.
        """
        if place is not None and (self.is_approximate or len(place) * _FEW < len(self._norm)):
            return cosines_with(
                self._value[place],
                self._norm[place],
                unit,
            )

        whole = self._cosines(unit.tobytes())
        return whole if place is None else whole[place]

    def _check(self, unit: Singles) -> None:
        if len(unit) != self.dimension:
            raise BadQuery(
                f"the vector has dimension {len(unit)}, the model makes {self.dimension}"
            )


def write_vectors(
    folder: Folder,
    collection: str,
    rows: pa.Table,
    field: str,
) -> tuple[str, ...]:
    """Write the vectors of each model as `vector.<collection>.<number>`; the tags of the models, by
    number.

    `value` (n, dimension) float32, `norm` (n,) float32, `row` (n,) which row of the collection each
    belongs to, and `place` the other way round, -1 for rows without a vector of that model. From
    `APPROXIMATE_FROM` vectors on also `index`, the bytes of a faiss index.
    """
    vectors = rows[field]
    tags = rows["embedding_model"]
    usable = pc.and_(vectors.is_valid(), tags.is_valid())
    models: list[str] = pc.unique(tags.filter(usable)).to_pylist()

    for number, tag in enumerate(models):
        chosen = pc.fill_null(pc.and_(usable, pc.equal(tags, tag)), False)
        row = np.flatnonzero(np.asarray(chosen))
        model_vectors = vectors.filter(chosen)
        lengths = np.asarray(pc.list_value_length(model_vectors))

        if (lengths != lengths[0]).any():
            key = rows["_key"][int(row[np.argmax(lengths != lengths[0])])].as_py()
            raise SnapshotError(
                f"{collection}/{key}: its vector of {tag} has not the dimension {lengths[0]} of "
                "the others; "
                "embed the collection again, nothing was published"
            )

        value = np.asarray(pc.list_flatten(model_vectors), np.float32).reshape(
            -1,
            int(lengths[0]),
        )
        blocks = (value[block].astype(np.float64) for block in blocks_of(len(value)))
        norm = np.concatenate([np.linalg.norm(block, axis=1) for block in blocks])
        place = np.full(rows.num_rows, NOWHERE, np.int32)
        place[row] = np.arange(len(row), dtype=np.int32)
        arrays = {
            "value": value,
            "norm": norm.astype(np.float32),
            "row": row.astype(np.int32),
            "place": place,
        }

        if len(row) >= APPROXIMATE_FROM:
            arrays["index"] = fit_index(value)

        folder.write_arrays(f"vector.{collection}.{number}", arrays)

    return tuple(models)


def fit_index(values: Singles) -> NDArray[np.uint8]:
    """A faiss index of the vectors by inner product, as bytes; the same vectors give the same
    bytes.
    """
    import faiss

    cells = round(4 * math.sqrt(len(values)))
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # the order of sums must not depend on the machine

    try:
        index: Any = faiss.index_factory(
            values.shape[1],
            f"IVF{cells},SQ8",
            faiss.METRIC_INNER_PRODUCT,
        )
        index.cp.niter = 10
        index.cp.min_points_per_centroid = 1
        index.cp.max_points_per_centroid = _SAMPLED
        step = max(1, len(values) // (_SAMPLED * cells))
        index.train(unit_rows(values[::step]))

        for block in blocks_of(len(values)):
            index.add(unit_rows(values[block]))
    finally:
        faiss.omp_set_num_threads(threads)

    index.nprobe = min(cells, max(_PROBED, cells // 16))
    stored: NDArray[np.uint8] = faiss.serialize_index(index)
    return stored


def _compare(
    values: Singles,
    norms: Singles,
    unit: bytes,
) -> Weights:
    """Every cosine of a space, read-only: a turn compares its question several times, but the
    product is one.
    """
    scores = cosines_with(
        values,
        norms,
        np.frombuffer(unit, np.float32),
    )
    scores.setflags(write=False)
    return scores


def cosines_with(
    values: Singles,
    norms: Singles,
    unit: Singles,
) -> Weights:
    """(n,) cosine of each row with a vector of length 1; a row of zeros scores 0.

    One question keeps one core busy: a matrix product would spin on all of them, which many askers
    pay for.
    """
    products = np.einsum("ij,j->i", values, unit)
    return np.asarray(
        np.divide(products, np.where(norms == 0, np.float32(1), norms)),
        np.float32,
    )


def unit_vector(vector: Singles) -> Singles:
    """The question at length 1; refuses what points nowhere."""
    question = np.asarray(vector, np.float32)
    if question.ndim != 1 or question.size == 0 or not np.isfinite(question).all():
        raise BadQuery("the vector must be one row of finite numbers")

    norm = float(np.linalg.norm(question))
    if norm == 0.0:
        raise BadQuery("the vector is all zeros and points nowhere")

    unit: Singles = question / np.float32(norm)
    return unit
