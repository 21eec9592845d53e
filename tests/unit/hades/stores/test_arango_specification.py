"""The specifications' queries, corrected, on a graph small enough to check by hand."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from hades.errors import BadQuery
from hades.ports.store import DEFAULT_COST, Direction, Mode, Term
from hades.stores.arango import queries
from hades.stores.arango.client import ArangoEndpoints, ArangoSession
from hades.stores.arango.store import ArangoStore
from schemas.catalogue import collection_named
from tests.arango_double.server import ArangoDouble

MODEL = "toy@1/2"


def entity(key: str, **more: Any) -> dict[str, Any]:
    common = {"name": key.upper(), "name_lower": key, "type": "concept", "domain": "d", "deg_out": 0}
    return {"_key": key, **common, **more}


def edge(source: str, target: str, cost: float | None, weight: float | None, kind: str = "refers_to") -> dict[str, Any]:
    ends = {"_from": f"entities/{source}", "_to": f"entities/{target}"}
    return {"_key": f"{source}-{target}-{kind}", **ends, "type": kind, "cost": cost, "weight": weight}


def put(store: ArangoStore, name: str, *rows: dict[str, Any]) -> None:
    collection = collection_named(name)
    assert collection is not None
    names = list(dict.fromkeys(column for row in rows for column in row))
    schema = pa.schema([collection.schema.field(column) for column in names])
    store.upsert(name, pa.Table.from_pylist(list(rows), schema=schema))


@pytest.fixture(scope="module")
def double() -> Iterator[ArangoDouble]:
    with ArangoDouble() as server:
        yield server


@pytest.fixture(scope="module")
def store(double: ArangoDouble) -> Iterator[ArangoStore]:
    """a -> b -> c costs .3, a -> c costs 1 and has weight 0, c -> d was never weighed, d -> a closes a circle."""
    handle = ArangoStore.open(ArangoEndpoints(url=double.url), Mode.ADMIN, fail_on_warning=True)
    handle.provision()
    put(
        handle,
        "entities",
        entity("a", embedding=[1.0, 0.0], embedding_model=MODEL, deg_out=2),
        entity("b", embedding=[1.0, 1.0], embedding_model=MODEL, type="paper"),
        entity("c", embedding=[1.0, 0.0], embedding_model=MODEL, deg_out=1000),
        entity("d", domain="other", embedding=[9.0, 9.0], embedding_model="another@1/2"),
        entity("e"),
    )
    put(
        handle,
        "relations",
        edge("a", "b", 0.1, 0.9),
        edge("b", "c", 0.2, 0.8, "cites"),
        edge("a", "c", 1.0, 0.0),
        edge("c", "d", None, None),
        edge("d", "a", 0.5, 0.5),
    )
    made = {"algo": "toy", "min_cluster_size": 1, "min_samples": 1, "seed": 1}
    put(
        handle,
        "clusters",
        {"_key": "near", "level": 1, "centroid": [1.0, 0.1], "embedding_model": MODEL, "cluster_params": made},
        {"_key": "far", "level": 1, "centroid": [0.0, 1.0], "embedding_model": MODEL, "cluster_params": made},
        {"_key": "top", "level": 2, "centroid": [1.0, 0.0], "embedding_model": MODEL, "cluster_params": made},
        {"_key": "bare", "level": 1, "centroid": None, "embedding_model": None, "cluster_params": made},
    )
    put(
        handle,
        "cluster_edges",
        *(
            {"_key": f"{member}-{topic}", "_from": f"entities/{member}", "_to": f"clusters/{topic}", "type": "PART_OF"}
            for member, topic in (("a", "near"), ("a", "far"), ("b", "near"), ("c", "near"), ("d", "far"), ("e", "far"))
        ),
        {"_key": "near-top", "_from": "clusters/near", "_to": "clusters/top", "type": "SUBTOPIC_OF"},
    )
    yield handle
    handle.close()


@pytest.fixture
def session(store: ArangoStore) -> ArangoSession:
    return store.session


def ids(path: Any, part: str = "nodes") -> str:
    return "".join(node["_id"][-1] for node in path[part])


def test_an_entity_comes_by_key_without_its_vector(session: ArangoSession) -> None:
    found = queries.entity_by_key(session, "a")
    assert found is not None
    assert (found["name"], "embedding" in found) == ("A", False)
    assert queries.entity_by_key(session, "a' || true") is None


def test_paths_from_a_start_are_the_cheapest_with_the_fields_of_a20(session: ArangoSession) -> None:
    found = queries.paths_from(session, "entities/a", max_paths=3)
    assert [path["path"] for path in found] == ["A -> B", "A -> B -> C", "A -> C"]
    second = found[1]
    assert (second["edge_weights"], second["edge_types"]) == ([0.9, 0.8], ["refers_to", "cites"])
    assert second["vertex_types"] == ["concept", "paper", "concept"]
    assert (second["path_length"], second["cost"]) == (3, pytest.approx(0.3))
    assert found[2]["edge_weights"] == [0]
    assert set(second["vertices"][0]) == {"_id", "name", "type", "domain"}


def test_a_missing_weight_counts_one_and_a_missing_cost_is_poor(session: ArangoSession) -> None:
    found = queries.paths_from(session, "entities/c", max_paths=1, max_depth=1)
    assert found[0]["edge_weights"] == [1.0]
    assert found[0]["cost"] == pytest.approx(DEFAULT_COST)


def test_paths_stay_inside_a_domain_and_never_meet_a_vertex_twice(session: ArangoSession) -> None:
    inside = queries.paths_from(session, "entities/a", max_paths=50, domain="d")
    assert {path["path"] for path in inside} == {"A -> B", "A -> C", "A -> B -> C"}
    everywhere = queries.paths_from(session, "entities/a", max_paths=50)
    assert all(len({vertex["_id"] for vertex in path["vertices"]}) == path["path_length"] for path in everywhere)
    assert max(path["path_length"] for path in everywhere) == 4
    with pytest.raises(BadQuery):
        queries.paths_from(session, "entities/a", max_paths=0)


def test_the_cheapest_path_minimises_cost_and_scores_by_weight(session: ArangoSession) -> None:
    found = queries.cheapest_path(session, "entities/a", "entities/c", relation_boost={"cites": 0.5})
    assert found is not None
    assert ids(found) == "abc"
    assert found["cost"] == pytest.approx(0.3)
    assert found["score"] == pytest.approx(math.log(0.9) + math.log(0.8 * 0.5))
    assert queries.cheapest_path(session, "entities/e", "entities/a", relation_boost={}) is None


def test_bounded_paths_keep_to_hops_and_types_and_longer_ones_pay(session: ArangoSession) -> None:
    ask = {"limit": 9, "relation_boost": {"refers_to": 0.0}}
    found = queries.cheapest_bounded_paths(session, "entities/a", "entities/d", max_hops=3, **ask)
    assert [ids(path) for path in found] == ["abcd", "acd"]
    assert [path["cost"] for path in found] == pytest.approx([0.3 + DEFAULT_COST, 1.0 + DEFAULT_COST])
    tiny = math.log(queries.EPSILON)
    assert found[0]["score"] == pytest.approx(tiny + math.log(0.8) + tiny - queries.LENGTH_PENALTY)
    assert [
        ids(path) for path in queries.cheapest_bounded_paths(session, "entities/a", "entities/d", max_hops=2, **ask)
    ] == ["acd"]
    only = queries.cheapest_bounded_paths(session, "entities/a", "entities/c", max_hops=3, types=["refers_to"], **ask)
    assert [ids(path) for path in only] == ["ac"]


def test_k_shortest_paths_come_cheapest_first(session: ArangoSession) -> None:
    found = queries.shortest_paths(session, "entities/a", "entities/c", k=5)
    assert [ids(path) for path in found] == ["abc", "ac"]
    assert [path["cost"] for path in found] == pytest.approx([0.3, 1.0])
    assert len(queries.shortest_paths(session, "entities/a", "entities/c", k=1)) == 1


def test_the_port_and_the_traversal_find_the_same_paths(store: ArangoStore, session: ArangoSession) -> None:
    by_port = store.cheapest_paths("entities/a", "entities/d", k=9, max_hops=3, direction=Direction.OUT)
    by_traversal = queries.cheapest_bounded_paths(
        session, "entities/a", "entities/d", limit=9, max_hops=3, relation_boost={}
    )
    assert ["".join(node[-1] for node in path.nodes) for path in by_port] == [ids(path) for path in by_traversal]
    assert [path.cost for path in by_port] == pytest.approx([path["cost"] for path in by_traversal])


def test_topics_keep_to_the_threshold_the_level_and_the_number(session: ArangoSession) -> None:
    def near(**more: Any) -> list[str]:
        found = queries.topics_near(session, [1.0, 0.0], **{"model": MODEL, "k": 9, "min_similarity": 0.5, **more})
        return [topic["_id"] for topic in found]

    assert near() == ["clusters/top", "clusters/near"]
    assert near(k=1) == ["clusters/top"]
    assert near(levels=[1]) == ["clusters/near"]
    assert near(min_similarity=-1.0) == ["clusters/top", "clusters/near", "clusters/far"]
    assert near(model="another@1/2") == []


def test_members_are_below_their_topics_each_once_with_hubs_demoted(session: ArangoSession) -> None:
    topics = ["clusters/near", "clusters/far", "clusters/top"]
    found = queries.members_of(session, topics, [1.0, 0.0], model=MODEL, beam=9)
    assert [member["_id"] for member in found] == ["entities/a", "entities/b", "entities/c"]
    assert [member["score"] for member in found] == pytest.approx([1 / 1.01, math.sqrt(0.5), 1 / 6])
    papers = queries.members_of(session, topics, [1.0, 0.0], model=MODEL, beam=1, types=["paper"])
    assert [member["_id"] for member in papers] == ["entities/b"]


def test_bridges_of_another_generation_are_not_used(store: ArangoStore, session: ArangoSession) -> None:
    common = {"nodes": ["entities/a"], "edges": [], "cost": 1.0, "created": datetime(2024, 1, 1, tzinfo=UTC)}
    put(
        store,
        "bridge_cache",
        {"_key": "light", "from_cluster": "x", "to_cluster": "y", "weight": 0.2, "generation": "g2", **common},
        {"_key": "heavy", "from_cluster": "x", "to_cluster": "y", "weight": 0.9, "generation": "g2", **common},
        {"_key": "stale", "from_cluster": "x", "to_cluster": "y", "weight": 1.0, "generation": "g1", **common},
    )
    found = queries.bridges_between(session, ["x"], ["y", "z"], generation="g2", limit=9)
    assert [bridge["_key"] for bridge in found] == ["heavy", "light"]


def test_the_state_of_a_topic_is_the_one_true_at_the_moment(store: ArangoStore, session: ArangoSession) -> None:
    def at(day: int) -> datetime:
        return datetime(2024, 1, day, tzinfo=UTC)

    common = {"topic": "t", "content": "x", "timestamp": at(1)}
    put(
        store,
        "memory_states",
        {"_key": "s1", "version": 1, "valid_from": at(2), "valid_until": at(5), **common},
        {"_key": "s2", "version": 2, "valid_from": at(5), "valid_until": at(8), **common},
    )
    found = [queries.state_at(session, "t", at(day)) for day in (1, 2, 4, 5, 8)]
    assert [state and state["_key"] for state in found] == [None, "s1", "s1", "s2", None]


def test_text_order_is_by_bytes_wherever_a_tie_is_broken(store: ArangoStore) -> None:
    """The server's own order is by collation: a_1, a, A1 ... would come otherwise."""
    mixed = ["Zeta", "_x", "a-1", "a1", "a_1", "b"]
    put(store, "funcs", *(func(key) for key in mixed))
    names = [key for batch in store.scan("funcs", where=[Term("language", "==", "py")]) for key in column(batch)]
    assert names == mixed == sorted(mixed)
    assert column(store.nearest("funcs", [1.0, 0.0], model=MODEL, limit=4)) == mixed[:4]
    assert column(store.get("funcs", mixed[::-1])) == mixed
    below = [key for batch in store.scan("funcs", where=[Term("name", "<", "a1")]) for key in column(batch)]
    assert below == ["Zeta", "_x", "a-1"]


