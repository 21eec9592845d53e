"""Precomputed paths between communities."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Unit


class Bridge(Keyed):
    """A hot path between two L1 topics, kept once and walked either way; its key is made of the path itself.

    It may be used only while every edge in `provenance` stands with the weight written there.
    """

    from_cluster: str = Field(description="key of the topic the path begins in; before `to_cluster` in key order")
    to_cluster: str = Field(description="key of the topic it ends in")
    nodes: tuple[str, ...] = Field(description="`_id`s of its entities, one more than edges")
    edges: tuple[str, ...] = Field(description="`_id`s of its relations, each walked with or against its direction")
    weight: Unit = Field(description="geometric mean of weight * boost, times exp(-lambda) for each edge but one")
    cost: float = Field(ge=0.0, description="sum of -ln(weight * boost)")
    provenance: Json = Field(
        default_factory=dict,
        description="`edges`: id, type, weight, doc and span of each; `search`: region, rules, moment it was found in",
    )
    generation: str = Field(description="of the edges' weights it was computed or checked with")
    pinned: bool = Field(False, description="kept while its edges stand, hot or not")
    created: datetime = Field(description="moment of the build that last found or checked it")
    expires: datetime | None = Field(None, description="when it may no longer be used; never while pinned")
