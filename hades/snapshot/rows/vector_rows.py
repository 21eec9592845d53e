"""Vectors: one matrix for each collection and model, so that vectors of different models never meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.snapshot.arrays import Column, Folder
from hades.snapshot.columns import NOWHERE
from hades.snapshot.rows.former_snapshot import Coded, FormerSnapshot, FormerVectors, Places, Singles
from models.vector_search.cells import cells_for, fit_cells
from models.vector_search.quantize import code_rows
from models.vector_search.signs import sign_rows
from models.vectors import unit_rows

CODED_FROM = 4096  # vectors; fewer are compared one by one as fast
APPROXIMATE_FROM = 100_000  # vectors; an exact scan of fewer takes a few milliseconds
_BLOCK = 16_384
_CACHED_ROWS = 512  # whose doubles fit into the cache of a core: twice as fast as all at once


class VectorWriter:
    """Writes, for model number m of a collection, `vector.<collection>.<m>.` and:

    `value` (n, dimension) float32, `norm` (n,) float32, `row` (n,) which row of the collection each belongs to, and
    `place` the other way round, -1 for rows without a vector of that model. From `CODED_FROM` vectors on also `code`,
    `step` and `slack` (`models/vector_search/quantize.py`), in the order of `value`. From `APPROXIMATE_FROM` on instead
    `centre`, `cell_start` and `cell_place`, and in the order of the cells `sign` and `reach`
    (`models/vector_search/signs.py`).
    """

    def __init__(self, folder: Folder, collection: str, former: FormerSnapshot | None = None) -> None:
        self._folder, self._collection, self._former = folder, collection, former
        self._known: dict[str, FormerVectors | None] = {}
        self._places: dict[str, list[Places]] = {}  # of vectors that an earlier snapshot holds, -1 for the others
        self._models: dict[str, tuple[Column, Column, Column]] = {}
        self._dimensions: dict[str, int] = {}

    def append(self, first_row: int, batch: pa.RecordBatch, field: str) -> None:
        """Take the vectors of a batch; rows without one are passed over."""
        vectors, tags = batch.column(field), batch.column("embedding_model")
        usable = pc.and_(vectors.is_valid(), tags.is_valid())
        for tag in pc.unique(tags.filter(usable)).to_pylist():
            chosen = pc.fill_null(pc.and_(usable, pc.equal(tags, tag)), False)
            rows = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
            is_all = len(rows) == batch.num_rows  # the usual case, in which nothing is copied
            held = vectors if is_all else vectors.filter(chosen)
            keys = batch.column("_key") if is_all else batch.column("_key").filter(chosen)
            lengths = pc.list_value_length(held).to_numpy(zero_copy_only=False)
            dimension = self._dimensions.setdefault(tag, int(lengths[0]))
            if (lengths != dimension).any():
                key = batch.column("_key")[int(rows[np.argmax(lengths != dimension)])].as_py()
                raise SnapshotError(
                    f"{self._collection}/{key}: its vector of {tag} has not the dimension {dimension} of the others; "
                    "embed the collection again, nothing was published"
                )
            values = held.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
            places = self._find_places(tag, keys, values)
            self._write(tag, values, first_row + rows, places)

    def write(self, n_rows: int) -> tuple[str, ...]:
        """Finish; the tags of the models, by number."""
        for number, tag in enumerate(self._models):
            prefix = self._prefix(number)
            self._folder.finish(*(f"{prefix}.{part}" for part in ("value", "norm", "row")))
            rows = self._folder[f"{prefix}.row"]
            place = np.full(n_rows, -1, np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            self._folder.whole(f"{prefix}.place", place)
            if len(rows) >= CODED_FROM:
                self._code(prefix, tag)
        return tuple(self._models)

    def _find_places(self, tag: str, keys: pa.Array, values: NDArray[np.float32]) -> Places:
        if tag not in self._known:
            known = self._former.vectors(self._collection, tag) if self._former is not None else None
            fits = known is not None and known.value.shape[1] == values.shape[1]
            self._known[tag], self._places[tag] = known if fits else None, []
        former = self._known[tag]
        places = former.find_same(keys, values) if former is not None else np.full(len(values), NOWHERE, np.int64)
        self._places[tag].append(places)
        return places

    def _write(self, tag: str, values: NDArray[np.float32], rows: NDArray[np.int64], places: Places) -> None:
        if tag not in self._models:
            prefix = self._prefix(len(self._models))
            self._models[tag] = (
                self._folder.column(f"{prefix}.value", np.float32, (values.shape[1],)),
                self._folder.column(f"{prefix}.norm", np.float32),
                self._folder.column(f"{prefix}.row", np.int32),
            )
        value, norm, row = self._models[tag]
        value.append(values)
        norm.append(self._measure(self._known[tag], values, places))
        row.append(rows)

    def _measure(self, former: FormerVectors | None, values: NDArray[np.float32], places: Places) -> Singles:
        """The length of each vector; that of a known one is copied."""
        norms = np.empty(len(values), np.float32)
        if former is not None:
            norms[places >= 0] = former.norm[places[places >= 0]]
        new = np.flatnonzero(places < 0)
        for first in range(0, len(new), _CACHED_ROWS):
            part = new[first : first + _CACHED_ROWS]
            norms[part] = np.linalg.norm(values[part].astype(np.float64), axis=1)
        return norms

    def _code(self, prefix: str, tag: str) -> None:
        """Write what a scan reads instead of the vectors: codes, or signs in cells where there are many."""
        values, norms = self._folder[f"{prefix}.value"], self._folder[f"{prefix}.norm"]
        if len(values) >= APPROXIMATE_FROM:
            self._sign(prefix, values)
            return
        code = self._folder.column(f"{prefix}.code", np.int8, (values.shape[1],))
        step, slack = (self._folder.column(f"{prefix}.{part}", np.float32) for part in ("step", "slack"))
        former, places = self._known[tag], np.concatenate(self._places[tag])
        held = former.coded if former is not None else None
        for first in range(0, len(values), _CACHED_ROWS):
            chosen = slice(first, first + _CACHED_ROWS)
            for column, part in zip((code, step, slack), _code_block(values, norms, chosen, places, held), strict=True):
                column.append(part)
        self._folder.finish(*(f"{prefix}.{part}" for part in ("code", "step", "slack")))

    def _sign(self, prefix: str, values: NDArray[np.float32]) -> None:
        cells = fit_cells(lambda places: unit_rows(values[places]), len(values), cells_for(len(values)))
        self._folder.whole(f"{prefix}.centre", cells.centres)
        self._folder.whole(f"{prefix}.cell_start", cells.starts)
        self._folder.whole(f"{prefix}.cell_place", cells.places)
        own = np.repeat(np.arange(len(cells.centres)), np.diff(cells.starts))
        sign = self._folder.column(f"{prefix}.sign", np.uint64, (-(-values.shape[1] // 64),))
        reach = self._folder.column(f"{prefix}.reach", np.float32)
        for first in range(0, len(values), _BLOCK):
            chosen = slice(first, first + _BLOCK)
            signed = sign_rows(unit_rows(values[cells.places[chosen]]), cells.centres[own[chosen]])
            sign.append(signed.signs)
            reach.append(signed.reaches)
        self._folder.finish(f"{prefix}.sign", f"{prefix}.reach")

    def _prefix(self, number: int) -> str:
        return f"vector.{self._collection}.{number}"


def _code_block(
    values: Singles, norms: Singles, chosen: slice, places: Places, held: Coded | None
) -> tuple[NDArray[Any], ...]:
    """Codes, steps and error bounds of a run of vectors; those of known ones are copied."""
    place = places[chosen]
    new = np.flatnonzero(place < 0) if held is not None else np.arange(len(place))
    coded = code_rows(values[chosen][new], norms[chosen][new])
    computed: tuple[NDArray[Any], ...] = (coded.codes, coded.steps, coded.slacks)
    if held is None:
        return computed
    parts: list[NDArray[Any]] = [column[place] for column in held]  # place -1 is the last one, which is replaced
    for part, own in zip(parts, computed, strict=True):
        part[new] = own
    return tuple(parts)
