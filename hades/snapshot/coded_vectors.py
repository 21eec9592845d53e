"""Search over codes of vectors: exact where all are scanned, approximate where a few cells of many are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from models.vector_search.cells import Cells
from models.vector_search.quantize import CodedRows, bounds, code_question, code_steps
from models.vector_search.signs import SignedRows, sign_question

Singles = NDArray[np.float32]

KERNEL = "models.vector_search.scan"
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
        from models.vector_search.scan import best_in_ranges

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
        from models.vector_search.scan import multiply

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
