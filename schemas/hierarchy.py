"""Topics over entities, and the journal of who moved between them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Record, Vector


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
    centroid: Vector | None = None
    centroid_version: str = ""
    embedding_model: str | None = None
    summary: str = ""
    cluster_params: ClusterParams
    size: int = Field(0, ge=0)
    metadata: Json = Field(default_factory=dict)


class MembershipChange(Keyed):
    """One entity that changed its topic in one build."""

    entity: str
    cluster_id: str | None = None
    prev_cluster_id: str | None = None
    build: str
    at: datetime
    reason: str = ""
