"""What judged turns say, pair by pair."""

from pathlib import Path

import pytest

from hades.night.weights.feedback import UNJUDGED, choices_of, is_held_out, judge_digest, read_turns
from hades.settings.tree import LearningSettings
from hades.stores.sqlite.store import SqliteStore
from schemas.telemetry import JudgedRanks, QueryLog
from tests.unit.hades.night.weights.graphs import small_store
from tests.unit.hades.night.weights.judged import log, put_logs

RULES = LearningSettings()
ONE, TWO, THREE = ("relations/1",), ("relations/2",), ("relations/3",)
ROW_OF = {"relations/1": 10, "relations/2": 20, "relations/3": 30}


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return small_store(tmp_path / "graph.db")


def told(
    store: SqliteStore, *logs: QueryLog, power: float = 1.0
) -> list[tuple[int, int, float, bool]]:
    """Each pair as preferred row, other row, weight, and whether it lifts."""
    put_logs(store, logs)
    choices = choices_of(read_turns(store, RULES), {}, ROW_OF, power)
    starts, edges = choices.results.starts, choices.edges[choices.results.edges]
    pairs = choices.pairs
    return [
        (int(edges[starts[a]]), int(edges[starts[b]]), round(float(weight), 4), bool(lifts))
        for a, b, weight, lifts in zip(
            pairs.preferred, pairs.other, pairs.weight, pairs.lifts, strict=True
        )
    ]


def ranks(*given: int) -> JudgedRanks:
    return JudgedRanks(paths=given)


@pytest.mark.parametrize(
    ("shown", "good", "bad", "expected"),
    [
        ((ONE, TWO), (1,), (2,), [(10, 20, 1.0, True)]),  # good above bad, whatever their ranks
        # Above the unjudged as far as its rank was unlikely to be read, and above another good one
        # likewise.
        (
            (ONE, TWO, THREE),
            (3,),
            (),
            [(30, 10, UNJUDGED * 3 / 6 / 2, True), (30, 20, UNJUDGED * 3 / 6 / 2, True)],
        ),
        (
            (ONE, TWO),
            (1, 2),
            (),
            [(10, 20, round(UNJUDGED / 6, 4), True), (20, 10, round(UNJUDGED / 3, 4), True)],
        ),
        ((ONE, TWO), (), (1,), [(20, 10, 1.0, False)]),  # bad alone lifts nothing
        ((ONE, TWO), (), (), []),
        ((ONE,), (1,), (), []),
        ((ONE,), (), (1,), []),
    ],
)
def test_a_judged_list_says_what_stands_above_what(
    store: SqliteStore, shown, good, bad, expected
) -> None:
    assert told(store, log("q", paths=shown, good=ranks(*good), bad=ranks(*bad))) == expected


def test_edges_that_cannot_learn_are_passed_over(store: SqliteStore) -> None:
    walked = (("relations/1", "cluster_edges/7"), ("imports/9",), TWO)
    assert told(store, log("q", paths=walked, good=JudgedRanks(paths=(3,)))) == [
        (20, 10, UNJUDGED * 3 / 6, True)
    ]


def test_turns_come_in_the_order_they_were_judged(store: SqliteStore) -> None:
    for minutes in (30, 10, 20):
        put_logs(store, [log(f"q{minutes}", good=JudgedRanks(paths=(1,)), minutes=minutes)])
    assert [turn.feedback.at.minute for turn in read_turns(store, RULES)] == [10, 20, 30]


def test_the_digest_follows_judgements_and_not_mere_questions(store: SqliteStore) -> None:
    put_logs(store, [log("q", good=JudgedRanks(paths=(1,)))])
    before = judge_digest(store)
    put_logs(store, [log("only asked")])
    assert judge_digest(store) == before
    put_logs(store, [log("q", good=JudgedRanks(paths=(2,)))])
    assert judge_digest(store) != before


def test_a_question_is_held_out_by_its_words_whoever_writes_them_how() -> None:
    assert is_held_out("Who  met Ada?", 0.5) == is_held_out("who met ada?", 0.5)
    assert sum(is_held_out(f"question {number}", 0.2) for number in range(5_000)) == pytest.approx(
        1_000, abs=100
    )
