"""What one turn may spend: the plan, its hard caps, and the reasons a turn gives for what it did."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from schemas.record import Record, Unit

# Requirement X-33: the low end of each range is the default, the high end the hard cap.
MAX_SUBQUERIES = 8
MAX_SEEDS = 8
MAX_HOPS = 2
MAX_FANOUT = 3
MAX_BEAM = 16
MAX_RERANKED = 24
MAX_CONTEXT = 8


class Reason(StrEnum):
    """Why a turn stopped, trimmed or fell back. A closed list: a new reason is added here, with its sentence."""

    about: str

    def __new__(cls, code: str, about: str) -> Self:
        """A code that carries the sentence that explains it."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.about = about
        return reason

    CAP_EXCEEDED = "cap_exceeded", "there was more than a cap of the plan allows; the rest was not looked at"
    COVERAGE_REACHED = "coverage_reached", "stopped early: what was asked for is covered"
    TIMEOUT = "timeout", "a stage ran out of its time; what it had found by then was used"
    BUDGET_DOCS = "budget_docs", "the reads of this turn (budget.docs_max) were used up"
    PLAN_CLAMPED = "plan_clamped", "the plan asked for more than a hard cap and was lowered to it"
    NO_ENTITY_MATCH = "no_entity_match", "no entity of the graph matches the question"
    NO_PATHS = "no_paths", "seeds were found, but no path between or from them satisfies the plan"
    HIERARCHY_UNAVAILABLE = "hierarchy_unavailable", "topics have not been built; seeds were not narrowed by them"
    EMBEDDINGS_MISSING = "embeddings_missing", "rows without a vector of the current model were found by text only"
    ANALYZER_MISMATCH = "analyzer_mismatch", "the server's text analyzer is not the one the catalogue declares"
    VIEW_DEGRADED = "view_degraded", "the read index is older than the store, or a part of it could not be opened"
    ABSTAINED = "abstained", "the evidence is too weak; no answer is better than this one"


class RetrieverStage(Record):
    """First stage: seeds by vector, spread by maximal marginal relevance."""

    k: int = Field(6, ge=1, le=MAX_SEEDS, description="seeds, over all sub-queries together")
    mmr: Unit = Field(0.4, description="0 takes the most similar seeds, 1 the most different ones")
    timeout_ms: int = Field(200, ge=1, description="time for this stage")


class GraphStage(Record):
    """Second stage: the beam through the graph."""

    hops: int = Field(1, ge=0, le=MAX_HOPS, description="edges from a seed to the end of a path")
    fanout: int = Field(2, ge=1, le=MAX_FANOUT, description="neighbours a path is continued to")
    beam: int = Field(8, ge=1, le=MAX_BEAM, description="paths kept in the whole turn, all depths together")
    timeout_ms: int = Field(500, ge=1, description="time for this stage")


class RerankerStage(Record):
    """Third stage: a closer look at the best candidates."""

    m: int = Field(20, ge=1, le=MAX_RERANKED, description="candidates that are reranked")
    timeout_ms: int = Field(500, ge=1, description="time for this stage")


class Budget(Record):
    """What the whole turn may spend."""

    docs_max: int = Field(160, ge=1, description="documents and edges read")
    latency_ms: int = Field(2000, ge=1, description="time for the whole turn")


class Plan(Record):
    """A turn's plan. One above a hard cap cannot be made, so it can never be run."""

    q: int = Field(2, ge=1, le=MAX_SUBQUERIES, description="sub-queries; they share the caps, which are not multiplied")
    retriever: RetrieverStage = RetrieverStage()
    graph: GraphStage = GraphStage()
    reranker: RerankerStage = RerankerStage()
    final_context: int = Field(6, ge=1, le=MAX_CONTEXT, description="passages and paths in the prompt")
    budget: Budget = Budget()
    reasons: tuple[Reason, ...] = Field((), description="what was done to the plan before it ran")

    @model_validator(mode="after")
    def _stages_fit_the_turn(self) -> Self:
        staged = self.retriever.timeout_ms + self.graph.timeout_ms + self.reranker.timeout_ms
        if staged > self.budget.latency_ms:
            raise ValueError(
                f"the stages' timeouts add up to {staged} ms, more than budget.latency_ms ({self.budget.latency_ms})"
            )
        return self
