"""The specifications' queries: the corrected forms give the right values, the original ones the documented errors."""

import math
from typing import Any

import pytest

from tests.arango_double.graphs import create_graph
from tests.unit.arango_double.engine import Engine

CHEAPEST_PATHS = """
FOR v, e, p IN 1..@max_depth OUTBOUND @start GRAPH @graph
  OPTIONS { order: "weighted", weightAttribute: "cost", defaultWeight: @default_cost, uniqueVertices: "path" }
  FILTER @domain == null OR p.vertices[*].domain ALL == @domain
  LIMIT @max_paths
  RETURN {
    path: CONCAT_SEPARATOR(" -> ", p.vertices[*].name),
    vertices: p.vertices[* RETURN KEEP(CURRENT, "_id", "name", "type", "domain")],
    edges: p.edges[* RETURN KEEP(CURRENT, "_id", "_from", "_to", "type", "weight")],
    edge_weights: p.edges[* RETURN NOT_NULL(CURRENT.weight, 1.0)],
    edge_types: p.edges[*].type, vertex_types: p.vertices[*].type,
    cost: p.weights[-1], path_length: LENGTH(p.vertices)
  }
"""
ONE_CHEAPEST_PATH = """
LET steps = (
  FOR v, e IN OUTBOUND SHORTEST_PATH @s TO @t GRAPH @graph
    OPTIONS { weightAttribute: "cost", defaultWeight: @default_cost }
    RETURN { v, e })
FILTER LENGTH(steps) > 0
LET edges = steps[* FILTER CURRENT.e != null RETURN CURRENT.e]
LET raw = SUM(FOR ed IN edges
  RETURN LOG(MAX([NOT_NULL(ed.weight, 0) * NOT_NULL(@rel_boost[ed.type], 1.0), @eps])))
RETURN { nodes: steps[*].v, edges, score: raw - @lambda * MAX([LENGTH(edges) - 2, 0]) }
"""
BOUNDED_PATHS = """
FOR v, e, p IN 1..@max_hops OUTBOUND @s GRAPH @graph
  PRUNE v._id == @t
  OPTIONS { order: "weighted", weightAttribute: "cost", defaultWeight: @default_cost, uniqueVertices: "path",
            edgeCollections: ["relations"], vertexCollections: ["entities"] }
  FILTER v._id == @t
  FILTER p.edges[*].type ALL IN @allowed_types
  LIMIT @m
  LET raw = SUM(p.edges[* RETURN
    LOG(MAX([NOT_NULL(CURRENT.weight, 0) * NOT_NULL(@rel_boost[CURRENT.type], 1.0), @eps]))])
  RETURN { nodes: p.vertices[* RETURN KEEP(CURRENT, "_id", "name", "type")],
           edges: p.edges[* RETURN KEEP(CURRENT, "_id", "_from", "_to", "type", "weight")],
           cost: p.weights[-1], score: raw - @lambda * MAX([LENGTH(p.edges) - 2, 0]) }
"""
TOPICS = """
FOR c IN clusters                                   // topics, exact
  FILTER c.level IN @levels AND c.centroid != null
  LET sim = COSINE_SIMILARITY(c.centroid, @q)
  FILTER sim >= @min_sim
  SORT sim DESC, c._key
  LIMIT @k
  RETURN { _id: c._id, level: c.level, sim }
"""
MEMBERS = """
WITH entities, clusters                             // one beam step: members of the kept topics
FOR topic IN @topics
  FOR v IN 1..1 INBOUND topic cluster_edges
    FILTER IS_SAME_COLLECTION("entities", v)
    FILTER v.type IN @types AND v.embedding != null
    LET h = COSINE_SIMILARITY(v.embedding, @q) / (1 + @deg_alpha * NOT_NULL(v.deg_out, 0))
    COLLECT id = v._id AGGREGATE hscore = MAX(h)
    SORT hscore DESC, id
    LIMIT @beam
    RETURN { id, hscore }
"""


