"""Traversals: order, uniqueness, depth, pruning, options, and starts that are not vertices."""

import pytest

from tests.arango_double.graphs import create_graph
from tests.unit.arango_double.engine import Engine


@pytest.fixture
def diamond(engine: Engine) -> Engine:
    """a -> b -> d -> a and a -> c -> d; c is the cheap way to d."""
    engine.collection("v", *({"_key": key, "name": key.upper()} for key in "abcd"))
    engine.edges(
        "e",
        ("v/a", "v/b", {"cost": 5}),
        ("v/a", "v/c", {"cost": 1}),
        ("v/b", "v/d", {"cost": 1}),
        ("v/c", "v/d", {"cost": 2}),
        ("v/d", "v/a", {"cost": 0}),
    )
    create_graph(engine.database, {"name": "g", "edgeDefinitions": [{"collection": "e", "from": ["v"], "to": ["v"]}]})
    return engine


def keys(engine: Engine, clause: str, **binds: object) -> list[str]:
    return engine.run(f"FOR v, e, p IN {clause} RETURN CONCAT(p.vertices[*]._key)", binds)


def test_depth_first_is_the_default_and_breadth_first_an_option(diamond: Engine) -> None:
    assert keys(diamond, "1..2 OUTBOUND 'v/a' e") == ["ab", "abd", "ac", "acd"]
    assert keys(diamond, "1..2 OUTBOUND 'v/a' e OPTIONS {order: 'bfs'}") == ["ab", "ac", "abd", "acd"]


def test_depth_bounds_default_single_and_bound(diamond: Engine) -> None:
    assert keys(diamond, "OUTBOUND 'v/a' e") == ["ab", "ac"]
    assert keys(diamond, "2 OUTBOUND 'v/a' e") == ["abd", "acd"]
    assert keys(diamond, "0..@max OUTBOUND @s GRAPH @g", max=1, s="v/a", g="g") == ["a", "ab", "ac"]


@pytest.mark.parametrize("depth", ["2..1", "@d", "-1..2", "1.5"])
def test_bad_depths_are_parse_errors(diamond: Engine, depth: str) -> None:
    binds = {"d": "deep"} if "@" in depth else {}
    assert diamond.error(f"FOR v IN {depth} OUTBOUND 'v/a' e RETURN v", binds) == 1501


def test_the_edge_is_null_at_depth_zero(diamond: Engine) -> None:
    assert diamond.run("FOR v, e IN 0..0 OUTBOUND 'v/a' e RETURN e") == [None]


def test_directions(diamond: Engine) -> None:
    assert keys(diamond, "INBOUND 'v/d' e") == ["db", "dc"]
    assert sorted(keys(diamond, "ANY 'v/a' e")) == ["ab", "ac", "ad"]
    diamond.edges("f", ("v/d", "v/b"))
    assert sorted(keys(diamond, "1..1 OUTBOUND 'v/d' INBOUND e, f")) == ["db", "db", "dc"]


def test_vertices_may_repeat_unless_told_otherwise(diamond: Engine) -> None:
    assert "acda" in keys(diamond, "3..3 OUTBOUND 'v/a' e")
    assert keys(diamond, "3..3 OUTBOUND 'v/a' e OPTIONS {uniqueVertices: 'path'}") == []
    assert sorted(keys(diamond, "1..9 OUTBOUND 'v/a' e OPTIONS {order: 'bfs', uniqueVertices: 'global'}")) == [
        "ab",
        "abd",
        "ac",
    ]


def test_an_edge_is_used_once_a_path_by_default(diamond: Engine) -> None:
    longest = max(keys(diamond, "1..9 OUTBOUND 'v/a' e"), key=len)
    assert len(longest) == 6
    assert len(keys(diamond, "7..7 OUTBOUND 'v/a' e OPTIONS {uniqueEdges: 'none'}")) > 0


@pytest.mark.parametrize("options", ["uniqueVertices: 'global'", "uniqueEdges: 'global'"])
def test_global_uniqueness_that_makes_no_sense_is_error_10(diamond: Engine, options: str) -> None:
    assert diamond.error(f"FOR v IN 1..2 OUTBOUND 'v/a' e OPTIONS {{{options}}} RETURN v") == 10


def test_weighted_order_emits_paths_by_cost_with_running_weights(diamond: Engine) -> None:
    query = """
        FOR v, e, p IN 1..2 OUTBOUND 'v/a' GRAPH 'g'
          OPTIONS {order: 'weighted', weightAttribute: 'cost', uniqueVertices: 'path'}
          RETURN [v._key, p.weights]
    """
    assert diamond.run(query) == [["c", [0, 1]], ["d", [0, 1, 3]], ["b", [0, 5]], ["d", [0, 5, 6]]]


def test_a_missing_weight_is_the_default_and_a_negative_one_an_error(diamond: Engine) -> None:
    query = "FOR v, e, p IN 1 OUTBOUND 'v/a' e OPTIONS {order: 'weighted', weightAttribute: @w, defaultWeight: 4} "
    assert diamond.run(query + "RETURN p.weights[-1]", {"w": "none"}) == [4, 4]
    diamond.run("UPDATE 'a-b' WITH {cost: -1} IN e")
    assert diamond.error(query + "RETURN v", {"w": "cost"}) == 1948


