"""The queries of the specifications, corrected, as typed functions over a session.

Everything a caller gives is bound, every answer is bounded in the query itself and ordered, and no answer carries a
vector. Path searches minimise the materialised `cost`; an edge without one counts `DEFAULT_COST`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, cast

from aql import load
from hades.ports.store import DEFAULT_COST
from hades.stores.arango.client import ArangoSession
from hades.stores.questions import check_limit
from schemas.intervals import iso

MAX_DEPTH = 7
LENGTH_PENALTY = 0.3
EPSILON = 1e-6
DEGREE_DEMOTION = 0.005

Document = dict[str, Any]


class PathFromStart(TypedDict):
    """One path as requirement A20 names its fields."""

    path: str
    vertices: list[Document]
    edges: list[Document]
    edge_weights: list[float]
    edge_types: list[str]
    vertex_types: list[str]
    cost: float
    path_length: int


class PathBetween(TypedDict):
    """One path between two entities; `score` is the sum of log weights less a penalty for length."""

    nodes: list[Document]
    edges: list[Document]
    cost: float
    score: float


class ShortestPath(TypedDict):
    """One loopless path between two entities."""

    nodes: list[Document]
    edges: list[Document]
    cost: float


class Topic(TypedDict):
    """A topic and how similar it is to the question."""

    _id: str
    level: int
    name: str | None
    summary: str | None
    similarity: float


class Member(TypedDict):
    """An entity of a kept topic and its score, lower for hubs."""

    _id: str
    score: float


def entity_by_key(session: ArangoSession, key: str) -> Document | None:
    """One entity, or None."""
    found = session.query(load("graph/get_entity"), {"key": key}, action="reading an entity")
    return cast(Document | None, found[0])


def paths_from(
    session: ArangoSession, start: str, *, max_paths: int, max_depth: int = MAX_DEPTH, domain: str | None = None
) -> list[PathFromStart]:
    """The cheapest paths of 1 to `max_depth` edges that start at an `_id`, inside one domain when one is given."""
    binds = {
        "start": start,
        "max_depth": min(check_limit("max_depth", max_depth), MAX_DEPTH),
        "max_paths": check_limit("max_paths", max_paths),
        "domain": domain,
        "default_cost": DEFAULT_COST,
    }
    return session.query(load("graph/list_paths"), binds, action=f"following paths from {start}")


def cheapest_path(
    session: ArangoSession, source: str, target: str, *, relation_boost: Mapping[str, float]
) -> PathBetween | None:
    """The one cheapest path between two `_id`s, or None when there is none."""
    binds = {"source": source, "target": target, **_scoring(relation_boost)}
    found = session.query(load("graph/find_cheapest_path"), binds, action=f"looking for a path from {source}")
    return cast(PathBetween, found[0]) if found else None


def cheapest_bounded_paths(
    session: ArangoSession,
    source: str,
    target: str,
    *,
    limit: int,
    max_hops: int,
    relation_boost: Mapping[str, float],
    types: Sequence[str] | None = None,
) -> list[PathBetween]:
    """The cheapest paths of at most `max_hops` edges between two `_id`s, in one weighted traversal."""
    binds = {
        "source": source,
        "target": target,
        "limit": check_limit("limit", limit),
        "max_hops": check_limit("max_hops", max_hops),
        "types": None if types is None else list(types),
        **_scoring(relation_boost),
    }
    return session.query(load("graph/list_cheapest_paths"), binds, action=f"looking for paths from {source}")


def shortest_paths(session: ArangoSession, source: str, target: str, *, k: int) -> list[ShortestPath]:
    """The k cheapest loopless paths of any length between two `_id`s."""
    binds = {"source": source, "target": target, "k": check_limit("k", k), "default_cost": DEFAULT_COST}
    return session.query(load("graph/list_shortest_paths"), binds, action=f"looking for paths from {source}")


def topics_near(
    session: ArangoSession,
    vector: Sequence[float],
    *,
    model: str,
    k: int,
    min_similarity: float,
    levels: Sequence[int] = (1, 2),
) -> list[Topic]:
    """At most k topics whose centroid is at least so similar to the vector (requirement C5b)."""
    binds = {
        "vector": [float(number) for number in vector],
        "model": model,
        "k": check_limit("k", k),
        "min_similarity": min_similarity,
        "levels": list(levels),
    }
    return session.query(load("hierarchy/find_topics"), binds, action="looking for topics")


def members_of(
    session: ArangoSession,
    topics: Sequence[str],
    vector: Sequence[float],
    *,
    model: str,
    beam: int,
    types: Sequence[str] | None = None,
    degree_demotion: float = DEGREE_DEMOTION,
) -> list[Member]:
    """One beam step: the best `beam` entities of these topics, each once, hubs demoted (requirement C34)."""
    binds = {
        "topics": list(topics),
        "vector": [float(number) for number in vector],
        "model": model,
        "beam": check_limit("beam", beam),
        "types": None if types is None else list(types),
        "deg_alpha": degree_demotion,
    }
    return session.query(load("hierarchy/list_members"), binds, action="listing members of topics")


def bridges_between(
    session: ArangoSession, from_clusters: Sequence[str], to_clusters: Sequence[str], *, generation: str, limit: int
) -> list[Document]:
    """Precomputed paths of one generation between two groups of topics, heaviest first."""
    binds = {
        "from_clusters": list(from_clusters),
        "to_clusters": list(to_clusters),
        "generation": generation,
        "limit": check_limit("limit", limit),
    }
    return session.query(load("bridges/list_bridges"), binds, action="reading bridges")


def state_at(session: ArangoSession, topic: str, moment: datetime) -> Document | None:
    """The state of a topic that was true at a moment, or None before the first (requirement D49)."""
    binds = {"topic": topic, "at": iso(moment)}
    found = session.query(load("memory/find_state_at"), binds, action=f"reading the state of {topic}")
    return cast(Document, found[0]) if found else None


def _scoring(relation_boost: Mapping[str, float]) -> dict[str, Any]:
    return {
        "default_cost": DEFAULT_COST,
        "rel_boost": dict(relation_boost),
        "eps": EPSILON,
        "lambda": LENGTH_PENALTY,
    }
