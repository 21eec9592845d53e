"""The fitted ranker in numpy: what serving and publishing need of it, without the library that fitted it.

A model is a signature, which is JSON, and one flat array of float32: both can be mapped into memory from a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.ranker.features import HEADS, VERSION, Floats, Singles
from models.vectors import unit_rows

FORMAT = 1
_ROWS = 65_536  # nodes whose states are computed together


class BadModel(ValueError):
    """A model that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class Head:
    """Scores candidates: a line through the scaled columns, and a small network beside it."""

    mean: Singles
    scale: Singles
    line: Singles
    inner: Singles
    inner_bias: Singles
    outer: Singles

    def score(self, columns: Singles) -> Singles:
        """(n,) higher is better; only differences within one question mean something."""
        scaled = np.clip((columns - self.mean) * self.scale, -5.0, 5.0)
        hidden = np.maximum(scaled @ self.inner + self.inner_bias, 0.0)
        scores: Singles = scaled @ self.line + hidden @ self.outer
        return scores


@dataclass(frozen=True)
class RankerModel:
    """A fitted ranker. `signature` says what it was fitted to; `arrays` are its numbers by name."""

    signature: Mapping[str, Any]
    arrays: Mapping[str, Singles]

    def head(self, name: str) -> Head | None:
        """A head by its name; None where the gate left it out."""
        if f"{name}.line" not in self.arrays:
            return None
        parts = ("mean", "scale", "line", "inner", "inner_bias", "outer")
        return Head(*(self.arrays[f"{name}.{part}"] for part in parts))

    def question_state(self, vector: Singles) -> Singles:
        """(state,) where a question lies among the states of nodes."""
        towards: Singles = unit_rows((vector @ self.arrays["tower"])[None, :])[0]
        return towards

    def confidence(self, scores: Singles) -> Floats:
        """(n,) the chance that a passage supports an answer, by the scores of the head `sure`."""
        return np.interp(scores, self.arrays["sure.from"], self.arrays["sure.to"])

    @property
    def doubt(self) -> float:
        """Below this confidence of its best passage nothing is answered."""
        return float(self.signature["doubt"])


def node_states(
    model: RankerModel, features: Singles, starts: NDArray[np.int64], targets: NDArray[np.int32]
) -> NDArray[np.float16]:
    """(n, state) float16, rows of length 1: two layers of GraphSAGE with the mean of the neighbours.

    `starts` (n + 1) and `targets` are the undirected adjacency. Neighbours are projected before they are averaged,
    which gives the same and moves a third of the bytes.
    """
    arrays, hidden = model.arrays, features
    for layer in ("first", "second"):
        near = hidden @ arrays[f"{layer}.neighbours"]
        hidden = hidden @ arrays[f"{layer}.own"] + _means(near, starts, targets) + arrays[f"{layer}.bias"]
        if layer == "first":
            hidden = np.maximum(hidden, 0.0)
    return unit_rows(hidden).astype(np.float16)


def pack(model: RankerModel) -> tuple[bytes, Singles]:
    """The signature with the layout in it, and every number in one array; equal models give equal bytes."""
    names = sorted(model.arrays)
    layout = [[name, list(model.arrays[name].shape)] for name in names]
    body = {**model.signature, "layout": layout}
    flat = [np.asarray(model.arrays[name], "<f4").ravel() for name in names]
    return json.dumps(body, sort_keys=True).encode(), np.concatenate(flat) if flat else np.zeros(0, np.float32)


def unpack(signature: bytes, numbers: Singles) -> RankerModel:
    """The model of a signature and its numbers; `BadModel` says why it cannot be used by this version."""
    try:
        body = json.loads(signature)
    except ValueError as error:
        raise BadModel("its signature is not JSON") from error
    if body.get("format") != FORMAT:
        raise BadModel(f"it has format {body.get('format')}, this version reads {FORMAT}")
    if body.get("features") != VERSION:
        raise BadModel(f"it was fitted to features of version {body.get('features')}, this version has {VERSION}")
    for name, columns in body["columns"].items():
        if tuple(columns) != HEADS.get(name):
            raise BadModel(f"its head {name!r} was fitted to other columns than this version computes")
    sizes = [int(np.prod(shape, dtype=np.int64)) for _, shape in body["layout"]]
    if sum(sizes) != len(numbers):
        raise BadModel(f"it has {len(numbers)} numbers, its layout speaks of {sum(sizes)}")
    if not np.isfinite(numbers).all():
        raise BadModel("it holds numbers that are not finite")
    cuts = np.cumsum([0, *sizes])
    arrays = {
        name: numbers[start:end].reshape(shape)
        for (name, shape), start, end in zip(body.pop("layout"), cuts[:-1], cuts[1:], strict=True)
    }
    return RankerModel(body, arrays)


def _means(values: Singles, starts: NDArray[np.int64], targets: NDArray[np.int32]) -> Singles:
    """(n, width) the mean over each node's neighbours, zeros where it has none."""
    found = np.zeros((len(starts) - 1, values.shape[1]), np.float32)
    for first in range(0, len(found), _ROWS):
        own = starts[first : first + _ROWS + 1]
        counts = np.diff(own)
        some = counts > 0
        if some.any():
            sums = np.add.reduceat(values[targets[own[0] : own[-1]]], own[:-1][some] - own[0], axis=0)
            found[first : first + len(counts)][some] = sums / counts[some][:, None]
    return found
