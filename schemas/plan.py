"""What one turn may spend: the plan, the hard caps of its profile, and the reasons a turn gives for
what it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from schemas.record import Record, Unit


class Reason(StrEnum):
    """Why a turn stopped, trimmed or fell back. A closed list: a new reason is added here, with its
    sentence.
    """

    about: str

    def __new__(cls, code: str, about: str) -> Self:
        """A code that carries the sentence that explains it."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.about = about
        return reason

    CAP_EXCEEDED = (
        "cap_exceeded",
        "there was more than a cap of the plan allows; the rest was not looked at",
    )
    COVERAGE_REACHED = "coverage_reached", "stopped early: what was asked for is covered"
    TIMEOUT = "timeout", "a stage ran out of its time; what it had found by then was used"
    BUDGET_DOCS = "budget_docs", "the reads of this turn (budget.docs_max) were used up"
    PLAN_CLAMPED = "plan_clamped", "the plan asked for more than a hard cap and was lowered to it"
    STAGES_SHORTENED = (
        "stages_shortened",
        "the stages' timeouts did not fit budget.latency_ms and were shortened in proportion",
    )
    NO_ENTITY_MATCH = "no_entity_match", "no entity of the graph matches the question"
    NO_PATHS = "no_paths", "seeds were found, but no path between or from them satisfies the plan"
    HIERARCHY_UNAVAILABLE = (
        "hierarchy_unavailable",
        "topics have not been built; seeds were not narrowed by them",
    )
    EMBEDDINGS_MISSING = (
        "embeddings_missing",
        "rows without a vector of the current model were found by text only",
    )
    CONTEXT_FULL = (
        "context_full",
        "final_context is below its default and left out passages or paths that the default shows",
    )
    PROMPT_FULL = (
        "prompt_full",
        "not all that the answer holds fits into the prompt (budget.tokens_max)",
    )
    KEY_UNUSED = (
        "key_unused",
        "the plan sets a key that this recipe does not use; the recipe's page says which it uses",
    )
    EMBEDDER_SLOW = (
        "embedder_slow",
        "the embedder did not answer in its share of the turn's time; words searched alone",
    )
    ANALYZER_MISMATCH = (
        "analyzer_mismatch",
        "the server's text analyzer is not the one the catalogue declares",
    )
    VIEW_DEGRADED = (
        "view_degraded",
        "the read index is older than the store, or a part of it could not be opened",
    )
    STORE_UNAVAILABLE = (
        "store_unavailable",
        "the database did not answer: memory was left out, and waiting took time of the turn",
    )
    RANKER_UNAVAILABLE = (
        "ranker_unavailable",
        "the learned ranker is missing, damaged or of another kind: ranked by hand",
    )
    NOT_BUILT = (
        "not_built",
        "nothing was published yet; the files of the workspace were searched by words and names",
    )
    GRAPH_FOLLOWS = (
        "graph_follows",
        "a page that is cited was saved after the graph was built: its words and vectors were "
        "searched, its connections follow",
    )
    TOPICS_LATER = (
        "topics_later",
        "topics also speak of texts later than as_of or known_at, so none is shown",
    )
    UNDATED = (
        "undated",
        "as_of or known_at was given, and some of what is shown has no date, so it may be later",
    )
    ABSTAINED = "abstained", "the sources do not answer this; what is shown is only the nearest"
    UNFINISHED = (
        "unfinished",
        "time or reads ran out before the search ended; whether the sources answer is not known",
    )


# The search ended before it had looked at all that the plan asks for: what it did not find may be
# there.
CUT_SHORT = frozenset({Reason.TIMEOUT, Reason.BUDGET_DOCS, Reason.EMBEDDER_SLOW})


class Profile(StrEnum):
    """Who asks, and so which hard caps hold (requirements X-30, X-33, X-59)."""

    ONLINE = "online"
    AGENT = "agent"
    PATHS = "paths"
    LONG = "long"
    EVALUATION = "evaluation"
    OFFLINE = "offline"


@dataclass(frozen=True)
class HardCaps:
    """The most a plan of a profile may ask for. `work_max` and `docs_max` are adjacency entries and
    reads.
    """

    q: int
    k: int
    hops: int
    fanout: int
    beam: int
    m: int
    final_context: int
    docs_max: int
    work_max: int
    tokens_max: int
    latency_ms: int


