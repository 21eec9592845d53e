"""Topics over entities, and the journal of who moved between them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Record, Vector

LOST = "lost"  # in a cluster's metadata: members taken out since the last build, which rewrites its summary


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
    parent: str | None = Field(None, description="key of the super-topic; none at the top")
    centroid: Vector | None = Field(
        None, description="mean of its members' vectors at the last full build, unit length"
    )
    centroid_version: str = Field("", description="name of the set of centroids, made of their values")
    embedding_model: str | None = None
    summary: str = ""
    cluster_params: ClusterParams
    size: int = Field(0, ge=0, description="entities below it")
    drift: float = Field(0.0, ge=0.0, description="1 - cosine of the centroid and the mean of its members today")
    metadata: Json = Field(
        default_factory=dict, description="terms, evidence of the summary as [{doc, span}], who wrote the summary"
    )


class MembershipChange(Keyed):
    """One entity that changed its topic in one build."""

    entity: str
    cluster_id: str | None = None
    prev_cluster_id: str | None = None
    build: str
    at: datetime
    reason: str = ""
