"""What weighing goes by: the seeds of `weight_config`, the boosts of the settings, and how much counts as much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hades.errors import HadesError
from hades.settings.hirag import DEFAULT_BOOSTS, PathSettings
from hades.settings.learning import LearningSettings
from models.weights.mentions import MentionRules
from schemas.graph_types import RelationType


class WeightError(HadesError):
    """Weights that cannot be computed, logged or restored: what was expected and what to do."""


@dataclass(frozen=True)
class TypePrior:
    """What a relation type starts from: how much the type alone tells, and how fast it ages."""

    type_prior: float
    tau_days: float


_YEAR = 365.0
# Stated by an author outranks read by a rule, which outranks counted or measured. Names and code drift slowly.
SEEDS: Mapping[RelationType, TypePrior] = {
    RelationType.IMPLEMENTS: TypePrior(0.9, 5 * _YEAR),
    RelationType.EXTENDS: TypePrior(0.8, 5 * _YEAR),
    RelationType.DERIVES_FROM: TypePrior(0.8, 5 * _YEAR),
    RelationType.CITES: TypePrior(0.7, 5 * _YEAR),
    RelationType.REFERS_TO: TypePrior(0.5, 5 * _YEAR),
    RelationType.COREF: TypePrior(0.4, 20 * _YEAR),
    RelationType.RELATED_TO: TypePrior(0.3, 3 * _YEAR),
    RelationType.SIMILAR_TO: TypePrior(0.3, 20 * _YEAR),
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

    def __post_init__(self) -> None:
        if missing := [str(kind) for kind in RelationType if kind not in self.boosts]:
            raise WeightError(f"no boost is given for {', '.join(missing)}; every relation type needs one")


def rules_of(path: PathSettings, learning: LearningSettings) -> WeightRules:
    """The rules that follow from the sections `hirag_pathrag.path` and `learning` of the settings."""
    return WeightRules(boosts=dict(path.relation_boost), eps=path.eps, learning=learning)