# Specification 001's guarantee; only the prompts of other profiles, or builds and evaluation, may
# have more.
_ONLINE_CAPS = HardCaps(
    q=8,
    k=8,
    hops=2,
    fanout=3,
    beam=16,
    m=24,
    final_context=8,
    docs_max=160,
    work_max=2_000_000,
    tokens_max=4096,
    latency_ms=2000,
)
HARD_CAPS: dict[Profile, HardCaps] = {
    Profile.ONLINE: _ONLINE_CAPS,
    Profile.AGENT: _ONLINE_CAPS,
    Profile.PATHS: replace(_ONLINE_CAPS, tokens_max=1020),
    Profile.LONG: HardCaps(
        q=8,
        k=32,
        hops=3,
        fanout=8,
        beam=64,
        m=128,
        final_context=64,
        docs_max=2000,
        work_max=10_000_000,
        tokens_max=100_000,
        latency_ms=10_000,
    ),
    Profile.EVALUATION: HardCaps(
        q=8,
        k=64,
        hops=5,
        fanout=16,
        beam=128,
        m=500,
        final_context=100,
        docs_max=5000,
        work_max=50_000_000,
        tokens_max=100_000,
        latency_ms=30_000,
    ),
    Profile.OFFLINE: HardCaps(
        q=64,
        k=512,
        hops=5,
        fanout=64,
        beam=1024,
        m=2000,
        final_context=1000,
        docs_max=1_000_000,
        work_max=2_000_000_000,
        tokens_max=100_000,
        latency_ms=3_600_000,
    ),
}
# What a profile starts from where it is not requirement B15: room for R@10 and 500 candidates, long
# prompts, builds.
_DEFAULTS: dict[Profile, dict[str, Any]] = {
    Profile.PATHS: {"budget": {"tokens_max": 1020}},
    Profile.LONG: {
        "retriever": {"k": 16, "timeout_ms": 1000},
        "graph": {
            "hops": 2,
            "fanout": 4,
            "beam": 32,
            "timeout_ms": 2000,
        },
        "reranker": {"m": 64, "timeout_ms": 2000},
        "final_context": 32,
        "budget": {
            "docs_max": 1000,
            "work_max": 10_000_000,
            "tokens_max": 100_000,
            "latency_ms": 10_000,
        },
    },
    Profile.EVALUATION: {
        "retriever": {
            "k": 15,
            "mmr": 0.0,
            "timeout_ms": 5000,
        },
        "graph": {
            "hops": 2,
            "fanout": 4,
            "beam": 32,
            "timeout_ms": 10_000,
        },
        "reranker": {"m": 50, "timeout_ms": 10_000},
        "final_context": 20,
        "budget": {
            "docs_max": 1000,
            "work_max": 10_000_000,
            "latency_ms": 30_000,
        },
    },
    Profile.OFFLINE: {
        "retriever": {"k": 32, "timeout_ms": 60_000},
        "graph": {
            "hops": 5,
            "fanout": 16,
            "beam": 256,
            "timeout_ms": 600_000,
        },
        "reranker": {"m": 500, "timeout_ms": 60_000},
        "final_context": 100,
        "budget": {
            "docs_max": 100_000,
            "work_max": 100_000_000,
            "tokens_max": 100_000,
            "latency_ms": 900_000,
        },
    },
}


class RetrieverStage(Record):
    """First stage: seeds by vector, text and name, spread by maximal marginal relevance."""

    k: int = Field(
        6,
        ge=1,
        description="seeds of all sub-queries; no walk or path starts elsewhere; online at most 8",
    )
    mmr: Unit = Field(
        0.4,
        description="0 takes the most similar seeds, 1 the most different ones",
    )
    timeout_ms: int = Field(
        200,
        ge=1,
        description="time for this stage",
    )


