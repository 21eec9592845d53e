"""The k cheapest and the M best paths, beside plain enumeration."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import networkx
import numpy as np
import pytest

from hades.retrieval.core.types import CandidateGraph
from hades.retrieval.walks.best_paths import cheapest_paths, get_best_paths
from hades.settings.tree import PathSettings
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from models.bridges import value_of
from schemas.ids import Mask
from schemas.plan import Reason
from tests.contract.examples import day, relation
from tests.contract.view_fixtures import fill
from tests.homes import empty_store
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, seeds

FLAT = {"refers_to": 1.0}


def random_edges(nodes: int, edges: int, seed: int) -> list[tuple[str, str, float]]:
    chance = np.random.default_rng(seed)
    pairs = {(int(a), int(b)) for a, b in chance.integers(0, nodes, (edges, 2)) if a != b}
    return [
        (f"n{a:02}", f"n{b:02}", float(np.float32(chance.uniform(0.05, 0.95))))
        for a, b in sorted(pairs)
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty nodes and about ninety edges, each with the cost of its weight."""
    home = tmp_path_factory.mktemp("random")
    rows = [
        relation(tail, head, weight=weight, cost=-math.log(weight))
        for tail, head, weight in random_edges(30, 90, 7)
    ]
    published(home, [], relations=rows)
    return home


@pytest.fixture(scope="module")
def graph(home: Path) -> GraphView:
    return open_snapshot(home)


def test_the_cheapest_paths_are_the_cheapest_of_all_simple_paths(graph: GraphView) -> None:
    plain = networkx.MultiGraph()
    plain.add_edges_from(
        (tail, head, {"cost": -math.log(weight)}) for tail, head, weight in random_edges(30, 90, 7)
    )
    compared = 0
    for source, target in (("n00", "n05"), ("n01", "n09"), ("n02", "n20"), ("n11", "n03")):
        ours = cheapest_paths(
            metered(graph), number(graph, source), number(graph, target), k=5, max_hops=4
        )
        every = sorted(
            (
                sum(plain.edges[edge]["cost"] for edge in path),
                " ".join([source, *(edge[1] for edge in path)]),
            )
            for path in networkx.all_simple_edge_paths(plain, source, target, cutoff=4)
        )
        assert [-path.score for path in ours] == pytest.approx(
            [cost for cost, _ in every[:5]], rel=1e-5
        )
        assert [keys_of(graph, path.nodes) for path in ours] == [nodes for _, nodes in every[:5]]
        compared += len(ours)
    assert compared >= 9


def test_the_best_paths_are_the_best_of_all_simple_paths(graph: GraphView) -> None:
    plain = networkx.Graph()
    for tail, head, weight in random_edges(30, 90, 7):
        known = plain.get_edge_data(tail, head, {"weight": 0.0})["weight"]
        plain.add_edge(tail, head, weight=max(weight, known))
    ends = ["n00", "n05", "n09", "n20"]
    expected = sorted(
        (
            -value_of(
                -sum(math.log(plain.edges[edge]["weight"]) for edge in pairwise(path)),
                len(path) - 1,
                0.3,
            )
            for place, target in enumerate(ends)
            for source in ends[:place]
            for path in networkx.all_simple_paths(plain, source, target, cutoff=5)
        ),
        reverse=True,
    )
    everything = CandidateGraph(
        np.array([number(graph, f"n{n:02}") for n in range(30)]), np.ones(30, np.float32)
    )
    found = get_best_paths(metered(graph), everything, 6, 5, FLAT, seeds=seeds(graph, *ends))
    assert [path.score for path in found.paths] == pytest.approx(expected[:6], rel=1e-5)


def test_a_longer_path_of_the_same_evidence_scores_lower() -> None:
    each = -math.log(0.5)
    assert [value_of(n * each, n, 0.3) for n in (1, 2, 5)] == pytest.approx(
        [each, each + 0.3, each + 1.2]
    )


def test_a_direct_edge_is_a_path_and_boosts_matter(tmp_path: Path) -> None:
    edges = [("a", "b", 0.5, "coref"), ("a", "c", 0.9, "refers_to"), ("c", "b", 0.9, "refers_to")]
    graph = published(tmp_path, edges)
    everything = CandidateGraph(
        np.array([number(graph, key) for key in "abc"]), np.ones(3, np.float32)
    )
    found = get_best_paths(metered(graph), everything, 6, 5, seeds=seeds(graph, "a", "b"))
    assert [keys_of(graph, path.nodes) for path in found.paths] == ["a c b", "a b"]
    boosts = PathSettings().relation_boost
    assert found.paths[1].score == pytest.approx(math.log(0.5 * boosts["coref"]))
    assert found.bridges == 0


def test_the_bridge_cache_is_asked_first_and_counted(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    fill(store)
    publish(store, tmp_path)
    graph = open_snapshot(tmp_path)
    inside = CandidateGraph(
        np.array([number(graph, key) for key in ("b0", "b1", "b2")]), np.ones(3, np.float32)
    )
    view = metered(graph)
    found = get_best_paths(view, inside, 6, 5, seeds=seeds(graph, "b0", "b1"))
    # The fixture's bridge between coast and valley is the edge k1 itself: found once, by the cache,
    # at its cost.
    assert [(keys_of(graph, path.nodes), path.origin) for path in found.paths] == [
        ("b1 b0", "bridge")
    ]
    assert found.bridges == view.turn.reads_spent == 1
    ends = get_best_paths(metered(graph), inside, 6, 5, seeds=seeds(graph, "b0", "b2")).paths
    assert [keys_of(graph, path.nodes) for path in ends] == ["b2 b1 b0"], (
        "no bridge of b1, a candidate that is no seed"
    )
    masked = get_best_paths(
        metered(graph), inside, 6, 5, seeds=seeds(graph, "b0", "b1"), mask=Mask(as_of=day(3))
    )
    assert masked.bridges == 0
    assert {path.origin for path in masked.paths} == {"cheapest"}


def test_masked_edges_are_not_walked(tmp_path: Path) -> None:
    late = relation("a", "b", weight=0.9) | {"valid_from": day(5)}
    graph = published(tmp_path, [("a", "c", 0.5), ("c", "b", 0.5)], relations=[late])
    a, b = number(graph, "a"), number(graph, "b")
    open_ = cheapest_paths(metered(graph), a, b, k=3, max_hops=3)
    masked = cheapest_paths(metered(graph), a, b, k=3, max_hops=3, mask=Mask(as_of=day(4)))
    assert [keys_of(graph, path.nodes) for path in open_] == ["a b", "a c b"]
    assert [keys_of(graph, path.nodes) for path in masked] == ["a c b"]


def test_work_ends_the_search_with_a_reason(graph: GraphView) -> None:
    for work in (0, 10, 200):
        view = metered(graph, work=work)
        cheapest_paths(view, number(graph, "n00"), number(graph, "n05"), k=50, max_hops=5)
        assert view.turn.work_spent <= work
        assert Reason.CAP_EXCEEDED in view.turn.reasons
