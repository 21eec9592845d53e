"""The contract of weights."""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.night.columns import (
    Frames,
    at,
    close,
    column,
    flags,
    numbers,
    read,
    with_columns,
)
from hades.night.contracts.rule import (
    between,
    contract,
    give,
    one_of,
    unique,
)
from hades.ports.store import RowStore
from hades.snapshot.files import places_of
from models.arrays import Floats, Longs
from schemas.nodes import RelationType

_WEIGH = "run `hades repair weights`"
WEIGHTS_CONTRACT = contract(
    "weights",
    "weights and costs of relations, and the configuration they follow from",
    _WEIGH,
    {
        "relations": [
            ("every_relation_weighed", "every relation has a weight", give("weight")),
            ("weight_in_unit_interval", "a weight lies between 0 and 1", between("weight", 0, 1)),
            ("components_given", "a weight keeps the components it was made of", "weight"),
            (
                "freshness_in_unit_interval",
                "freshness lies between 0 and 1",
                between("freshness", 0, 1),
            ),
            ("similarity_in_range", "similarity lies between -1 and 1", between("sim", -1, 1)),
            (
                "prior_of_type",
                "the prior in a weight is that of the relation's type",
                "type",
                "type_prior",
                "configured_prior",
            ),
            (
                "weight_recomputes",
                "a weight is the sigmoid of its components by the configured coefficients",
                "weight",
                "recomputed_weight",
            ),
            ("cost_given", "a weighed relation has a cost", give("cost")),
            ("cost_not_negative", "a cost is never below 0", between("cost", 0)),
            (
                "cost_recomputes",
                "a cost is -ln(weight * boost)",
                "weight",
                "cost",
                "recomputed_cost",
            ),
            ("type_configured", "weight_config has a row for the relation's type", "type"),
        ],
        "mentions": [
            (
                "mention_weight_in_unit_interval",
                "a mention's weight lies between 0 and 1",
                between("weight", 0, 1),
            ),
        ],
        "weight_config": [
            (
                "configured_type_known",
                "weight_config speaks of known relation types",
                one_of("relation_type", RelationType),
            ),
            (
                "one_row_per_type",
                "weight_config has one row a relation type",
                unique("relation_type"),
            ),
            (
                "boost_positive",
                "a boost is above 0, so that no edge is infinitely long",
                "relation_type",
                "relation_boost",
            ),
            ("tau_positive", "a time constant is above 0 days", "relation_type", "tau_days"),
        ],
    },
    {"boost_positive": f"{_WEIGH}; if it stays, set hirag_pathrag.path.relation_boost above 0"},
)
CONFIG = ("relation_type", "type_prior", "tau_days", "relation_boost", "coefficients")
PARTS = ("sim", "type_prior", "evidence", "freshness")
BIAS = "bias"
TOLERANCE = 1e-6
_FLOORED = 1e-2  # below this a cost may be shorter than the logarithm: the setting `eps` is a floor


def weight_frames(store: RowStore) -> Frames:
    """Relations with weight and cost beside those computed again, in float64; mentions, and the
    configuration.
    """
    relations = read(
        store,
        "relations",
        "type",
        "weight",
        "weight_components",
        "learned",
        "cost",
    )
    never_ran = stage_ledger.last_completion(store, stage_ledger.WEIGHTS) is None

    if never_ran and column(relations, "weight").null_count == relations.num_rows:
        return Frames({}, ("no relation has been weighed yet",))

    config = read(store, "weight_config", *CONFIG)
    coefficients, note = _coefficients(config)
    frames = {
        "relations": _weighed_relations(relations, config, coefficients),
        "mentions": read(store, "mentions", "weight"),
        "weight_config": with_columns(
            config.drop_columns(["coefficients"]),
            boost_positive=numbers(column(config, "relation_boost")) > 0,
            tau_positive=numbers(column(config, "tau_days")) > 0,
        ),
    }
    return Frames(frames, notes=(note,) if note else ())


def _weighed_relations(
    table: pa.Table,
    config: pa.Table,
    coefficients: Floats,
) -> pa.Table:
    components = column(table, "weight_components")
    parts = {name: numbers(pc.struct_field(components, name)) for name in PARTS}
    kinds: Longs = places_of(column(table, "type"), column(config, "relation_type"))
    prior = at(
        numbers(column(config, "type_prior")),
        kinds,
        np.nan,
    )
    boost = at(
        numbers(column(config, "relation_boost")),
        kinds,
        np.nan,
    )
    weight = numbers(column(table, "weight"))
    cost = numbers(column(table, "cost"))
    sums = np.append(
        coefficients,
        np.full((1, len(PARTS) + 1), np.nan),
        axis=0,
    )[kinds]
    logit = sums[:, -1] + sum(sums[:, number] * parts[name] for number, name in enumerate(PARTS))
    logit += np.nan_to_num(numbers(column(table, "learned")))
    again = 0.5 * (1.0 + np.tanh(0.5 * logit))

    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.maximum(0.0, -np.log(weight * boost))

    floored = (weight * boost < _FLOORED) & (cost < length) & (cost >= -np.log(_FLOORED))
    has_parts = flags(pc.is_valid(components)) & ~np.isnan(sum(parts.values()))
    recomputed = {
        "configured_prior": prior,
        "recomputed_weight": again,
        "recomputed_cost": length,
    }

    shown = {}
    for name, values in {**parts, **recomputed}.items():
        shown[name] = pa.array(values, from_pandas=True)

    return with_columns(
        table.drop_columns(["weight_components"]),
        **shown,
        components_given=has_parts | np.isnan(weight),
        type_configured=kinds >= 0,
        prior_of_type=close(parts["type_prior"], prior, TOLERANCE),
        weight_recomputes=close(weight, again, TOLERANCE),
        cost_recomputes=close(cost, length, TOLERANCE) | floored,
    )


def _coefficients(config: pa.Table) -> tuple[Floats, str]:
    """(n_types, 5): what each component counts, then the bias; NaN, which is not compared, where a
    row is silent.
    """
    names = (*PARTS, BIAS)
    values = np.full((config.num_rows, len(names)), np.nan)

    for row, text in enumerate(config.column("coefficients").to_pylist()):
        coefficients = orjson.loads(text)
        values[row] = [coefficients.get(name, np.nan) for name in names]

    is_silent = pa.array(np.isnan(values).any(axis=1))
    silent = config.column("relation_type").filter(is_silent).to_pylist()
    note = ""

    if silent:
        note = (
            f"weights of {', '.join(silent)} were not recomputed: weight_config gives no "
            "coefficients"
        )

    return values, note