class GraphStage(Record):
    """Second stage: the way through the graph."""

    hops: int = Field(
        1,
        ge=0,
        description="edges from a seed to the end of a path, 0: no graph; online at most 2",
    )
    fanout: int = Field(
        2,
        ge=1,
        description="neighbours a path is continued to; online at most 3",
    )
    beam: int = Field(
        8,
        ge=1,
        description="paths of a whole turn; names a later walk goes on from; online at most 16",
    )
    timeout_ms: int = Field(
        500,
        ge=1,
        description="time for this stage",
    )


class RerankerStage(Record):
    """Third stage: a closer look at the best candidates."""

    m: int = Field(
        20,
        ge=1,
        description="candidates that are read and judged; online at most 24",
    )
    timeout_ms: int = Field(
        500,
        ge=1,
        description="time for this stage",
    )


class Budget(Record):
    """What the whole turn may spend."""

    docs_max: int = Field(
        160,
        ge=1,
        description="documents and edges read; online at most 160",
    )
    latency_ms: int = Field(
        2000,
        ge=1,
        description="time for the whole turn; online at most 2000",
    )
    work_max: int = Field(
        2_000_000,
        ge=1,
        description="adjacency entries scanned in memory; online at most 2,000,000",
    )
    tokens_max: int = Field(
        4096,
        ge=1,
        description="tokens of the prompt; online at most 4096, profile paths 1020",
    )


class Plan(Record):
    """A turn's plan. One above a hard cap of its profile cannot be made, so it can never be run."""

    q: int = Field(
        2,
        ge=1,
        description="sub-queries; they share the caps, which are not multiplied; online at most 8",
    )
    retriever: RetrieverStage = RetrieverStage()
    graph: GraphStage = GraphStage()
    reranker: RerankerStage = RerankerStage()
    final_context: int = Field(
        6,
        ge=1,
        description="passages in the answer, and paths in it; online at most 8",
    )
    budget: Budget = Budget()
    reasons: tuple[Reason, ...] = Field((), description="what was done to the plan before it ran")
    profile: Profile = Field(
        Profile.ONLINE,
        description="whose hard caps hold; gives what is left out its default",
    )

    @model_validator(mode="before")
    @classmethod
    def _start_from_the_profile(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            return _with_defaults(values)
        return values

    @model_validator(mode="after")
    def _stays_below_the_caps(self) -> Self:
        problems = []
        for place, value, cap in over_caps(self):
            problems.append(
                InitErrorDetails(
                    type="less_than_equal",
                    loc=place,
                    input=value,
                    ctx={"le": cap},
                )
            )

        if problems:
            raise ValidationError.from_exception_data("Plan", problems)

        return self

    @model_validator(mode="after")
    def _stages_fit_the_turn(self) -> Self:
        staged = self.retriever.timeout_ms + self.graph.timeout_ms + self.reranker.timeout_ms
        if staged > self.budget.latency_ms:
            raise ValueError(
                f"the stages' timeouts add up to {staged} ms, more than budget.latency_ms "
                f"({self.budget.latency_ms})"
            )

        return self


# Where a plan says what the field of `HardCaps` of the last name bounds.
CAPPED: tuple[tuple[str, ...], ...] = (
    ("q",),
    ("retriever", "k"),
    ("graph", "hops"),
    ("graph", "fanout"),
    ("graph", "beam"),
    ("reranker", "m"),
    ("final_context",),
    ("budget", "docs_max"),
    ("budget", "work_max"),
    ("budget", "tokens_max"),
    ("budget", "latency_ms"),
)


def over_caps(plan: Plan) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Where a plan is above its profile: place, value, cap."""
    caps = HARD_CAPS[Profile(plan.profile)]
    for place in CAPPED:
        value: Any = plan
        for part in place:
            value = getattr(value, part)

        if value > (cap := getattr(caps, place[-1])):
            yield place, value, cap


def _with_defaults(requested: Mapping[str, Any]) -> dict[str, Any]:
    """The profile's defaults below what was given; an unknown profile is left for its field to
    refuse.
    """
    values = dict(requested)
    profile = values.get("profile", Profile.ONLINE)

    if profile not in list(Profile):
        return values

    for name, default in _DEFAULTS.get(Profile(profile), {}).items():
        if name not in values:
            values[name] = default
        elif isinstance(default, dict) and isinstance(values[name], Mapping):
            values[name] = {**default, **values[name]}

    return values
