"""The beam on graphs that can be checked by hand (requirements B5 to B13)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.retrieval.core.types import CandidateGraph, Seed
from hades.retrieval.core.words import OUT
from hades.retrieval.walks.beam import (
    BeamRules,
    Overlap,
    Walk,
    choose,
    score_terms,
    search_beam,
    terms_of,
)
from hades.settings.tree import BeamTerms
from hades.snapshot.view import GraphView
from schemas.ids import Mask
from schemas.plan import Reason
from tests.contract.examples import day, relation
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, question, seeds

RULES = BeamRules(hops=2, fanout=2, beam=8, direction=OUT)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """r has three children of falling weight, b the best grandchild; a vector for each side of the
    toy space.
    """
    edges = [
        ("r", "a", 0.9),
        ("r", "b", 0.8),
        ("r", "c", 0.1),
        ("a", "a1", 0.5),
        ("b", "b1", 0.9),
        ("b", "b2", 0.2),
    ]
    late = relation("r", "late", weight=1.0) | {"valid_from": day(5)}
    vectors = {"c": [1.0, 0.0, 0.0], "b1": [0.8, 0.6, 0.0], "a": [0.0, 1.0, 0.0]}
    return published(tmp_path_factory.mktemp("tree"), edges, vectors=vectors, relations=[late])


def walked(view: GraphView, *arguments: object, **options: object) -> list[str]:
    found = search_beam(metered(view), *arguments, **options)  # type: ignore[arg-type]
    return [keys_of(view, path.nodes) for path in found.paths]


def test_each_path_grows_to_its_best_neighbours_only(tree: GraphView) -> None:
    view = metered(tree)
    found = search_beam(
        view, replace(question(), mask=Mask(as_of=day(4))), seeds(tree, "r"), replace(RULES, hops=1)
    )
    assert [keys_of(tree, path.nodes) for path in found.paths] == ["r a", "r b"]
    assert view.turn.reasons == [Reason.CAP_EXCEEDED]  # c was there too
    assert view.turn.reads_spent == 0


def test_likeness_beats_weight_where_it_should(tree: GraphView) -> None:
    like_c = question("nothing", [1.0, 0.0, 0.0])
    assert walked(tree, like_c, seeds(tree, "r"), replace(RULES, hops=1))[0] == "r c"


def test_candidates_limit_the_beam(tree: GraphView) -> None:
    inside = np.array([number(tree, key) for key in ("c", "b", "b2")])
    within = CandidateGraph(inside, np.ones(3, np.float32))
    assert set(walked(tree, question(), seeds(tree, "r"), RULES, candidate_graph=within)) == {
        "r b",
        "r c",
        "r b b2",
    }


def test_it_stops_when_the_seeds_are_joined(tree: GraphView) -> None:
    view = metered(tree)
    found = search_beam(view, question(), seeds(tree, "r", "a"), RULES)
    assert view.turn.reasons[-1] == Reason.COVERAGE_REACHED
    assert max(len(path.edges) for path in found.paths) == 1


def test_the_same_path_from_both_ends_is_one(tree: GraphView) -> None:
    both_ways = replace(RULES, hops=1, direction=BeamRules().direction, coverage=2.0)
    found = search_beam(metered(tree), question(), seeds(tree, "a", "a1"), both_ways)
    assert sum(set(keys_of(tree, path.nodes).split()) == {"a", "a1"} for path in found.paths) == 1
    assert found.repeats == 1


def test_an_expired_turn_grows_nothing(tree: GraphView) -> None:
    view = metered(tree, ms=0)
    assert search_beam(view, question(), seeds(tree, "r"), RULES).paths == ()
    assert view.turn.reasons == [Reason.TIMEOUT]


def test_the_score_is_the_sum_of_its_five_terms(tree: GraphView) -> None:
    weights = BeamTerms(
        seed_sim=0.1, edge_weight=0.2, lex_match=0.3, depth_penalty=0.4, redundancy=0.5
    )
    one = walk((1, 2, 3), (7, 8), weights=(0.5, 0.7), matches=(1.0, 0.2, 0.4), seed=0.9)
    score = score_terms(terms_of([one], max_hops=4), weights)[0]
    assert score == pytest.approx(0.1 * 0.9 + 0.2 * 0.6 + 0.3 * 0.3 - 0.4 * 0.5)


def test_a_duplicate_loses_what_redundancy_counts() -> None:
    pool = [walk((1, 2), (7,)), walk((1, 2), (7,)), walk((3, 4), (9,))]
    places, scores, against = choose(np.array([1.0, 1.0, 0.8]), Overlap(pool), 3, 0.5)
    assert places.tolist() == [0, 2, 1]
    assert scores.tolist() == pytest.approx([1.0, 0.8, 0.5])
    assert against.tolist() == pytest.approx([0.0, 0.0, 1.0])


def test_seed_scores_rank_paths(tree: GraphView) -> None:
    strong, weak = Seed(number(tree, "b"), 0.9), Seed(number(tree, "a"), 0.1)
    assert walked(tree, question(), [weak, strong], replace(RULES, hops=1))[0] == "b b1"


def walk(
    nodes: tuple[int, ...],
    edges: tuple[int, ...],
    weights: tuple[float, ...] | None = None,
    matches: tuple[float, ...] | None = None,
    seed: float = 1.0,
) -> Walk:
    ones = (1.0,) * len(edges)
    return Walk(
        nodes, edges, (True,) * len(edges), weights or ones, matches or (0.0,) * len(nodes), seed
    )
