"""An agent's memory: states of topics through time, and what joins them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from schemas.ids import contains
from schemas.record import Edge, Json, Keyed, Unit, Vector

RELATION_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"


class MemoryState(Keyed):
    """One version of what is known about a topic."""

    topic: str
    content: str = Field(
        description="whole, or, of an older delta as it is stored, only what it added to its parent"
    )
    version: int = Field(ge=1)
    timestamp: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    retracted_at: datetime | None = Field(None, description="when the act that wrote it was undone")
    embedding: Vector | None = None
    embedding_model: str | None = None
    parent_state_id: str | None = None
    metadata: Json = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    confidence: Unit = 1.0
    access_count: int = Field(
        0,
        ge=0,
        description="how often it was shown; counted by upkeep",
    )
    last_accessed: datetime | None = None
    importance_score: Unit = 0.5
    consolidated_from: tuple[str, ...] = ()
    is_consolidated: bool = False
    consolidation_level: int = Field(
        0,
        ge=0,
        le=3,
        description="0 raw, 1 daily, 2 weekly, 3 monthly",
    )
    diff_from_parent: str | None = None
    is_delta: bool = False

    @property
    def id(self) -> str:
        """The specification's name for the key."""
        return self.key


class MemoryTrace(Keyed):
    """The whole history of a topic, oldest first."""

    topic: str
    states: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    metadata: Json = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """The key."""
        return self.key


class LatestState(Keyed):
    """Topic to newest state, written in the same transaction as the state."""

    topic: str
    latest_state_id: str
    version: int = Field(ge=1)
    updated_at: datetime
    began: datetime | None = Field(None, description="when the newest version began to hold")
    in_order: bool = Field(
        False,
        description="each version began no earlier than the one before, and none ends or was "
        "retracted",
    )


class MemoryRelation(StrEnum):
    """How states are joined (requirement D17)."""

    EVOLVES_TO = "evolves_to"
    RELATES_TO = "relates_to"
    CAUSES = "causes"
    REFERENCES = "references"
    CONTRADICTS = "contradicts"
    SUPPORTS = "supports"
    REJECTED_BECAUSE = "rejected_because"
    VIABLE_AFTER_FIX = "viable_after_fix"
    BLOCKED_BY = "blocked_by"
    ENABLED_BY = "enabled_by"
    HAS_TRAIT = "has_trait"
    CAUSED_BY = "caused_by"
    INTERACTED_WITH = "interacted_with"


class MemoryEdgeKind(StrEnum):
    """The four kinds of requirement D11."""

    TEMPORAL = "temporal"
    CROSS_TOPIC = "cross_topic"
    CAUSAL = "causal"
    REFERENCE = "reference"


class MemoryEdge(Edge):
    """What was believed of a relation between two states, from `recorded_at` until `retracted_at`.

    An edge is its rows: each change of mind is another one, `id` and a running number make the key.
    `source_state_id` and `target_state_id` are its `_from` and `_to`.
    """

    relationship_type: str = Field(
        pattern=RELATION_PATTERN,
        description="one of MemoryRelation, or a name of your own in the same form",
    )
    kind: MemoryEdgeKind
    strength: Unit = 1.0
    timestamp: datetime
    bidirectional: bool = False
    description: str = ""
    superseded_by: str | None = Field(None, description="id of the edge that took its place")
    metadata: Json = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """What all beliefs about this edge share."""
        return self.key.rpartition("_")[0]

    @property
    def revision(self) -> int:
        """Which belief about the edge this is, counted from 1."""
        return int(self.key.rpartition("_")[2])

    def is_active(self, as_of: datetime) -> bool:
        """Whether it was true at that moment, as far as this row says."""
        return contains(self.valid_from, self.valid_until, as_of)

    @property
    def source_state_id(self) -> str:
        """The specification's name for the tail."""
        return self.source

    @property
    def target_state_id(self) -> str:
        """The specification's name for the head."""
        return self.target


class MemoryAudit(Keyed):
    """Who did what to which state or edge, when and why."""

    subject: str
    action: str
    who: str
    at: datetime
    why: str = ""
    detail: Json = Field(default_factory=dict)
