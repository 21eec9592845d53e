"""The log of a turn in a real store: what it keeps, how it is judged, and the page over it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.retrieval.answer.overview import write_dashboard
from hades.retrieval.turn_result import UnknownQuery, judge, log_of, read_log, write_log
from hades.stores.sqlite.store import SqliteStore
from schemas.answer import Retrieval
from schemas.telemetry import JudgedRanks, ShownResults
from tests.homes import empty_store
from tests.unit.hades.retrieval.test_pipeline import ask

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return empty_store(tmp_path / "graph.db")


@pytest.fixture
def found(store: SqliteStore) -> Retrieval:
    answer = ask()
    write_log(store, log_of(answer, NOON))
    return answer


def test_a_log_keeps_what_training_needs(store, found):
    log = read_log(store, found.query_id)
    shown = ShownResults.model_validate(log.results)
    assert (log.query, log.recipe, log.at, log.snapshot) == (
        "where is Basel",
        "hirag_pathrag",
        NOON,
        "toy",
    )
    assert [path.edges for path in shown.paths] == [
        tuple(edge.id for edge in path.edges) for path in found.paths
    ]
    assert {path.propensity for path in shown.paths} == {1.0}
    assert [passage.id for passage in shown.passages] == [passage.id for passage in found.passages]
    assert log.plan["budget"]["docs_max"] == 160
    assert log.telemetry["reads"] == found.telemetry.reads
    assert log.conveyance["C"] == pytest.approx(found.conveyance.value)


def test_a_log_holds_no_passage_text(store, found):
    assert found.passages[0].text not in str(read_log(store, found.query_id).results)


def test_judgements_add_up_and_a_later_word_wins(store, found):
    judge(store, found.query_id, good=JudgedRanks(paths=(1,)), at=NOON)
    later = NOON + timedelta(minutes=1)
    feedback = judge(
        store,
        found.query_id,
        good=JudgedRanks(passages=(1,)),
        bad=JudgedRanks(paths=(1,)),
        at=later,
    )
    assert (feedback.good, feedback.bad) == (JudgedRanks(passages=(1,)), JudgedRanks(paths=(1,)))
    assert read_log(store, found.query_id).feedback["bad"] == {"paths": [1], "passages": []}


def test_what_was_not_shown_cannot_be_judged(store, found):
    with pytest.raises(UnknownQuery, match="no path 99"):
        judge(store, found.query_id, good=JudgedRanks(paths=(99,)), at=NOON)
    with pytest.raises(UnknownQuery, match="nothing"):
        read_log(store, "nothing")


def test_the_page_shows_stages_reasons_and_conveyance(store, found, tmp_path):
    figures = write_dashboard(store, tmp_path / "queries.html")
    page = (tmp_path / "queries.html").read_text(encoding="utf-8")
    assert figures["questions"] == 1
    assert figures["stages"]["pack"]["reads"] == next(
        s.reads for s in found.telemetry.stages if s.name == "pack"
    )
    assert figures["recipes"]["hirag_pathrag"]["C"] == pytest.approx(found.conveyance.value)
    assert figures["context"]["returned_tokens"] == found.tokens.prompt > 0
    assert "tokens in the files they come from" in page
    assert "hierarchy_unavailable" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_page_of_an_empty_log_says_so(store, tmp_path):
    assert write_dashboard(store, tmp_path / "queries.html")["questions"] == 0
    assert "No question has been logged yet" in (tmp_path / "queries.html").read_text(
        encoding="utf-8"
    )