@pytest.fixture
def graph(engine: Engine) -> Engine:
    """a to c directly (weight 0.1) or over b (0.9 each); an unweighted edge c to d; two topics with shared members."""
    entities = [
        {"_key": "a", "name": "A", "type": "method", "domain": "x", "embedding": [1, 0], "deg_out": 2},
        {"_key": "b", "name": "B", "type": "method", "domain": "x", "embedding": [0.6, 0.8]},
        {"_key": "c", "name": "C", "type": "task", "domain": "x", "embedding": [0, 1]},
        {"_key": "d", "name": "D", "type": "task", "domain": "y"},
    ]
    engine.collection("entities", *entities)
    engine.collection(
        "clusters",
        {"_key": "t1", "level": 1, "centroid": [1, 0]},
        {"_key": "t2", "level": 1, "centroid": [0.8, 0.6]},
        {"_key": "t3", "level": 2},
    )
    engine.edges(
        "relations",
        ("entities/a", "entities/c", {"type": "uses", "weight": 0.1, "cost": -math.log(0.1)}),
        ("entities/a", "entities/b", {"type": "uses", "weight": 0.9, "cost": -math.log(0.9)}),
        ("entities/b", "entities/c", {"type": "cites", "weight": 0.9, "cost": -math.log(0.9)}),
        ("entities/c", "entities/d", {"type": "uses"}),
    )
    engine.edges(
        "cluster_edges",
        ("entities/a", "clusters/t1"),
        ("entities/b", "clusters/t1"),
        ("entities/b", "clusters/t2"),
        ("entities/d", "clusters/t2"),
        ("clusters/t1", "clusters/t3"),
    )
    definitions = [
        {"collection": "relations", "from": ["entities"], "to": ["entities"]},
        {"collection": "cluster_edges", "from": ["entities", "clusters"], "to": ["clusters"]},
    ]
    create_graph(engine.database, {"name": "kg", "edgeDefinitions": definitions})
    return engine


def path_binds(**changes: Any) -> dict[str, Any]:
    binds = {
        "s": "entities/a", "t": "entities/c", "graph": "kg", "default_cost": -math.log(0.1),
        "rel_boost": {"cites": 2.0}, "eps": 1e-6, "lambda": 0.5,
    }  # fmt: skip
    return {**binds, **changes}


def test_cheapest_paths_come_by_cost_and_keep_to_the_domain(graph: Engine) -> None:
    binds = {
        "max_depth": 3, "start": "entities/a", "graph": "kg", "default_cost": 2.302585, "max_paths": 10, "domain": "x",
    }  # fmt: skip
    rows = graph.run(CHEAPEST_PATHS, binds)
    assert [row["path"] for row in rows] == ["A -> B", "A -> B -> C", "A -> C"]
    assert rows[1]["edge_weights"] == [0.9, 0.9]
    assert rows[1]["edge_types"] == ["uses", "cites"]
    assert rows[1]["vertex_types"] == ["method", "method", "task"]
    assert rows[1]["cost"] == pytest.approx(-2 * math.log(0.9))
    assert rows[1]["path_length"] == 3
    assert "embedding" not in rows[1]["vertices"][0]
    everything = graph.run(CHEAPEST_PATHS, {**binds, "domain": None})
    assert "A -> B -> C -> D" in [row["path"] for row in everything]
    assert next(row for row in everything if row["path"] == "A -> C -> D")["edge_weights"] == [0.1, 1]
    assert len(graph.run(CHEAPEST_PATHS, {**binds, "max_paths": 2})) == 2


def test_one_cheapest_path_scores_boosted_weights(graph: Engine) -> None:
    row = graph.run(ONE_CHEAPEST_PATH, path_binds())[0]
    assert [node["name"] for node in row["nodes"]] == ["A", "B", "C"]
    assert row["score"] == pytest.approx(math.log(0.9) + math.log(1.8))
    assert graph.run(ONE_CHEAPEST_PATH, path_binds(s="entities/d")) == []
    assert graph.warnings() == []


def test_bounded_paths_stop_at_the_target_and_respect_hops_and_types(graph: Engine) -> None:
    binds = path_binds(max_hops=3, allowed_types=["uses", "cites"], m=5)
    rows = graph.run(BOUNDED_PATHS, binds, fail_on_warning=True)
    assert [[node["name"] for node in row["nodes"]] for row in rows] == [["A", "B", "C"], ["A", "C"]]
    assert [row["cost"] for row in rows] == pytest.approx([-2 * math.log(0.9), -math.log(0.1)])
    assert len(graph.run(BOUNDED_PATHS, {**binds, "max_hops": 1})) == 1
    assert len(graph.run(BOUNDED_PATHS, {**binds, "allowed_types": ["uses"]})) == 1
    assert len(graph.run(BOUNDED_PATHS, {**binds, "m": 1})) == 1


