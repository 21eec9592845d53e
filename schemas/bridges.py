"""Precomputed paths between communities."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Unit


class Bridge(Keyed):
    """A hot path between two topics, with the generation of edges it was computed from."""

    from_cluster: str
    to_cluster: str
    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    weight: Unit
    cost: float = Field(ge=0.0)
    provenance: Json = Field(default_factory=dict)
    generation: str
    pinned: bool = False
    created: datetime
    expires: datetime | None = None