def func(key: str) -> dict[str, Any]:
    return {
        "_key": key,
        "name": key,
        "qualified_name": key,
        "kind": "function",
        "path": "p",
        "language": "py",
        "document": "documents/d",
        "span": [0, 1],
        "embedding": [2.0, 0.0],
        "embedding_model": MODEL,
    }


def column(rows: Any) -> list[str]:
    found: list[str] = rows.column("_key").to_pylist()
    return found


def test_a_vector_of_zeros_scores_nothing_and_breaks_nothing(store: ArangoStore) -> None:
    put(store, "doc_chunks", *(chunk(key, vector) for key, vector in (("zero", [0.0, 0.0]), ("east", [3.0, 0.0]))))
    found = store.nearest("doc_chunks", [1.0, 0.0], model="plain", limit=5)
    assert dict(zip(column(found), found.column("score").to_pylist(), strict=True)) == {"east": 1.0, "zero": 0.0}
    with pytest.raises(BadQuery, match="have dimension 2, not 3"):
        store.nearest("doc_chunks", [1.0, 0.0, 0.0], model="plain", limit=5)


def chunk(key: str, vector: list[float]) -> dict[str, Any]:
    return {
        "_key": key,
        "document": "documents/d",
        "text": "t",
        "span": [0, 1],
        "chunk_index": 0,
        "token_count": 1,
        "sha256": "0",
        "embedding": vector,
        "embedding_model": "plain",
    }


def test_every_query_carries_its_limits(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    execute = store.session.db.aql.__class__.execute

    def spy(self: Any, query: str, **options: Any) -> Any:
        seen.append(options)
        return execute(self, query, **options)

    monkeypatch.setattr(store.session.db.aql.__class__, "execute", spy)
    store.count("entities")
    list(store.scan("entities"))
    store.neighbours(["entities/a"], fanout=1)
    queries.paths_from(store.session, "entities/a", max_paths=1)
    assert len(seen) == 4
    for options in seen:
        assert options["batch_size"] > 0
        assert options["max_runtime"] > 0
        assert options["fail_on_warning"] is True
