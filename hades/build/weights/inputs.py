"""Edge columns, weight_config, rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.build.columns import column, ids, place, wholes
from hades.build.context import read_columns, vectors_of
from hades.errors import HadesError
from hades.ports.store import RowStore, scan_rows
from hades.settings.tree import DEFAULT_BOOSTS, LearningSettings, PathSettings
from models.weights import PART_DECIMALS, PARTS, Codes, Longs, MentionRules, Reals
from schemas.nodes import RelationType
from schemas.telemetry import WeightConfig

# What weighing goes by: the seeds of `weight_config`, the boosts of the settings, and how much counts as much.


class WeightError(HadesError):
    """Weights that cannot be computed, logged or restored: what was expected and what to do."""


_YEAR = 365.0
# Stated by an author outranks read by a rule, which outranks counted or measured. Names and code drift slowly.
# By type: how much it tells alone, and in how many days it fades.
SEEDS: Mapping[RelationType, tuple[float, float]] = {
    RelationType.IMPLEMENTS: (0.9, 5 * _YEAR),
    RelationType.EXTENDS: (0.8, 5 * _YEAR),
    RelationType.DERIVES_FROM: (0.8, 5 * _YEAR),
    RelationType.CITES: (0.7, 5 * _YEAR),
    RelationType.REFERS_TO: (0.5, 5 * _YEAR),
    RelationType.COREF: (0.4, 20 * _YEAR),
    RelationType.RELATED_TO: (0.3, 3 * _YEAR),
    RelationType.SIMILAR_TO: (0.3, 20 * _YEAR),
}
COEFFICIENTS: Mapping[str, float] = {"sim": 4.0, "type_prior": 3.0, "evidence": 3.0, "freshness": 1.0}


@dataclass(frozen=True)
class WeightRules:
    """How edges are weighed. Priors, time constants and coefficients are only seeds: `weight_config` has the last word.

    Boosts are those of the settings, because scoring a path at question time reads them there too.
    """

    boosts: Mapping[RelationType, float] = field(default_factory=lambda: dict(DEFAULT_BOOSTS))
    eps: float = 1e-6
    evidence_full: int = 15
    median: float = 0.5
    mentions: MentionRules = field(default_factory=MentionRules)
    learning: LearningSettings = field(default_factory=LearningSettings)


def rules_of(path: PathSettings, learning: LearningSettings) -> WeightRules:
    """The rules that follow from the sections `hirag_pathrag.path` and `learning` of the settings."""
    return WeightRules(boosts=dict(path.relation_boost), eps=path.eps, learning=learning)


# `weight_config`: one row a relation type. What is missing is seeded, what a person wrote is kept.


BIAS = "bias"  # kept beside the coefficients, so that a row tells all that a weight was made with
TYPES: tuple[str, ...] = tuple(str(kind) for kind in RelationType)  # a type's code is its place here
_MAX = 1e6


@dataclass(frozen=True)
class TypeTable:
    """The configuration as arrays by type code, (n_types,) each."""

    prior: Reals
    tau_days: NDArray[np.float64]
    boost: Reals
    coefficients: Mapping[str, Reals]


def read_config(store: RowStore, rules: WeightRules) -> list[WeightConfig]:
    """The row of every relation type, in the order of `TYPES`, with seeds where the store has none; nothing is written.

    The bias and the mark of the last weighing are left out: they are results. Boosts come from the rules.
    """
    held = {str(row["relation_type"]): row for row in scan_rows(store, "weight_config")}
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
        for row in scan_rows(store, "weight_config")
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
    return TypeTable(
        prior=np.array([row.type_prior for row in rows], dtype=np.float32),
        tau_days=np.array([row.tau_days for row in rows]),
        boost=np.array([row.relation_boost for row in rows], dtype=np.float32),
        coefficients={part: np.array([row.coefficients[part] for row in rows], dtype=np.float32) for part in PARTS},
    )


def _row(kind: RelationType, held: dict[str, Any] | None, rules: WeightRules) -> WeightConfig:
    given = {} if held is None else orjson.loads(held["coefficients"])
    if strangers := sorted(set(given) - {*PARTS, BIAS}):
        raise WeightError(f"weight_config/{kind} gives a coefficient for {strangers[0]}; there are {', '.join(PARTS)}")
    coefficients = {
        part: _json_number(_number(kind, part, given.get(part, COEFFICIENTS[part]), 0.0, _MAX)) for part in PARTS
    }
    prior, tau = SEEDS[kind] if held is None else (held["type_prior"], held["tau_days"])
    return WeightConfig(
        key=str(kind),
        relation_type=str(kind),
        type_prior=round(_number(kind, "type_prior", prior, 0.0, 1.0), PART_DECIMALS),
        tau_days=_number(kind, "tau_days", tau, 1.0, _MAX),
        relation_boost=rules.boosts[kind],
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


# Relations and mentions as arrays, with what weighing needs to know of the entities they join.


_COLUMNS = {
    "relations": (
        "_key", "_from", "_to", "type", "created", "evidence_count", "strength",
        "weight", "weight_components", "cost", "learned", "sim",
    ),
    "mentions": ("_key", "_to", "count", "positions", "weight", "learned"),
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class EntityColumns:
    """Entities by row: their ids, their vectors of one model (zero: none), and which are mere terms."""

    ids: pa.Array
    vectors: NDArray[np.float32]
    is_term: NDArray[np.bool_]

    def rows_of(self, identifiers: pa.ChunkedArray) -> Longs:
        """The row of each id, -1 for one that is not there."""
        return place(identifiers, self.ids)


def read_entities(store: RowStore, model: str) -> EntityColumns:
    """Every entity once. Vectors of another model are as good as none: they cannot be compared."""
    rows = read_columns(store, "entities", ["_key", "embedding", "embedding_model", "metadata"])
    metadata = [orjson.loads(text or "{}") for text in rows.column("metadata").to_pylist()]
    return EntityColumns(
        ids=ids("entities", column(rows, "_key")),
        vectors=vectors_of(rows, model),
        is_term=np.array([one.get("origin") == ["term"] for one in metadata], np.bool_),
    )


def read_edges(store: RowStore, collection: str) -> pa.Table:
    """What weighing reads and writes of every relation or mention, in key order."""
    return read_columns(store, collection, _COLUMNS[collection])


def type_codes(relations: pa.Table) -> Codes:
    """The place of each relation's type in `TYPES`; a type that has none is an error, never a default."""
    found = pc.index_in(relations.column("type"), value_set=pa.array(TYPES))
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        key, kind = (relations.column(name)[row].as_py() for name in ("_key", "type"))
        raise WeightError(
            f"relations/{key} is of type {kind!r}, which has no prior and no boost; the types are {', '.join(TYPES)}"
        )
    codes: Codes = wholes(found).astype(np.uint8)
    return codes


def ages(relations: pa.Table, as_of: datetime) -> tuple[Longs, NDArray[np.bool_]]:
    """Whole days from each relation's event date to `as_of`, and which have a date; the others count 0 here."""
    created = relations.column("created")
    day = pc.cast(pc.floor_temporal(created, unit="day"), pa.int64())
    days = wholes(day) // 86_400_000_000
    return (as_of - _EPOCH).days - days, pc.is_valid(created).to_numpy()


def in_title(mentions: pa.Table) -> NDArray[np.bool_]:
    """Which mentions the title or the source itself makes: they are counted, but stand nowhere in the text."""
    places = pc.list_value_length(mentions.column("positions"))
    return wholes(mentions.column("count")) > wholes(places)
