"""The section `hirag_pathrag:` of hades.yaml, with the keys and defaults of specification 002."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from schemas.graph_types import RelationType

# Specification 002 gives five boosts. The other three stand below the strongest of them, so that a type nobody
# thought about never outranks one that somebody did (requirement X-53).
DEFAULT_BOOSTS: dict[RelationType, float] = {
    RelationType.REFERS_TO: 0.8,
    RelationType.IMPLEMENTS: 0.7,
    RelationType.CITES: 0.6,
    RelationType.DERIVES_FROM: 0.6,
    RelationType.EXTENDS: 0.6,
    RelationType.RELATED_TO: 0.5,
    RelationType.COREF: 0.4,
    RelationType.SIMILAR_TO: 0.4,
}


class Section(BaseModel):
    """A part of the tree: immutable, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class PathSettings(Section):
    """How paths are searched and scored."""

    max_paths: int = Field(6, alias="M", ge=1, description="paths returned, where the question does not say how many")
    max_hops: int = Field(
        5,
        alias="L",
        ge=1,
        description="edges of the longest path that the bridges stage searches; for a question it is plan.graph.hops",
    )
    length_penalty: float = Field(
        0.3, alias="lambda", ge=0.0, description="mean log weight - lambda * (edges - 1): what each further edge costs"
    )
    eps: float = Field(1e-6, gt=0.0, description="smallest weight a cost is taken of; keeps -ln finite")
    relation_boost: dict[RelationType, float] = Field(
        default_factory=lambda: dict(DEFAULT_BOOSTS),
        description="factor on the weight of each relation type; every type has one",
    )

    @field_validator("relation_boost", mode="before")
    @classmethod
    def _knows_every_type(cls, boosts: object) -> object:
        if not isinstance(boosts, dict):
            return boosts
        known = [str(relation) for relation in RelationType]
        if unknown := [str(name) for name in boosts if str(name) not in known]:
            raise ValueError(f"no relation type is called {', '.join(unknown)}; the types are {', '.join(known)}")
        if missing := [name for name in known if boosts.get(name) is None]:
            raise ValueError(f"no boost is given for {', '.join(missing)}; every relation type needs one")
        return boosts

    @field_validator("relation_boost")
    @classmethod
    def _boosts_are_factors(cls, boosts: dict[RelationType, float]) -> dict[RelationType, float]:
        for relation, boost in boosts.items():
            if not 0.0 < boost <= 1.0:
                raise ValueError(f"the boost of {relation} is {boost}; it must be above 0 and at most 1")
        return boosts


class BeamDemotion(Section):
    """How hubs are kept from drowning the beam."""

    deg_alpha: float = Field(0.005, ge=0.0, description="score / (1 + deg_alpha * out-degree)")


class BeamTerms(Section):
    """What each term of a path's score counts in the beam."""

    seed_sim: float = Field(0.3, ge=0.0, le=1.0, description="how well the seed matches the question")
    edge_weight: float = Field(0.2, ge=0.0, le=1.0, description="mean weight of the edges")
    lex_match: float = Field(0.5, ge=0.0, le=1.0, description="how well the nodes match the question")
    depth_penalty: float = Field(0.1, ge=0.0, le=1.0, description="what the length of the path counts against it")
    redundancy: float = Field(0.3, ge=0.0, le=1.0, description="what overlap with better paths counts against it")


class TopicThresholds(Section):
    """The least cosine of a topic with the question; topics below it are not entered."""

    super_topic: float = Field(-1.0, ge=-1.0, le=1.0, description="of a topic of the upper level; -1: any")
    topic: float = Field(-1.0, ge=-1.0, le=1.0, description="of a topic of the lower level; -1: any")


class HiragPathrag(Section):
    """Narrowing by topics, then paths."""

    topic_k: int = Field(8, ge=1, description="topics the question is compared with first")
    beam: tuple[int, ...] = Field((8, 4, 2), min_length=1, description="kept per level on the way down the hierarchy")
    cand_cap: int = Field(500, ge=1, description="nodes of the candidate graph")
    path: PathSettings = Field(default_factory=PathSettings, description="path search")
    beam_demote: BeamDemotion = Field(default_factory=BeamDemotion, description="hub demotion")
    beam_terms: BeamTerms = Field(default_factory=BeamTerms, description="weights of the beam's score")
    topic_thresholds: TopicThresholds = Field(
        default_factory=TopicThresholds, description="least cosine of a topic that is entered"
    )

    @field_validator("beam")
    @classmethod
    def _widths_are_positive(cls, beam: tuple[int, ...]) -> tuple[int, ...]:
        if min(beam) < 1:
            raise ValueError(f"every width of the beam must be at least 1, not {list(beam)}")
        return beam
