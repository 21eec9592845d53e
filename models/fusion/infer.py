"""The fitted ranking of the default recipe: three lines over named columns, one set for each kind of corpus.

`look` judges a passage alone, `rank` beside the others as `look` sees them, `last` beside the others as `rank` sees
them: what the second step of a question found is known when the third is judged. Each has two sets of coefficients:
`plain`, and `told` for a corpus that states an order. The mean of both, by how far a corpus is told, is what serves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VERSION = 2
HEADS = ("look", "rank", "last")
KINDS = ("plain", "told")
REQUIRED = ("version", "data_sha256", "metric", "command", "heads")


class BadFusion(ValueError):
    """A fitted file that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class Line:
    """Coefficients by column, for plain and for told corpora."""

    columns: tuple[str, ...]
    plain: Floats
    told: Floats

    def score(self, columns: Mapping[str, Floats], told: float) -> Floats:
        """(n,) higher is better; only differences within one question mean something. `told` is in [0, 1]."""
        table = np.ascontiguousarray(np.array([columns[name] for name in self.columns]).T)
        scores: Floats = table @ ((1.0 - told) * self.plain + told * self.told)
        return scores


@dataclass(frozen=True)
class FusionModel:
    """The fitted lines and what is known about the fit."""

    look: Line
    rank: Line
    last: Line
    about: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """sha256 of the columns and their coefficients."""
        found = hashlib.sha256()
        for line in (self.look, self.rank, self.last):
            found.update("\n".join(line.columns).encode() + line.plain.tobytes() + line.told.tobytes())
        return found.hexdigest()


def read_fusion(body: Mapping[str, Any]) -> FusionModel:
    """The model of a fitted file; `BadFusion` says why it cannot be used by this version."""
    missing = [name for name in REQUIRED if name not in body]
    if missing:
        raise BadFusion(f"it lacks {', '.join(missing)}")
    if body["version"] != VERSION:
        raise BadFusion(f"it has version {body['version']}, this program reads {VERSION}")
    lines = {name: _line(name, body["heads"].get(name)) for name in HEADS}
    about = {name: body[name] for name in REQUIRED if name != "heads"}
    return FusionModel(lines["look"], lines["rank"], lines["last"], about)


def _line(name: str, head: Mapping[str, Any] | None) -> Line:
    if head is None:
        raise BadFusion(f"it lacks the head {name!r}")
    columns = tuple(head["columns"])
    weights = {kind: np.asarray(head[kind], np.float64) for kind in KINDS}
    for kind, values in weights.items():
        if values.shape != (len(columns),) or not np.isfinite(values).all():
            raise BadFusion(
                f"head {name!r} has {values.shape} coefficients for {kind}, expected ({len(columns)},) finite"
            )
    return Line(columns, weights["plain"], weights["told"])
