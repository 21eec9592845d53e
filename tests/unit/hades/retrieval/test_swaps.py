"""Answers that explore: neighbours swapped by the question's id, with the chance of it kept in the
log.
"""

import pytest

from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.core.types import FoundPassage, FoundPath
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.select import ExplorationRules, Selection, swap_some
from hades.retrieval.turn_result import log_of
from schemas.telemetry import ShownResults
from tests.unit.hades.retrieval.memory_view import MemoryView
from tests.unit.hades.retrieval.test_pipeline import NOON, East, cities

PASSAGES = tuple(FoundPassage(number, 1.0 - number / 10) for number in range(5))
PATHS = tuple(FoundPath((number, number + 1), (number,), (True,), 1.0) for number in range(3))
CHOSEN = Selection(PATHS, PASSAGES)


def order(selected: Selection) -> list[int]:
    return [passage.node for passage in selected.passages]


def test_each_result_says_with_which_chance_it_stands_there() -> None:
    for number in range(20):
        found = swap_some(CHOSEN, ExplorationRules(0.2), f"q{number}")
        for rank, passage in enumerate(found.passages):
            stays = 0.9 if rank in (0, 4) else 0.8
            assert passage.propensity == pytest.approx(stays if passage.node == rank else 0.1)
        assert sorted(order(found)) == [0, 1, 2, 3, 4]
        assert {path.nodes for path in found.paths} == {path.nodes for path in PATHS}


def test_an_exploring_turn_logs_the_chance_of_every_rank() -> None:
    view = MemoryView(cities())
    plain = retrieve(
        view, "where is Basel", Tools(ByteCeiling(), East(), clock=lambda: 0.0), at=NOON
    )
    assert {one.propensity for one in (*plain.paths, *plain.passages)} == {1.0}
    seen = set()
    for seed in range(12):
        tools = Tools(
            ByteCeiling(), East(), clock=lambda: 0.0, swapping=ExplorationRules(0.4, seed)
        )
        found = retrieve(view, "where is Basel", tools, at=NOON)
        assert found.query_id == plain.query_id
        shown = ShownResults.model_validate(log_of(found, NOON).results)
        assert [one.propensity for one in shown.passages] == [
            one.propensity for one in found.passages
        ]
        assert [one.rank for one in found.passages] == [1, 2]
        is_swapped = found.passages[0].id != plain.passages[0].id
        assert found.passages[0].propensity == pytest.approx(0.2 if is_swapped else 0.8)
        seen.add(is_swapped)
    assert seen == {True, False}
