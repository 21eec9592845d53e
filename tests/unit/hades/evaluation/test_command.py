"""`hades eval` as people run it: a document, files kept, a run in the registry, their own graph
left alone.
"""

import json
import sqlite3

import pytest

from hades.surfaces.cli import output
from hades.surfaces.cli.commands import DeferredCommand
from hades.surfaces.cli.evaluation_sets import NAMES, declare_sets
from hades.surfaces.cli.parameters import command_of
from tests.command_line import run
from tests.homes import live_in
from tests.unit.benchmarks.corpora import PASSAGES, QUESTIONS, write_rows


@pytest.fixture
def command(tmp_path, monkeypatch):
    live_in(tmp_path / "mine", monkeypatch)
    corpus, questions = (
        write_rows(tmp_path / "c.jsonl", PASSAGES),
        write_rows(tmp_path / "q.jsonl", QUESTIONS),
    )
    return ["eval", "multihop", "--corpus", str(corpus), "--questions", str(questions)]


@pytest.mark.usefixtures("with_mlflow")
@pytest.mark.slow  # opens a registry
def test_one_command_leaves_a_document_a_picture_and_a_run(command, tmp_path):
    done = run(
        *command, "--recipes", "vector", "-k", "1,2", "--out", str(tmp_path / "out"), "--json"
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert list(document["recipes"]) == ["bm25", "dense", "fusion", "vector"]
    assert document["compared_at"] == 1
    assert json.loads((tmp_path / "out" / "results.json").read_text("utf-8")) == document
    assert (tmp_path / "out" / "recall.svg").stat().st_size > 1000
    assert not (tmp_path / "mine" / "graph.db").exists()
    with sqlite3.connect(tmp_path / "mine" / "mlflow.db") as registry:
        metrics = dict(registry.execute("select key, value from metrics"))
    assert metrics["vector.recall_at_2"] == document["recipes"]["vector"]["recall"]["2"]


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (["-k", "two"], 2, "is not a list of depths"),
        (["--recipes", "nothing"], 1, "no recipe or rung is called 'nothing'"),
        (["--triples", "missing.jsonl"], 1, "missing.jsonl"),
    ],
)
def test_what_cannot_be_run_is_said_with_the_next_step(command, flags, code, told):
    done = run(*command, *flags)
    assert done.exit_code == code
    assert told in done.output


def test_other_ways_to_ask_for_a_bridge_are_refused(command):
    done = run("eval", "bridges", "--ask", "both")
    assert done.exit_code == 2
    assert "pair" in done.output
    assert "title" in done.output


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_says_that_evaluation_sets_are_asked_from_a_checkout(name, tmp_path, monkeypatch):
    live_in(tmp_path / "mine", monkeypatch)
    monkeypatch.setattr(output, "LOCAL_COMMANDS", [])
    declare_sets(tmp_path)
    group = command_of("eval", [], "Evaluate retrieval.")
    monkeypatch.setattr(DeferredCommand, "load", lambda _: group)
    done = run("eval", name, "talks", "--corpus", "c.jsonl", "--json")
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["error"]["type"] == "OnlyInCheckout"
    assert "asked from a checkout" in done.stderr
