"""Vectors as arrays; what the last snapshot lends."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades import build_state
from hades.errors import SnapshotError
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import RowStore
from hades.snapshot import manifest as manifests
from hades.snapshot.files import NOWHERE, Column, Folder, Hashes, integers, mapped, view_of
from hades.snapshot.manifest import Manifest, is_noted
from models.kernels import unit_rows
from models.vector_codes import cells_for, code_rows, fit_cells, sign_rows
from schemas.catalogue import collection_named

# What the serving snapshot holds of rows that stay the same: it is copied by key and not computed again. Only a
# snapshot whose files are as they were verified is used. What is copied was computed from the same bytes by the
# same rules (`FORMAT` names them), so the new snapshot is the same with an earlier one and without.


Places = NDArray[np.int64]
Singles = NDArray[np.float32]
Coded = tuple[NDArray[np.int8], Singles, Singles]  # codes, steps, error bounds


class FormerSnapshot:
    """The snapshot that serves while a new one is written."""

    def __init__(self, contents: Manifest, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._contents, self._arrays = contents, arrays
        self._keys: dict[str, pa.Array] = {}
        self._last: tuple[str, pa.Array, Places] | None = None

    @classmethod
    def load(cls, folder: Path | None) -> Self | None:
        """The snapshot of a folder; None where there is none that can be trusted."""
        if folder is None:
            return None
        try:
            contents = manifests.load(folder)[0]
            if not is_noted(folder, contents.arrays):
                return None
        except SnapshotError:
            return None
        return cls(contents, {name: view_of(mapped(folder / name), spec) for name, spec in contents.arrays.items()})

    def rows_of(self, collection: str, keys: pa.Array) -> Places:
        """The row of each of some keys in key order, -1 for one that it does not hold.

        The last answer is kept, because vectors and hashes of the same rows are asked for one after the other.
        """
        if self._last is None or self._last[0] != collection or not self._last[1].equals(keys):
            self._last = (collection, keys, self._find_rows(collection, keys))
        return self._last[2]

    def _find_rows(self, collection: str, keys: pa.Array) -> Places:
        held = self._keys_of(collection)
        if not len(held) or not len(keys):
            return np.full(len(keys), NOWHERE, np.int64)
        low = bisect_left(held, keys[0].as_py(), key=_text)
        high = bisect_right(held, keys[-1].as_py(), key=_text)
        found = pc.index_in(keys.cast(pa.large_string()), value_set=held.slice(low, high - low))
        rows = integers(found, NOWHERE).copy()
        rows[rows >= 0] += low
        return rows

    def hashes_of(self, collection: str, keys: pa.Array) -> tuple[Hashes, NDArray[np.bool_]]:
        """The hashes of nodes by their keys, and which of them it holds."""
        rows = self.rows_of(collection, keys)
        return self._hashes[rows + self._first_of(collection)], rows >= 0

    def vectors(self, collection: str, tag: str) -> FormerVectors | None:
        """The vectors of a model, if there are any."""
        tags = self._contents.models.get(collection, ())
        if tag not in tags:
            return None
        prefix = f"vector.{collection}.{tags.index(tag)}"
        place, value, norm = (self._arrays[f"{prefix}.{part}"] for part in ("place", "value", "norm"))
        code, step, slack = (self._arrays.get(f"{prefix}.{part}") for part in ("code", "step", "slack"))
        coded = None if code is None or step is None or slack is None else (code, step, slack)
        return FormerVectors(collection, self, place, value, norm, coded)

    @cached_property
    def _hashes(self) -> Hashes:
        """By number; one more for what is not held."""
        hashes = np.zeros(len(self._arrays["node.hash"]) + 1, np.uint64)
        hashes[self._arrays["node.number"]] = self._arrays["node.hash"]
        return hashes

    def _keys_of(self, collection: str) -> pa.Array:
        if collection not in self._keys:
            first, count = self._first_of(collection), self._contents.nodes.get(collection, 0)
            ends = self._arrays["node.key.ends"][first : first + count + 1]
            buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(self._arrays["node.key.text"])]
            self._keys[collection] = pa.Array.from_buffers(pa.large_string(), count, buffers)
        return self._keys[collection]

    def _first_of(self, collection: str) -> int:
        names = list(self._contents.nodes)
        before = names[: names.index(collection)] if collection in names else names
        return sum(self._contents.nodes[name] for name in before)


@dataclass(frozen=True)
class FormerVectors:
    """The vectors of one model in one collection: `place` by row, the others by place. No codes below a size."""

    collection: str
    snapshot: FormerSnapshot
    place: NDArray[np.int32]
    value: Singles
    norm: Singles
    coded: Coded | None

    def find_same(self, keys: pa.Array, values: Singles) -> Places:
        """Where the same vector, bit for bit, stands under the same key; -1 where it does not."""
        rows = self.snapshot.rows_of(self.collection, keys)
        places = np.where(rows >= 0, self.place[rows], NOWHERE).astype(np.int64)
        held = np.flatnonzero(places >= 0)
        before = self.value[places[held]].view(np.uint32)
        differs = (before != np.ascontiguousarray(values, np.float32)[held].view(np.uint32)).any(axis=1)
        places[held[differs]] = NOWHERE
        return places


def _text(scalar: pa.Scalar) -> str:
    text: str = scalar.as_py()
    return text


# Vectors: one matrix for each collection and model, so that vectors of different models never meet.


CODED_FROM = 4096  # vectors; fewer are compared one by one as fast
APPROXIMATE_FROM = 100_000  # vectors; an exact scan of fewer takes a few milliseconds
_BLOCK = 16_384
_CACHED_ROWS = 512  # whose doubles fit into the cache of a core: twice as fast as all at once


class VectorWriter:
    """Writes, for model number m of a collection, `vector.<collection>.<m>.` and:

    `value` (n, dimension) float32, `norm` (n,) float32, `row` (n,) which row of the collection each belongs to, and
    `place` the other way round, -1 for rows without a vector of that model. From `CODED_FROM` vectors on also `code`,
    `step` and `slack` (`models/vector_codes.py`), in the order of `value`. From `APPROXIMATE_FROM` on instead
    `centre`, `cell_start` and `cell_place`, and in the order of the cells `sign` and `reach`
    (`models/vector_codes.py`).
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


