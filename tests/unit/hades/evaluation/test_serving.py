"""The gate: what got worse beyond its interval stops, moves no alias, and leaves the run before to
compare with.
"""

import dataclasses
import json

import pytest

from benchmarks.evaluation.workbench import build
from flows.evaluate import evaluate
from hades.errors import SettingsError
from hades.evaluation.rankers import MOMENT
from hades.evaluation.serving import (
    EVALUATED,
    RetrievalRegression,
    StoredRun,
    alarms,
    changes,
    read_last,
    regressions,
    write_last,
)
from hades.night.model_versions import WEIGHTS_MODEL, log_weights, promote
from hades.snapshot.pointer import served
from tasks.build import evaluate_graph
from tasks.unit import without_server
from tests.homes import live_in
from tests.unit.benchmarks.corpora import PASSAGES, QUESTIONS, hashing_bench, write_rows

BEFORE = StoredRun(
    "g1", "q", 5, {"hipporag": [1.0] * 40, "bm25": [0.5] * 40}, {"hipporag": [10.0] * 40}
)


def test_a_drop_beyond_the_interval_stops_and_one_within_it_does_not():
    worse = dataclasses.replace(
        BEFORE, recall={"hipporag": [1.0] * 20 + [0.0] * 20, "bm25": [0.5] * 40}
    )
    found = regressions(changes(worse, BEFORE))
    assert [change.recipe for change in found] == ["hipporag"]
    assert found[0].sentence.startswith("hipporag: recall@5 1.0000 -> 0.5000 (-0.5000, 95% [")
    mixed = dataclasses.replace(BEFORE, recall={"hipporag": [1.0] * 39 + [0.0], "bm25": [0.5] * 40})
    assert regressions(changes(mixed, BEFORE)) == []


def test_conveyance_alarms_but_does_not_stop():
    slower = dataclasses.replace(BEFORE, conveyance={"hipporag": [5.0] * 40})
    assert regressions(changes(slower, BEFORE)) == []
    assert [change.figure for change in alarms(changes(slower, BEFORE))] == ["conveyance"]
    a_little = dataclasses.replace(BEFORE, conveyance={"hipporag": [9.5] * 40})
    assert alarms(changes(a_little, BEFORE)) == []


def test_other_questions_are_not_compared():
    assert changes(dataclasses.replace(BEFORE, questions="other"), BEFORE) == []
    assert changes(BEFORE, None) == []


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """A home whose snapshot serves with registered weights, and a file of questions beside it."""
    corpus, home = write_rows(tmp_path / "corpus.jsonl", PASSAGES), tmp_path / "home"
    with hashing_bench(home) as bench:
        build(bench, lambda ingest: ingest.passages(corpus))
        tracker = bench.build_context.open_tracker()
        version = log_weights(bench.build_context.store, tracker, as_of=MOMENT)
        promote(tracker, version, served(home))
    live_in(home, monkeypatch)
    return home, tracker, version


def _run():
    with without_server():
        return evaluate.fn(recipes="vector")


@pytest.mark.slow  # opens a registry
def test_weekly_run_moves_the_alias_and_a_regression_does_not_until_it_is_accepted(
    serving, monkeypatch
):
    home, tracker, version = serving
    fresh = _run()
    assert fresh["skipped"]
    assert "questions.jsonl does not exist" in fresh["why"]
    write_rows(home / "questions.jsonl", QUESTIONS * 10)
    first = _run()
    assert first["changes"] == []
    assert tracker.alias(WEIGHTS_MODEL, EVALUATED) == version
    second = _run()
    assert [row["is_worse"] for row in second["changes"] if row["figure"] == "recall@5"] == [
        False
    ] * 4

    folder = next((home / "reports" / "evaluation").iterdir())
    last = read_last(folder)
    better = dataclasses.replace(
        last, recall={"vector": [2.0] * 30}
    )  # as if the graph had once been twice as good
    write_last(folder, better)
    with pytest.raises(RetrievalRegression, match=r"vector: recall@5 2\.0000 -> .*hades rollback"):
        _run()
    assert read_last(folder) == better
    assert tracker.versions(WEIGHTS_MODEL)[0].tags["evaluation"] == "regressed"
    alert = json.loads((home / "logs" / "alerts.jsonl").read_text("utf-8").splitlines()[-1])
    assert alert["what"] == "retrieval got worse"

    monkeypatch.setenv("HADES_APPROVAL_MINUTES", "1")
    with pytest.raises(SettingsError, match=r"Accept worse retrieval.*nobody can be asked"):
        _run()
    assert read_last(folder) == better
    with without_server():
        accepted = evaluate_graph(None, "vector", accepts=True)  # what a person's approval leads to
    assert (accepted["changes"], read_last(folder).recall) == ([], last.recall)


def test_a_fresh_deployment_without_questions_is_skipped_and_says_what_to_write(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    with without_server():
        told = evaluate.fn()
    assert told["skipped"]
    assert str(tmp_path / "questions.jsonl") in told["why"]
