"""Topics, membership journal, bridges."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Record, Unit, Vector

# in a cluster's metadata: members taken out since the last build, which rewrites its summary
LOST = "lost"


class ClusterParams(Record):
    """What made a cluster, so that it can be made again."""

    algo: str
    min_cluster_size: int = 5
    min_samples: int = 3
    seed: int = 42


class Cluster(Keyed):
    """A topic (level 1) or super-topic (level 2)."""

    level: int = Field(ge=1, le=2)
    name: str = ""
    parent: str | None = Field(
        None,
        description="key of the super-topic; none at the top",
    )
    centroid: Vector | None = Field(
        None,
        description="mean of its clustered members' vectors, unit length",
    )
    centroid_version: str = Field(
        "",
        description="name of the set of centroids, made of their values",
    )
    embedding_model: str | None = None
    summary: str = ""
    cluster_params: ClusterParams
    size: int = Field(
        0,
        ge=0,
        description="entities below it",
    )
    drift: float = Field(
        0.0,
        ge=0.0,
        description="1 - cosine of the centroid and that of the build before",
    )
    metadata: Json = Field(
        default_factory=dict,
        description="terms, evidence of the summary as [{doc, span}], who wrote the summary",
    )


class MembershipChange(Keyed):
    """One entity that changed its topic in one build."""

    entity: str
    cluster_id: str | None = None
    prev_cluster_id: str | None = None
    build: str
    at: datetime
    reason: str = ""


class Bridge(Keyed):
    """A hot path between two L1 topics, kept once and walked either way; its key is made of the
    path itself.

    It may be used only while every edge in `provenance` stands with the weight written there.
    """

    from_cluster: str = Field(
        description="key of the topic the path begins in; before `to_cluster` in key order"
    )
    to_cluster: str = Field(description="key of the topic it ends in")
    nodes: tuple[str, ...] = Field(description="`_id`s of its entities, one more than edges")
    edges: tuple[str, ...] = Field(
        description="`_id`s of its relations, each walked with or against its direction"
    )
    weight: Unit = Field(
        description="geometric mean of weight * boost, times exp(-lambda) for each edge but one"
    )
    cost: float = Field(ge=0.0, description="sum of -ln(weight * boost)")
    provenance: Json = Field(
        default_factory=dict,
        description="`edges`: id, type, weight, doc and span of each",
    )
    generation: str = Field(description="of the edges' weights it was computed or checked with")
    pinned: bool = Field(
        False,
        description="kept while its edges stand, hot or not",
    )
    created: datetime = Field(description="moment of the build that last found or checked it")