# What a snapshot is made under, beside the rows: declarations of the catalogue and generations of what was built.
# Reading it tells whether a release has work; only one that has loads what writes a snapshot.


RANKER = "ranker"
PARTS = (build_state.HIERARCHY, build_state.WEIGHTS, build_state.BRIDGES, RANKER)


def parts_of(store: RowStore) -> dict[str, str]:
    """The generation of each thing that was built into the store, empty where it never was."""
    done = {stage: build_state.complete(store, stage) for stage in PARTS}
    return {stage: "" if one is None else one.generation for stage, one in done.items()}


def catalogue_hash() -> str:
    """The hash of the declarations a snapshot was made under: columns of what it reads, and its edge types."""
    digest = hashlib.sha256(json.dumps(edge_types()).encode())
    for name in ("documents", *KINDS, *EDGES):
        collection = collection_named(name)
        assert collection is not None
        columns = [[column.name, str(column.type), column.nullable] for column in collection.columns]
        digest.update(json.dumps([collection.name, columns, list(collection.text_fields)]).encode())
    return digest.hexdigest()


def edge_types() -> tuple[str, ...]:
    """Every type an edge of the graph can have, in catalogue order; its place is its code in every view."""
    found: dict[str, None] = {}
    for name in EDGES:
        collection = collection_named(name)
        assert collection is not None
        choices = next(column.choices for column in collection.columns if column.name == "type")
        found.update(dict.fromkeys(choices))
    return tuple(found)
