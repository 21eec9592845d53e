"""Relations: which types there are, which way they point, and what they may join."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from schemas.nodes import MAX_LEARNED, CodeEdgeType, EntityType, RelationType
from schemas.record import Edge, Json, Record, Unit

_ANY = frozenset(EntityType)
_WORK = frozenset({EntityType.PAPER, EntityType.METHOD, EntityType.CONCEPT})
_EXTENSIBLE = frozenset({EntityType.METHOD, EntityType.CONCEPT, EntityType.CODE_SYMBOL})
# Requirement C20: citer -> cited, paper or method -> code symbol, new -> base, mention ->
# canonical.
ENDPOINTS: dict[RelationType, tuple[frozenset[EntityType], frozenset[EntityType]]] = {
    RelationType.CITES: (frozenset({EntityType.PAPER}), frozenset({EntityType.PAPER})),
    RelationType.IMPLEMENTS: (
        frozenset({EntityType.PAPER, EntityType.METHOD}),
        frozenset({EntityType.CODE_SYMBOL}),
    ),
    RelationType.EXTENDS: (_EXTENSIBLE, _EXTENSIBLE),
    RelationType.DERIVES_FROM: (_WORK, _WORK),
    RelationType.REFERS_TO: (_ANY, _ANY),
    RelationType.COREF: (_ANY, _ANY),
    RelationType.SIMILAR_TO: (_ANY, _ANY),
    RelationType.RELATED_TO: (_ANY, _ANY),
}
NEVER_BRIDGES = frozenset({RelationType.COREF})
SYMMETRIC = frozenset({RelationType.SIMILAR_TO, RelationType.RELATED_TO})


def allows(
    relation: RelationType,
    source: EntityType,
    target: EntityType,
) -> bool:
    """Whether a relation of this type may point from one entity type to the other."""
    sources, targets = ENDPOINTS[relation]
    return source in sources and target in targets


class Provenance(Record):
    """Where a fact was read: a document and the [start, end) characters in it."""

    doc: str
    span: tuple[int, ...]


class WeightComponents(Record):
    """The parts a weight was made of, so that it can be recomputed and audited."""

    sim: float = 0.0
    type_prior: float = 0.0
    evidence: float = 0.0
    freshness: float = 0.0


class Relation(Edge):
    """An entity-to-entity relation."""

    type: RelationType
    weight: Unit | None = None
    weight_components: WeightComponents | None = None
    cost: float | None = Field(
        None,
        ge=0.0,
        description="-ln(weight * boost), what path searches minimise",
    )
    learned: float | None = Field(
        None,
        ge=-MAX_LEARNED,
        le=MAX_LEARNED,
        description="what judged answers added to the logit of the weight",
    )
    layer_bridge: bool = False
    sim: float | None = None
    created: datetime | None = Field(None, description="event date of the source document")
    provenance: Provenance | None = None
    label: str = Field("", description="the relation in the source's own words")
    evidence_count: int = Field(
        1,
        ge=0,
        description="how many places state it",
    )
    strength: Unit | None = None
    co_occurrence_count: int | None = Field(None, ge=0)
    metadata: Json = Field(default_factory=dict)


class ClusterEdgeType(StrEnum):
    """Membership points up; siblings are optional cross-links."""

    PART_OF = "PART_OF"
    SUBTOPIC_OF = "SUBTOPIC_OF"
    SIBLING_OF = "SIBLING_OF"


class ClusterEdge(Edge):
    """Member to topic, or topic to super-topic."""

    type: ClusterEdgeType
    weight: Unit | None = None
    noise: bool = Field(
        False,
        description="density found no topic for the member; it was placed in the nearest",
    )


class MentionType(StrEnum):
    """A chunk mentions an entity."""

    MENTIONS = "mentions"


class Mention(Edge):
    """A chunk that names an entity, how often and where."""

    type: MentionType = MentionType.MENTIONS
    weight: Unit | None = None
    learned: float | None = Field(
        None,
        ge=-MAX_LEARNED,
        le=MAX_LEARNED,
        description="what judged answers added to the logit of the weight",
    )
    count: int = Field(1, ge=1)
    positions: tuple[int, ...] = Field((), description="character offsets in the chunk")


class ReferenceType(StrEnum):
    """A chunk points to another chunk."""

    REFERENCES = "references"
    NEXT = "next"


class Reference(Edge):
    """A link from chunk to chunk."""

    type: ReferenceType = ReferenceType.REFERENCES
    weight: Unit | None = None


class CodeEdge(Edge):
    """File contains function, function calls function, page documents function, commit touched
    file, and the like.
    """

    type: CodeEdgeType
    weight: Unit | None = None
    count: int = Field(1, ge=1)
    provenance: Provenance | None = None
