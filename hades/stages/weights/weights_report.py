"""What a weighing did, for people, for the ledger and for the run that is logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hades.stages.weights.weight_config import TYPES
from models.weights.components import Codes

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
BINS = 20  # of [0, 1]
_DECIMALS = 6
_OF_THIS_RUN = ("changed", "seconds", "skipped", "why")


@dataclass(frozen=True)
class WeightReport:
    """Counts, the fitted bias and the distributions. `data_hash` stands for everything the weights were made from.

    `histograms` counts values in `BINS` equal bins of [0, 1]: weights of relations and mentions, and each component.
    `neutral` is what an unknown similarity or date counted, `learned` what judged answers taught (`LearningReport`).
    """

    as_of: str
    data_hash: str
    generation: str
    rows: Mapping[str, int]
    bias: float
    neutral: Mapping[str, float]
    quantiles: Mapping[str, float]
    types: Mapping[str, Mapping[str, float]]
    histograms: Mapping[str, list[int]]
    learned: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=lambda: {"relations": 0, "mentions": 0})
    seconds: float = 0.0
    skipped: bool = False
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return asdict(self)

    def lasting(self) -> dict[str, Any]:
        """What is a function of the weights alone, for the ledger: no time, nothing about this run."""
        return {name: value for name, value in self.as_dict().items() if name not in _OF_THIS_RUN}

    @classmethod
    def of_skipped(cls, lasting: Mapping[str, Any], why: str) -> Self:
        """The report of the weighing that still stands."""
        return cls(**lasting, skipped=True, why=why)


def quantiles_of(weights: NDArray[np.float64]) -> dict[str, float]:
    """Weights at fixed shares of the edges; empty without edges."""
    if not len(weights):
        return {}
    found = np.quantile(weights, QUANTILES)
    return {f"{share:g}": round(float(value), _DECIMALS) for share, value in zip(QUANTILES, found, strict=True)}


def by_type(weights: NDArray[np.float64], types: Codes) -> dict[str, dict[str, float]]:
    """How many relations of each type there are and what they weigh on average; types without any are left out."""
    count = np.bincount(types, minlength=len(TYPES))
    total = np.bincount(types, weights=weights, minlength=len(TYPES))
    return {
        kind: {"count": int(count[code]), "mean": round(float(total[code] / count[code]), _DECIMALS)}
        for code, kind in enumerate(TYPES)
        if count[code]
    }


def histogram_of(values: NDArray[np.float64]) -> list[int]:
    """How many values fall into each bin."""
    counts, _ = np.histogram(values, bins=BINS, range=(0.0, 1.0))
    bins: list[int] = counts.tolist()
    return bins