def test_topics_by_exact_similarity(graph: Engine) -> None:
    rows = graph.run(TOPICS, {"levels": [1, 2], "q": [1, 0], "min_sim": 0.5, "k": 5}, fail_on_warning=True)
    assert [(row["_id"], row["sim"]) for row in rows] == [("clusters/t1", 1), ("clusters/t2", pytest.approx(0.8))]
    assert graph.run(TOPICS, {"levels": [1], "q": [1, 0], "min_sim": 0.9, "k": 5})[0]["_id"] == "clusters/t1"


def test_members_of_topics_are_inbound_and_counted_once(graph: Engine) -> None:
    binds = {
        "topics": ["clusters/t1", "clusters/t2"], "types": ["method", "task"], "q": [1, 0], "deg_alpha": 0.5, "beam": 9,
    }  # fmt: skip
    rows = graph.run(MEMBERS, binds, fail_on_warning=True)
    assert rows == [{"id": "entities/b", "hscore": 0.6}, {"id": "entities/a", "hscore": 0.5}]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("FOR v, e, p IN OUTBOUND SHORTEST_PATH 'entities/a' TO 'entities/c' GRAPH 'kg' RETURN p.edges", 1501),
        ("FOR e IN entities RETURN GREATEST(e.deg_out, 1)", 1540),
        ("FOR c IN clusters SORT COSINE_DISTANCE(c.centroid, [1, 0]) RETURN c", 1540),
        ("FOR e IN entities RETURN NVL(e.deg_out, 0)", 1540),
        ("FOR v, e, p IN 1..7 OUTBOUND 'entities/a' edges RETURN p", 1203),
    ],
)
def test_original_forms_that_do_not_compile(graph: Engine, query: str, number: int) -> None:
    assert graph.error(query) == number


def test_traversing_from_the_array_of_topics_is_empty_with_a_warning(graph: Engine) -> None:
    query = """
        LET topics = (FOR c IN clusters RETURN c)
        FOR v IN 1..1 OUTBOUND topics GRAPH 'kg' RETURN v
    """
    assert graph.run(query) == []
    assert graph.warnings() == [10]


def test_the_wrong_direction_finds_parents_and_not_members(graph: Engine) -> None:
    outbound = graph.run("FOR v IN 1..1 OUTBOUND 'clusters/t1' GRAPH 'kg' RETURN v._id")
    inbound = graph.run("FOR v IN 1..1 INBOUND 'clusters/t1' GRAPH 'kg' RETURN v._id")
    assert outbound == ["clusters/t3"]
    assert inbound == ["entities/a", "entities/b"]


def test_minimising_a_goodness_takes_the_worst_edge(graph: Engine) -> None:
    query = """
        FOR v IN OUTBOUND SHORTEST_PATH 'entities/a' TO 'entities/c' GRAPH 'kg'
          OPTIONS {weightAttribute: 'weight'} RETURN v.name
    """
    assert graph.run(query) == ["A", "C"]


def test_or_with_a_default_turns_weight_zero_into_one(graph: Engine) -> None:
    graph.run("UPDATE 'a-c' WITH {weight: 0} IN relations")
    query = "FOR v, e IN 1..1 OUTBOUND 'entities/a' relations SORT e._key RETURN "
    assert graph.run(query + "e.weight || 1.0") == [0.9, 1]
    assert graph.run(query + "NOT_NULL(e.weight, 1.0)") == [0.9, 0]


def test_a_score_of_a_missing_embedding_is_null_with_a_warning(graph: Engine) -> None:
    query = "FOR e IN entities SORT e._key RETURN COSINE_SIMILARITY(e.embedding, [1, 0])"
    assert graph.run(query)[-1] is None
    assert graph.warnings() == [1542]


def test_no_distinct_repeats_an_entity_of_two_topics(graph: Engine) -> None:
    query = "FOR t IN ['clusters/t1', 'clusters/t2'] FOR v IN 1..1 INBOUND t cluster_edges FILTER v.type RETURN v._key"
    assert graph.run(query) == ["a", "b", "b", "d"]


def test_entity_by_key(graph: Engine) -> None:
    assert graph.run("RETURN DOCUMENT(@@entities, @key).name", {"@entities": "entities", "key": "a"}) == ["A"]
