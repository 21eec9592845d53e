"""Path searches: one cheapest path, the k cheapest, all shortest, and all up to a length."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import examples
from tests.unit.arango_double.engine import Engine


@pytest.fixture
def roads(engine: Engine) -> Engine:
    """a to d directly (cost 10), over b (3), over b and c (3 + 0); x stands alone."""
    engine.collection("v", *({"_key": key} for key in "abcdx"))
    engine.edges(
        "e",
        ("v/a", "v/d", {"cost": 10}),
        ("v/a", "v/b", {"cost": 1}),
        ("v/b", "v/d", {"cost": 2}),
        ("v/b", "v/c", {"cost": 1}),
        ("v/c", "v/d", {"cost": 1.5}),
    )
    return engine


def test_the_shortest_path_by_edges_and_by_weight(roads: Engine) -> None:
    clause = "FOR v, e IN OUTBOUND SHORTEST_PATH 'v/a' TO 'v/d' e "
    assert roads.run(clause + "RETURN [v._key, e._key]") == [["a", None], ["d", "a-d"]]
    weighted = clause + "OPTIONS {weightAttribute: 'cost', defaultWeight: 1} RETURN [v._key, e.cost]"
    assert roads.run(weighted) == [["a", None], ["b", 1], ["d", 2]]


def test_no_path_gives_no_rows_and_the_way_to_oneself_is_one_vertex(roads: Engine) -> None:
    assert roads.run("FOR v IN OUTBOUND SHORTEST_PATH 'v/a' TO 'v/x' e RETURN v") == []
    assert roads.run("FOR v, e IN OUTBOUND SHORTEST_PATH 'v/a' TO 'v/a' e RETURN [v._key, e]") == [["a", None]]
    assert [row["_key"] for row in roads.run("FOR v IN INBOUND SHORTEST_PATH 'v/d' TO 'v/a' e RETURN v")] == ["d", "a"]


def test_k_shortest_paths_come_by_increasing_weight(roads: Engine) -> None:
    query = """
        FOR p IN OUTBOUND K_SHORTEST_PATHS 'v/a' TO 'v/d' e OPTIONS {weightAttribute: 'cost'}
          LIMIT 5
          RETURN {way: CONCAT(p.vertices[*]._key), weight: p.weight, edges: LENGTH(p.edges)}
    """
    assert roads.run(query) == [
        {"way": "abd", "weight": 3, "edges": 2},
        {"way": "abcd", "weight": 3.5, "edges": 3},
        {"way": "ad", "weight": 10, "edges": 1},
    ]
    unweighted = "FOR p IN OUTBOUND K_SHORTEST_PATHS 'v/a' TO 'v/d' e RETURN p.weight"
    assert roads.run(unweighted) == [1, 2, 3]


def test_k_paths_respects_length_and_all_shortest_paths_only_the_shortest(roads: Engine) -> None:
    query = "FOR p IN 2..3 OUTBOUND K_PATHS 'v/a' TO 'v/d' e RETURN [CONCAT(p.vertices[*]._key), HAS(p, 'weight')]"
    assert roads.run(query) == [["abd", False], ["abcd", False]]
    roads.run("INSERT {_from: 'v/a', _to: 'v/c'} INTO e")
    roads.run("REMOVE 'a-d' IN e")
    query = "FOR p IN OUTBOUND ALL_SHORTEST_PATHS 'v/a' TO 'v/d' e RETURN CONCAT(p.vertices[*]._key)"
    assert sorted(roads.run(query)) == ["abd", "acd"]


def test_ends_that_are_not_ids_warn_and_constants_of_other_types_fail(roads: Engine) -> None:
    for kind in ("SHORTEST_PATH", "K_SHORTEST_PATHS", "ALL_SHORTEST_PATHS"):
        assert roads.run(f"FOR v IN OUTBOUND {kind} '' TO 'v/a' e RETURN v") == []
        assert roads.warnings() == [10]
        assert roads.error(f"FOR v IN OUTBOUND {kind} 'v/a' TO null e RETURN v") == 1501


def test_negative_weights_and_unknown_options_are_errors(roads: Engine) -> None:
    roads.run("UPDATE 'b-d' WITH {cost: -1} IN e")
    clause = "FOR v IN OUTBOUND SHORTEST_PATH 'v/a' TO 'v/d' e OPTIONS "
    assert roads.error(clause + "{weightAttribute: 'cost'} RETURN v") == 1948
    assert roads.error(clause + "{uniqueVertices: 'path'} RETURN v") == 1539


@settings(max_examples=examples(8), deadline=None)
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12), st.randoms(use_true_random=False))
def test_k_shortest_paths_equal_a_brute_force_search(pairs: set[tuple[int, int]], random: object) -> None:
    engine = Engine()
    engine.collection("v", *({"_key": str(key)} for key in range(5)))
    costs = {pair: (place * 7) % 5 + 1 for place, pair in enumerate(sorted(pairs))}
    engine.edges("e", *((f"v/{a}", f"v/{b}", {"cost": cost}) for (a, b), cost in costs.items()))
    query = "FOR p IN OUTBOUND K_SHORTEST_PATHS 'v/0' TO 'v/4' e OPTIONS {weightAttribute: 'cost'} RETURN p.weight"
    expected = []
    for size in range(4):
        for middle in itertools.permutations(range(1, 4), size):
            steps = list(itertools.pairwise([0, *middle, 4]))
            if all(step in costs for step in steps):
                expected.append(sum(costs[step] for step in steps))
    assert engine.run(query) == sorted(expected)
