"""Search over codes of vectors: exact where all are scanned, approximate where a few cells of many are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from models.vector_search.cells import Cells
from models.vector_search.quantize import CodedRows, bounds, code_question

Singles = NDArray[np.float32]

KERNEL = "models.vector_search.scan"
PROBED = 256  # cells that an approximate search scans at least: recall@10 is .987 at 100,000 vectors of texts and names
PROBED_SHARE = 0.05  # of all cells, where that is more
COMPARED = 8  # candidates for each wanted hit that are compared exactly; rounding to codes reorders neighbours
LEAST_COMPARED = 256


@dataclass(frozen=True)
class CodedVectors:
    """The codes of one space, in the order of its cells; without cells all codes are scanned."""

    rows: CodedRows
    cells: Cells | None = None

    @property
    def is_approximate(self) -> bool:
        """Whether a search scans a part of the vectors only."""
        return self.cells is not None

    def candidates(self, units: Sequence[Singles], limit: int) -> list[Numbers]:
        """For each question of length 1 the places of the vectors to compare exactly with it, in rising order.

        Where all codes are scanned the best `limit` are surely among them; one scan serves every question.
        """
        if self.cells is None:
            return self._surely_best(units, limit)
        return [self._probably_best(self.cells, unit, limit) for unit in units]

    def _surely_best(self, units: Sequence[Singles], limit: int) -> list[Numbers]:
        from models.vector_search.scan import multiply

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

    def _probably_best(self, cells: Cells, unit: Singles, limit: int) -> Numbers:
        from models.vector_search.scan import multiply_ranges

        probed = min(len(cells.centres), max(PROBED, round(PROBED_SHARE * len(cells.centres))))
        towards = np.einsum("ij,j->i", cells.centres, unit)
        chosen = np.sort(np.argpartition(towards, len(towards) - probed)[len(towards) - probed :])
        starts, ends = cells.starts[chosen], cells.starts[chosen + 1]
        question = code_question(unit)
        products = multiply_ranges(self.rows.codes, question.parts, starts, ends)
        at = np.concatenate([np.arange(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        near = products * self.rows.steps[at]
        wanted = max(LEAST_COMPARED, COMPARED * limit)
        if wanted < len(near):
            at = at[np.argpartition(near, len(near) - wanted)[len(near) - wanted :]]
        return np.sort(cells.places[at]).astype(np.int64)


def read_coded(arrays: Mapping[str, NDArray[Any]] | Any, prefix: str) -> CodedVectors | None:
    """The codes of a space; None where it has none."""
    if f"{prefix}.code" not in arrays:
        return None
    rows = CodedRows(arrays[f"{prefix}.code"], arrays[f"{prefix}.step"], arrays[f"{prefix}.slack"])
    if f"{prefix}.centre" not in arrays:
        return CodedVectors(rows)
    cells = Cells(arrays[f"{prefix}.centre"], arrays[f"{prefix}.cell_place"], arrays[f"{prefix}.cell_start"])
    return CodedVectors(rows, cells)


def is_kernel_loaded() -> bool:
    """Whether scanning costs no loading: an exact search is not worth half a second of it, many of them are."""
    return KERNEL in sys.modules
