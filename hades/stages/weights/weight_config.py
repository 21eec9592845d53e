"""`weight_config`: one row a relation type. What is missing is seeded, what a person wrote is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from hades.ports.store import RowStore
from hades.stages.weights.weight_rules import COEFFICIENTS, SEEDS, WeightError, WeightRules
from models.weights.components import PART_DECIMALS, Reals
from models.weights.squash import PARTS, Coefficients
from schemas.graph_types import RelationType
from schemas.telemetry import WeightConfig

BIAS = "bias"  # kept beside the coefficients, so that a row tells all that a weight was made with
TYPES: tuple[str, ...] = tuple(str(kind) for kind in RelationType)  # a type's code is its place here
_MAX = 1e6


@dataclass(frozen=True)
class TypeTable:
    """The configuration as arrays by type code, (n_types,) each."""

    prior: Reals
    tau_days: NDArray[np.float64]
    boost: Reals
    coefficients: Coefficients


def read_config(store: RowStore, rules: WeightRules) -> list[WeightConfig]:
    """The row of every relation type, in the order of `TYPES`, with seeds where the store has none; nothing is written.

    The bias and the mark of the last weighing are left out: they are results. Boosts come from the rules.
    """
    held = {str(row["relation_type"]): row for batch in store.scan("weight_config") for row in batch.to_pylist()}
    if strangers := sorted(set(held) - set(TYPES)):
        raise WeightError(
            f"weight_config has a row for {', '.join(strangers)}, which is not a relation type "
            f"({', '.join(TYPES)}); correct or delete the row"
        )
    return [_row(kind, held.get(str(kind)), rules) for kind in RelationType]


def store_config(store: RowStore) -> list[WeightConfig]:
    """The rows as they are, in key order."""
    return [
        WeightConfig.model_validate({**row, "coefficients": orjson.loads(row["coefficients"])})
        for batch in store.scan("weight_config")
        for row in batch.to_pylist()
    ]


def weigh_config(rows: Sequence[WeightConfig], bias: float, snapshot: str, as_of: datetime) -> list[WeightConfig]:
    """The rows with the result of a weighing in them: bias, mark and day."""
    fitted = _json_number(bias)
    return [
        row.model_copy(
            update={"coefficients": {**row.coefficients, BIAS: fitted}, "snapshot": snapshot, "updated": as_of}
        )
        for row in rows
    ]


def table_of(rows: Sequence[WeightConfig]) -> TypeTable:
    """The rows as arrays."""
    coefficients = {part: np.array([row.coefficients[part] for row in rows], dtype=np.float32) for part in PARTS}
    return TypeTable(
        prior=np.array([row.type_prior for row in rows], dtype=np.float32),
        tau_days=np.array([row.tau_days for row in rows]),
        boost=np.array([row.relation_boost for row in rows], dtype=np.float32),
        coefficients=Coefficients(**coefficients),
    )


def _row(kind: RelationType, held: dict[str, Any] | None, rules: WeightRules) -> WeightConfig:
    seed, boost = SEEDS[kind], rules.boosts[kind]
    given = {} if held is None else orjson.loads(held["coefficients"])
    if strangers := sorted(set(given) - {*PARTS, BIAS}):
        raise WeightError(f"weight_config/{kind} gives a coefficient for {strangers[0]}; there are {', '.join(PARTS)}")
    coefficients = {
        part: _json_number(_number(kind, part, given.get(part, COEFFICIENTS[part]), 0.0, _MAX)) for part in PARTS
    }
    prior, tau = (seed.type_prior, seed.tau_days) if held is None else (held["type_prior"], held["tau_days"])
    return WeightConfig(
        key=str(kind),
        relation_type=str(kind),
        type_prior=round(_number(kind, "type_prior", prior, 0.0, 1.0), PART_DECIMALS),
        tau_days=_number(kind, "tau_days", tau, 1.0, _MAX),
        relation_boost=boost,
        coefficients=coefficients,
    )


def _number(kind: RelationType, name: str, value: object, low: float, high: float) -> float:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not low <= number <= high:
        raise WeightError(
            f"weight_config/{kind}: {name} is {value!r}; it must be a number from {low:g} to {high:g}: "
            "correct it, or delete the row to have it seeded"
        )
    return number


def _json_number(value: float) -> float:
    """The number as JSON spells it in every store: 4 and not 4.0."""
    return int(value) if value.is_integer() else value
