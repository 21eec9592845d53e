"""Contract weights."""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.contracts.columns import (
    Floats,
    Frames,
    Longs,
    Source,
    at,
    close,
    column,
    flags,
    numbers,
    place,
    with_columns,
)
from hades.build.contracts.rule import Contract, Rule, between, give, holds, one_of, unique
from schemas.nodes import RelationType

# Weights: each recomputes from its stored components, and each cost from its weight.


_WEIGH = "run `hades repair weights`"
CONTRACT = Contract(
    "weights",
    "weights and costs of relations, and the configuration they follow from",
    (
        Rule(
            "weights.every_relation_weighed",
            "relations",
            "every relation has a weight",
            give("weight"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.weight_in_unit_interval",
            "relations",
            "a weight lies between 0 and 1",
            between("weight", 0, 1),
            repair=_WEIGH,
        ),
        Rule(
            "weights.components_given",
            "relations",
            "a weight keeps the components it was made of",
            holds("components_given"),
            ("weight",),
            repair=_WEIGH,
        ),
        Rule(
            "weights.freshness_in_unit_interval",
            "relations",
            "freshness lies between 0 and 1",
            between("freshness", 0, 1),
            repair=_WEIGH,
        ),
        Rule(
            "weights.similarity_in_range",
            "relations",
            "similarity lies between -1 and 1",
            between("sim", -1, 1),
            repair=_WEIGH,
        ),
        Rule(
            "weights.prior_of_type",
            "relations",
            "the prior in a weight is that of the relation's type",
            holds("prior_matches"),
            ("type", "type_prior", "configured_prior"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.weight_recomputes",
            "relations",
            "a weight is the sigmoid of its components by the configured coefficients",
            holds("weight_recomputes"),
            ("weight", "recomputed_weight"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.cost_given",
            "relations",
            "a weighed relation has a cost",
            give("cost"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.cost_not_negative",
            "relations",
            "a cost is never below 0",
            between("cost", 0),
            repair=_WEIGH,
        ),
        Rule(
            "weights.cost_recomputes",
            "relations",
            "a cost is -ln(weight * boost)",
            holds("cost_recomputes"),
            ("weight", "cost", "recomputed_cost"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.type_configured",
            "relations",
            "weight_config has a row for the relation's type",
            holds("type_configured"),
            ("type",),
            repair=_WEIGH,
        ),
        Rule(
            "weights.mention_weight_in_unit_interval",
            "mentions",
            "a mention's weight lies between 0 and 1",
            between("weight", 0, 1),
            repair=_WEIGH,
        ),
        Rule(
            "weights.configured_type_known",
            "weight_config",
            "weight_config speaks of known relation types",
            one_of("relation_type", [str(kind) for kind in RelationType]),
            repair=_WEIGH,
        ),
        Rule(
            "weights.one_row_per_type",
            "weight_config",
            "weight_config has one row a relation type",
            unique("relation_type"),
            repair=_WEIGH,
        ),
        Rule(
            "weights.boost_positive",
            "weight_config",
            "a boost is above 0, so that no edge is infinitely long",
            holds("boost_positive"),
            ("relation_type", "relation_boost"),
            repair=f"{_WEIGH}; if it stays, set hirag_pathrag.path.relation_boost above 0",
        ),
        Rule(
            "weights.tau_positive",
            "weight_config",
            "a time constant is above 0 days",
            holds("tau_positive"),
            ("relation_type", "tau_days"),
            repair=_WEIGH,
        ),
    ),
)
# The frames of the contract `weights`: every weight and cost is computed again, in float64, from what is stored.
CONFIG = ("relation_type", "type_prior", "tau_days", "relation_boost", "coefficients")
PARTS = ("sim", "type_prior", "evidence", "freshness")
BIAS = "bias"
_TOLERANCE = 1e-6
_FLOORED = 1e-2  # below this a cost may be shorter than the logarithm: the setting `eps` is a floor


def weight_frames(source: Source) -> Frames:
    """Relations with weight and cost beside their recomputed ones, mentions, and the configuration."""
    relations, left = source.read_new("relations", "type", "weight", "weight_components", "learned", "cost")
    if not left and column(relations, "weight").null_count == relations.num_rows:
        return Frames({}, absent="no relation has been weighed yet")
    mentions, unread = source.read_new("mentions", "weight")
    config = source.read("weight_config", *CONFIG)
    coefficients, note = _coefficients(config)
    frames = {
        "relations": _relations(relations, config, coefficients),
        "mentions": mentions,
        "weight_config": _config(config),
    }
    left_out = {"relations": left, "mentions": unread}
    return Frames(frames, notes=(note,) if note else (), left_out=left_out)


def _relations(table: pa.Table, config: pa.Table, coefficients: Floats) -> pa.Table:
    components = column(table, "weight_components")
    parts = {name: numbers(pc.struct_field(components, name)) for name in PARTS}
    kinds: Longs = place(column(table, "type"), column(config, "relation_type"))
    prior, boost = (at(numbers(column(config, name)), kinds, np.nan) for name in ("type_prior", "relation_boost"))
    weight, cost = numbers(column(table, "weight")), numbers(column(table, "cost"))
    sums = np.append(coefficients, np.full((1, len(PARTS) + 1), np.nan), axis=0)[kinds]
    logit = sums[:, -1] + sum(sums[:, number] * parts[name] for number, name in enumerate(PARTS))
    logit += np.nan_to_num(numbers(column(table, "learned")))
    again = 0.5 * (1.0 + np.tanh(0.5 * logit))
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.maximum(0.0, -np.log(weight * boost))
    floored = (weight * boost < _FLOORED) & (cost < length) & (cost >= -np.log(_FLOORED))
    return with_columns(
        table.drop_columns(["weight_components"]),
        **{name: pa.array(values, from_pandas=True) for name, values in parts.items()},
        configured_prior=pa.array(prior, from_pandas=True),
        recomputed_weight=pa.array(again, from_pandas=True),
        recomputed_cost=pa.array(length, from_pandas=True),
        components_given=flags(pc.is_valid(components)) & ~np.isnan(sum(parts.values())) | np.isnan(weight),
        type_configured=kinds >= 0,
        prior_matches=close(parts["type_prior"], prior, _TOLERANCE),
        weight_recomputes=close(weight, again, _TOLERANCE),
        cost_recomputes=close(cost, length, _TOLERANCE) | floored,
    )


def _config(config: pa.Table) -> pa.Table:
    return with_columns(
        config.drop_columns(["coefficients"]),
        boost_positive=numbers(column(config, "relation_boost")) > 0,
        tau_positive=numbers(column(config, "tau_days")) > 0,
    )


def _coefficients(config: pa.Table) -> tuple[Floats, str]:
    """(n_types, 5): what each component counts, then the bias; NaN, which is not compared, where a row is silent."""
    names = (*PARTS, BIAS)
    held = [orjson.loads(text) for text in config.column("coefficients").to_pylist()]
    found = np.array([[float(one.get(name, np.nan)) for name in names] for one in held]).reshape(-1, len(names))
    silent = [
        kind for kind, row in zip(config.column("relation_type").to_pylist(), found, strict=True) if np.isnan(row).any()
    ]
    note = f"weights of {', '.join(silent)} were not recomputed: weight_config gives no coefficients" if silent else ""
    return found, note
