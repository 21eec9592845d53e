"""What a moment in the past shows of random dated graphs, against an oracle that keeps the edges
valid then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import networkx
import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.ports.store import Direction, GraphStore
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.walks.best_paths import cheapest_paths
from hades.retrieval.walks.pagerank import personalized_pagerank
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from hades.stores.arango.neighbourhood import ArangoView
from schemas.ids import Mask, contains
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import day, entity, put, relation
from tests.contract.view_fixtures import arango_store, chunk, document, joined
from tests.homes import empty_store
from tests.patience import examples
from tests.unit.hades.retrieval.pushed_graphs import exact

TOGETHER = 24  # graphs that are fetched from a server at once, as far as a turn's fetch goes
GRAPHS = examples(TOGETHER)
NODES, EDGES, PASSAGES, HOPS = 7, 14, 3, 3
DAMPING = 0.5
TEXT = "A passage."
Row = dict[str, Any]


def dated(chance: np.random.Generator) -> Row:
    """Two bounds in January 2026, each absent as often as not."""
    first, last = sorted(chance.choice(30, 2, replace=False).tolist())
    bounds = {"valid_from": day(first + 1), "valid_until": day(last + 1)}
    return {name: bound for name, bound in bounds.items() if chance.random() < 0.6}


def random_graph(number: int) -> tuple[list[Row], list[Row]]:
    """Relations and mentions of a graph of its own; each pair is joined once."""
    chance = np.random.default_rng(number)
    pairs = {tuple(sorted(chance.choice(NODES, 2, replace=False).tolist())) for _ in range(EDGES)}
    relations = [
        relation(
            f"g{number}e{a}",
            f"g{number}e{b}",
            weight=float(chance.choice([0.25, 0.5, 1.0])),
            **dated(chance),
        )
        for a, b in sorted(pairs)
    ]
    places = [(one, int(chance.integers(NODES))) for one in range(PASSAGES) for _ in range(2)]
    mentions = [
        joined(
            f"m{number}-{one}-{node}",
            f"doc_chunks/g{number}c{one}",
            f"entities/g{number}e{node}",
            "mentions",
            weight=0.5,
            **dated(chance),
        )
        for one, node in sorted(set(places))
    ]
    return relations, mentions


def fill(store: GraphStore) -> None:
    put(store, "documents", document("d", "d", "", TEXT))
    put(
        store,
        "entities",
        *(entity(f"g{one}e{node}") for one in range(GRAPHS) for node in range(NODES)),
    )
    put(
        store,
        "doc_chunks",
        *(
            chunk(f"g{one}c{piece}", "d", TEXT, 0, len(TEXT))
            for one in range(GRAPHS)
            for piece in range(PASSAGES)
        ),
    )
    for place, collection in enumerate(("relations", "mentions")):
        put(store, collection, *(row for one in range(GRAPHS) for row in random_graph(one)[place]))


@pytest.fixture(params=["snapshot", "arango"], scope="module")
def view_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble
) -> Iterator[Callable[[int], GraphView]]:
    """The view that holds a graph, by the number of the graph."""
    home = tmp_path_factory.mktemp("home")
    store: GraphStore = (
        empty_store(home / "graph.db") if request.param == "snapshot" else arango_store(double)
    )
    fill(store)

    @lru_cache(maxsize=1)
    def fetch(batch: int) -> GraphView:
        numbers = range(batch * TOGETHER, (batch + 1) * TOGETHER)
        ids = [name for number in numbers for name in names_of(number)]
        return ArangoView(store).around([], [], "", ids).view  # type: ignore[arg-type]

    if request.param == "snapshot":
        publish(store, home)
        whole = open_snapshot(home)
    yield lambda number: whole if request.param == "snapshot" else fetch(number // TOGETHER)
    store.close()


def test_paths_walks_and_passages_are_those_of_the_edges_valid_then(
    view_of: Callable[[int], GraphView],
) -> None:
    for number in range(GRAPHS):
        moment = day(int(np.random.default_rng(-number % 2**32).integers(1, 31)))
        check_graph(view_of(number), number, Mask(as_of=moment))


def names_of(number: int) -> list[str]:
    entities = [f"entities/g{number}e{node}" for node in range(NODES)]
    return entities + [f"doc_chunks/g{number}c{piece}" for piece in range(PASSAGES)]


def check_graph(view: GraphView, number: int, mask: Mask) -> None:
    assert mask.as_of is not None
    relations, mentions = (
        [row for row in rows if contains(row.get("valid_from"), row.get("valid_until"), mask.as_of)]
        for rows in random_graph(number)
    )
    names = names_of(number)
    place, numbers = {name: row for row, name in enumerate(names)}, view.number(names)
    edges = [
        (place[row["_from"]], place[row["_to"]], row["weight"]) for row in (*relations, *mentions)
    ]

    metered = MeteredView(view, Turn(Caps(100_000, 100_000_000, 600_000)))
    walked = personalized_pagerank(
        view, numbers[:1], np.ones(1), damping=DAMPING, epsilon=1e-9, mask=mask, max_work=10**7
    )
    scores = np.zeros(len(names))
    scores[[place[name] for name in view.ids(walked.numbers)]] = walked.scores
    assert scores == pytest.approx(
        exact(edges, len(names), np.eye(len(names))[0], DAMPING), abs=1e-6
    )

    found = metered.expand(numbers[:NODES], direction=Direction.IN, types=["mentions"], mask=mask)
    assert sorted(view.ids(found.target)) == sorted(row["_from"] for row in mentions)

    graph = networkx.Graph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from(edges[: len(relations)])
    paths = networkx.all_simple_paths(graph, 0, NODES - 1, cutoff=HOPS)
    cheapest = min(
        (sum(-np.log(graph.edges[step]["weight"]) for step in pairwise(one)) for one in paths),
        default=None,
    )
    best = cheapest_paths(
        metered, int(numbers[0]), int(numbers[NODES - 1]), k=1, max_hops=HOPS, mask=mask
    )
    assert (cheapest is None) == (not best)
    if best:
        assert -best[0].score == pytest.approx(cheapest, abs=1e-3)
