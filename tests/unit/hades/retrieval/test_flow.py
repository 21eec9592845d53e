"""Flow between seeds on graphs that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.retrieval.core.types import CandidateGraph
from hades.retrieval.walks.flow import FlowRules, flow_paths
from hades.snapshot.view import GraphView
from schemas.plan import Reason
from tests.contract.examples import day, relation
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, question, seeds

RULES = FlowRules(theta=1e-6, max_paths=50)


@pytest.fixture(scope="module")
def diamond(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """a to d by b (strong) and by c (weak); d to e hidden before day 5; a hub with 300 leaves
    between f and g.
    """
    hidden = relation("d", "e", weight=1.0) | {"valid_from": day(5)}
    edges = [("a", "b", 0.9), ("b", "d", 0.9), ("a", "c", 0.1), ("c", "d", 0.1)]
    hub = [("f", "hub", 1.0), ("hub", "g", 1.0), *((f"leaf{n:03}", "hub", 1.0) for n in range(300))]
    return published(tmp_path_factory.mktemp("diamond"), [*edges, *hub], relations=[hidden])


def test_flow_splits_by_weight_and_decays_once_a_hop(diamond: GraphView) -> None:
    found = flow_paths(metered(diamond), question(), seeds(diamond, "a", "d"), RULES)
    assert [keys_of(diamond, path.nodes) for path in found.paths] == ["a b d", "a c d"]
    strong = (
        0.85 * 0.9
    )  # of a's two edges; b has two of one weight and passes on a half but the decay
    assert found.paths[0].reliability == pytest.approx((strong + strong * 0.425) / 2, rel=1e-5)
    assert found.paths[1].reliability == pytest.approx((0.085 + 0.085 * 0.425) / 2, rel=1e-5)


def test_the_default_threshold_prunes_behind_a_hub(diamond: GraphView) -> None:
    view, both = metered(diamond), seeds(diamond, "f", "g")
    unpruned = flow_paths(view, question(), both, RULES)
    assert [set(keys_of(diamond, path.nodes).split()) for path in unpruned.paths] == [
        {"f", "hub", "g"}
    ]
    assert flow_paths(metered(diamond), question(), both).paths == ()
    # The weak way round the diamond stays.
    assert len(flow_paths(metered(diamond), question(), seeds(diamond, "a", "d")).paths) == 2


def test_candidates_limit_the_walk(diamond: GraphView) -> None:
    inside = np.array([number(diamond, key) for key in ("a", "c", "d")])
    found = flow_paths(
        metered(diamond),
        question(),
        seeds(diamond, "a", "d"),
        RULES,
        candidate_graph=CandidateGraph(inside, np.ones(3, np.float32)),
    )
    assert [keys_of(diamond, path.nodes) for path in found.paths] == ["a c d"]


def test_work_is_counted_and_its_cap_holds(diamond: GraphView) -> None:
    for work in (0, 1, 7, 100):
        view = metered(diamond, work=work)
        flow_paths(view, question(), seeds(diamond, "a", "d", "f"), RULES)
        assert view.turn.work_spent <= work
        assert Reason.CAP_EXCEEDED in view.turn.reasons


def test_more_paths_than_wanted_give_a_reason(diamond: GraphView) -> None:
    view = metered(diamond)
    found = flow_paths(view, question(), seeds(diamond, "a", "d"), replace(RULES, max_paths=1))
    assert (len(found.paths), found.candidates) == (1, 2)
    assert view.turn.reasons == [Reason.CAP_EXCEEDED]
