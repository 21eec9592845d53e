"""Nearest by vector, codes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import Flags, Numbers, Weights
from hades.snapshot.files import ArrayReader, best
from models.vector_codes import (
    Cells,
    CodedRows,
    SignedRows,
    best_in_ranges,
    bounds,
    code_question,
    code_steps,
    multiply,
    sign_question,
)

# Search over codes of vectors: exact where all are scanned, approximate where a few cells of many are.


Singles = NDArray[np.float32]
KERNEL = "models.vector_codes"
PROBED = 400  # cells that an approximate search scans at least: recall@10 is .986 at a million vectors
PROBED_SHARE = 0.05  # of all cells, where that is more
COMPARED = 8  # candidates for each wanted hit that are compared exactly; signs reorder neighbours
LEAST_COMPARED = 384
FINE_BITS = 256  # signs that tell neighbours apart; of shorter vectors more are compared


@dataclass(frozen=True)
class CodedVectors:
    """The codes of one space, all of which are scanned."""

    rows: CodedRows
    is_approximate: ClassVar[bool] = False

    def candidates(self, units: Sequence[Singles], limit: int) -> list[Numbers]:
        """For each question of length 1 the places of the vectors to compare exactly with it, in rising order.

        The best `limit` are surely among them; one scan serves every question.
        """
        if limit >= len(self.rows.steps):
            return [np.arange(len(self.rows.steps)) for _ in units]
        questions = [code_question(unit) for unit in units]
        products = multiply(self.rows.codes, np.stack([question.parts for question in questions]))
        found = []
        for question, own in zip(questions, products, strict=True):
            near, off = bounds(question, own, self.rows)
            bar = np.partition(near - off, len(near) - limit)[len(near) - limit]
            found.append(np.flatnonzero(near + off >= bar))
        return found


@dataclass(frozen=True)
class VectorsInCells:
    """The signs of one space in the order of its cells; a search scans the nearest cells."""

    rows: SignedRows
    cells: Cells
    is_approximate: ClassVar[bool] = True

    def candidates(self, units: Sequence[Singles], limit: int) -> list[Numbers]:
        """For each question of length 1 the places of the vectors to compare exactly with it, in rising order.

        Nearly all of the best `limit` are among them.
        """
        return [self._candidates(unit, limit) for unit in units]

    def _candidates(self, unit: Singles, limit: int) -> Numbers:
        cells = self.cells
        probed = min(len(cells.centres), max(PROBED, round(PROBED_SHARE * len(cells.centres))))
        towards = self._compare_centres(unit)
        near = np.argpartition(towards, len(towards) - probed)[len(towards) - probed :]
        chosen = near[np.argsort(-towards[near], kind="stable")]  # the nearest first: few later ones are better
        wanted = max(LEAST_COMPARED, COMPARED * limit) * max(1, FINE_BITS // len(unit))
        starts, ends = cells.starts[chosen], cells.starts[chosen + 1]
        best = best_in_ranges(self.rows, sign_question(unit), starts, ends, towards[chosen], wanted)
        return np.sort(cells.places[best]).astype(np.int64)

    def _compare_centres(self, unit: Singles) -> Singles:
        """(cells,) the cosine of each centre up to a few thousandths, far less than what signs are off by."""
        codes, steps = self._coded_centres
        question = code_question(unit)
        products = multiply(codes, question.parts[None])[0]
        cosines: Singles = products.astype(np.float32) * (steps * np.float32(question.step))
        return cosines

    @cached_property
    def _coded_centres(self) -> tuple[NDArray[np.int8], Singles]:
        """Centres as 8-bit integers and the steps of each: a quarter of what a search would read."""
        steps = code_steps(self.cells.centres)
        return np.rint(self.cells.centres / steps[:, None]).astype(np.int8), steps


def read_coded(arrays: Mapping[str, NDArray[Any]] | Any, prefix: str) -> CodedVectors | VectorsInCells | None:
    """The codes of a space; None where it has none, as in a large space that an older version wrote."""
    if f"{prefix}.sign" in arrays:
        signed = SignedRows(arrays[f"{prefix}.sign"], arrays[f"{prefix}.reach"])
        centres, places = arrays[f"{prefix}.centre"], arrays[f"{prefix}.cell_place"]
        return VectorsInCells(signed, Cells(centres, places, arrays[f"{prefix}.cell_start"]))
    if f"{prefix}.code" not in arrays or f"{prefix}.centre" in arrays:
        return None
    return CodedVectors(CodedRows(arrays[f"{prefix}.code"], arrays[f"{prefix}.step"], arrays[f"{prefix}.slack"]))


def is_kernel_loaded() -> bool:
    """Whether scanning costs no loading: an exact search is not worth half a second of it, many of them are."""
    return KERNEL in sys.modules


# Vectors by node and nodes by vector, within one model.


_REMEMBERED_BYTES = 1 << 26  # of cosines with questions asked lately, in each space
_REMEMBERED = 16
_FEW = 8  # fewer rows than one in this number are compared one by one


class VectorSpace:
    """The vectors of one model in one collection; rows are places in the collection."""

    def __init__(self, arrays: ArrayReader, collection: str, number: int) -> None:
        prefix = f"vector.{collection}.{number}"
        self._value: NDArray[np.float32] = arrays[f"{prefix}.value"]
        self._norm: NDArray[np.float32] = arrays[f"{prefix}.norm"]
        self._row: NDArray[np.int32] = arrays[f"{prefix}.row"]
        self._place: NDArray[np.int32] = arrays[f"{prefix}.place"]
        self._coded = read_coded(arrays, prefix)
        remembered = _REMEMBERED_BYTES // max(1, 4 * len(self._norm))
        self._cosines = lru_cache(min(_REMEMBERED, max(1, remembered)))(partial(_compare, self._value, self._norm))

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._value.shape[1])

    @property
    def is_approximate(self) -> bool:
        """Whether a search of the whole space looks at a part of it only."""
        return self._coded is not None and self._coded.is_approximate

    def take(self, rows: Numbers) -> tuple[NDArray[np.float32], Flags]:
        """(n, dimension) and which rows have a vector; the others are zeros."""
        place = self._place[rows]
        there = place >= 0
        values = self._value.take(place, axis=0, mode="clip") if len(self._value) else np.zeros((len(rows), 0), "f4")
        values[~there] = 0.0
        return values, there

    def nearest(self, unit: NDArray[np.float32], limit: int, rows: Numbers | None) -> tuple[Numbers, Weights]:
        """Rows by cosine to a vector of length 1, highest first, then by row; a vector of zeros scores 0.

        Exact among given `rows`, and in a space that is small enough to be scanned.
        """
        if rows is None:
            return self.nearest_each([unit], limit)[0]
        self._check(unit)
        held = self._place[rows]
        return self._best_at(unit, limit, np.sort(held[held >= 0]))

    def nearest_each(self, units: Sequence[NDArray[np.float32]], limit: int) -> list[tuple[Numbers, Weights]]:
        """What `nearest` finds for each of several vectors in the whole space, which is scanned once for all."""
        for unit in units:
            self._check(unit)
        places: Sequence[Numbers | None] = [None] * len(units)
        if self._coded is not None and (self._coded.is_approximate or is_kernel_loaded()):
            places = self._coded.candidates(units, limit)
        return [self._best_at(unit, limit, place) for unit, place in zip(units, places, strict=True)]

    def _best_at(
        self, unit: NDArray[np.float32], limit: int, place: NDArray[np.integer[Any]] | None
    ) -> tuple[Numbers, Weights]:
        row = self._row if place is None else self._row[place]
        scores = self._compare_at(unit, place)
        kept = best(scores, row, limit)
        return row[kept].astype(np.int64), scores[kept]

    def cosines(self, unit: NDArray[np.float32], rows: Numbers) -> Weights:
        """The cosine of each row with a vector of length 1; 0 for a row without a vector."""
        self._check(unit)
        place = self._place[rows]
        there = place >= 0
        found = np.zeros(len(rows), np.float32)
        found[there] = self._compare_at(unit, place[there])
        return found

    def _compare_at(self, unit: NDArray[np.float32], place: NDArray[np.integer[Any]] | None) -> Weights:
        """Cosines at these places; of all where they are None. Many places cost a comparison with all, which is kept.

        The cosine of a place is the same number either way.
        """
        if place is not None and len(place) * _FEW < len(self._norm):
            rows = self._value.take(place, axis=0, mode="clip")  # places are valid; without a check it takes half
            return cosines_with(rows, self._norm[place], unit)
        whole = self._cosines(unit.tobytes())
        return whole if place is None else whole[place]

    def _check(self, unit: NDArray[np.float32]) -> None:
        if len(unit) != self.dimension:
            raise BadQuery(f"the vector has dimension {len(unit)}, the model makes {self.dimension}")


def _compare(values: NDArray[np.float32], norms: NDArray[np.float32], unit: bytes) -> Weights:
    """Every cosine of a space, read-only: a turn compares its question several times, but the product is one."""
    scores = cosines_with(values, norms, np.frombuffer(unit, np.float32))
    scores.setflags(write=False)
    return scores


def cosines_with(values: NDArray[np.float32], norms: NDArray[np.float32], unit: NDArray[np.float32]) -> Weights:
    """(n,) cosine of each row with a vector of length 1; a row of zeros scores 0.

    One question keeps one core busy: a matrix product would spin on all of them, which many askers pay for.
    """
    products = np.einsum("ij,j->i", values, unit)
    return np.asarray(np.divide(products, np.where(norms == 0, np.float32(1), norms)), np.float32)


def unit_vector(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The question at length 1; refuses what points nowhere."""
    asked = np.asarray(vector, np.float32)
    if asked.ndim != 1 or asked.size == 0 or not np.isfinite(asked).all():
        raise BadQuery("the vector must be one row of finite numbers")
    norm = float(np.linalg.norm(asked))
    if norm == 0.0:
        raise BadQuery("the vector is all zeros and points nowhere")
    unit: NDArray[np.float32] = asked / np.float32(norm)
    return unit