def test_prune_keeps_the_vertex_that_stops_the_path(diamond: Engine) -> None:
    assert keys(diamond, "1..3 OUTBOUND 'v/a' e PRUNE v._key == 'd'") == ["ab", "abd", "ac", "acd"]
    query = "FOR v, e, p IN 1..3 OUTBOUND 'v/a' e PRUNE stop = v._key == 'd' FILTER stop RETURN v._key"
    assert diamond.run(query) == ["d", "d"]
    assert keys(diamond, "1..3 OUTBOUND 'v/a' e PRUNE e == null") == []


def test_restrictions_to_collections(diamond: Engine) -> None:
    diamond.collection("w", {"_key": "x"})
    diamond.run("INSERT {_from: 'v/a', _to: 'w/x'} INTO e")
    assert keys(diamond, "1 OUTBOUND 'v/a' e OPTIONS {vertexCollections: 'w'}") == ["ax"]
    assert "ax" not in keys(diamond, "1 OUTBOUND 'v/a' e OPTIONS {vertexCollections: ['v']}")
    assert diamond.error("FOR v IN 1 OUTBOUND 'v/a' GRAPH 'g' OPTIONS {edgeCollections: 'other'} RETURN v") == 1939


def test_an_array_or_a_non_id_start_gives_one_warning_and_nothing(diamond: Engine) -> None:
    for start in ("['v/a']", "(FOR x IN v RETURN x)", "'a'", "{}"):
        assert diamond.run(f"LET s = {start} FOR x IN 1..2 OUTBOUND s e RETURN x") == []
        assert diamond.warnings() == [10]
    assert diamond.run("FOR x IN 1 OUTBOUND @s e RETURN x", {"s": ["v/a"]}) == []
    assert diamond.error("FOR x IN 1 OUTBOUND @s e RETURN x", {"s": ["v/a"]}, fail_on_warning=True) == 10
    assert diamond.error("FOR x IN 1 OUTBOUND null e RETURN x") == 1501
    assert diamond.error("FOR x IN 1 OUTBOUND @s e RETURN x", {"s": 7}) == 1501


def test_a_document_may_be_the_start_and_a_loop_gives_many(diamond: Engine) -> None:
    assert diamond.run("FOR s IN v FILTER s._key IN ['b', 'c'] FOR x IN 1 OUTBOUND s e RETURN x._key") == ["d", "d"]


def test_a_dangling_edge_gives_a_null_vertex_and_a_warning(diamond: Engine) -> None:
    diamond.run("INSERT {_from: 'v/d', _to: 'v/gone'} INTO e")
    assert diamond.run("FOR x IN 1 OUTBOUND 'v/d' e FILTER x == null RETURN x") == [None]
    assert diamond.warnings() == [1202]


def test_vertices_that_no_one_reads_are_not_loaded(diamond: Engine) -> None:
    diamond.run("INSERT {_key: 'x', _from: 'v/d', _to: 'v/gone'} INTO e")
    for result in ("e._to", "p.edges[*]._to", "LENGTH(p.edges)"):
        diamond.run(f"FOR v, e, p IN 1 OUTBOUND 'v/d' e RETURN {result}", fail_on_warning=True)
    for result in ("v._id", "p", "p.vertices[*]._key", "[p.edges, p]"):
        assert diamond.error(f"FOR v, e, p IN 1 OUTBOUND 'v/d' e RETURN {result}", fail_on_warning=True) == 1202
    grouped = "FOR v, e, p IN 1 OUTBOUND 'v/d' e COLLECT k = e._key INTO g RETURN g"
    assert diamond.error(grouped, fail_on_warning=True) == 1202
    assert diamond.run("FOR v, e, p IN 1 OUTBOUND 'v/a' e COLLECT k = e._key INTO g = p RETURN g[0].edges[0]._key") == [
        "a-b",
        "a-c",
    ]


def test_unknown_graphs_and_wrong_collection_types(diamond: Engine) -> None:
    assert diamond.error("FOR x IN 1 OUTBOUND 'v/a' GRAPH 'nope' RETURN x") == 1924
    assert diamond.error("FOR x IN 1 OUTBOUND 'v/a' v RETURN x") == 1218
    assert diamond.error("FOR x IN 1 OUTBOUND 'v/a' nope RETURN x") == 1203


def test_misspelt_options_are_refused_by_a_strict_double(diamond: Engine) -> None:
    for options in ("uniqueVertices: 'paths'", "order: 'BFS '", "uniqueVertexes: 'path'", "weightAttribute: 1"):
        assert diamond.error(f"FOR x IN 1 OUTBOUND 'v/a' e OPTIONS {{{options}}} RETURN x") == 1539


def test_traversals_read_edges_through_the_edge_index(diamond: Engine) -> None:
    diamond.run("FOR x IN 1 OUTBOUND 'v/a' e RETURN x")
    assert (diamond.last.stats.scanned_index, diamond.last.stats.scanned_full) == (2, 0)  # type: ignore[union-attr]


def test_a_traversal_that_explodes_can_be_killed(diamond: Engine) -> None:
    query = "FOR x IN 1..100 ANY 'v/a' e OPTIONS {uniqueEdges: 'none'} FILTER x == 1 RETURN x"
    assert diamond.error(query, max_runtime=0.05) == 1500
