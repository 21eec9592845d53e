"""Weights: each recomputes from its stored components, and each cost from its weight."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, give, holds, one_of, unique
from schemas.graph_types import RelationType

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
