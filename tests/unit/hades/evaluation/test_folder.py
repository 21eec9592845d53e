"""`hades eval folder`: gold is a file and a heading, the build is that of `hades watch`, baselines
always run.
"""

import json

import pytest

from hades.evaluation.cases import BadCases
from hades.evaluation.folder import FolderCase, read_folder_cases, stands_in
from hades.ports.graph import Passage
from tests.command_line import run
from tests.homes import live_in
from tests.unit.benchmarks.corpora import write_rows

ROW = {
    "question": "how long does it wait?",
    "gold": [{"file": "use.md", "heading": "Timeouts"}],
    "answer": "5 seconds",
}


def passage(document: str, *headings: str, text: str = "", title: str = "Use") -> Passage:
    return Passage("c", text, document, "d", (0, 0), title, headings)


@pytest.mark.parametrize(
    ("found", "is_gold"),
    [
        (passage("use.md", "Manual", "Timeouts"), True),
        (passage("docs/use.md", "Manual", "`Timeouts`"), True),
        (passage("use.md", "Manual", text="# Manual\n\n## Timeouts\n\nIt waits."), True),
        (passage("use.md", title="Timeouts"), True),  # above the first heading of a page
        (passage("use.md", "Pools", title="Timeouts"), False),
        (passage("use.md", "Timeouts", "Pools"), False),  # the section below it is another one
        (passage("misuse.md", "Timeouts"), False),
        (passage("use.md", "Manual", text="Timeouts are described elsewhere."), False),
    ],
)
def test_a_passage_belongs_to_the_section_whose_heading_is_its_own(found, is_gold):
    assert stands_in(found, frozenset({("use.md", "timeouts")})) == is_gold


def test_another_section_serves_for_the_gold_that_it_replaces(tmp_path):
    gold = [{"file": "a.md", "heading": "A"}, {"file": "b.md", "heading": "B"}]
    also = [{"file": "c.md", "heading": "C", "replaces": 1, "answer": "``three``"}]
    row = {
        "question": "q",
        "gold": gold,
        "also": also,
        "answer": "two",
        "answers": ["one", "two"],
        "kind": "howto",
    }
    (case,) = read_folder_cases(write_rows(tmp_path / "q.jsonl", [row]))
    places = (frozenset({("a.md", "a")}), frozenset({("b.md", "b"), ("c.md", "c")}))
    assert case == FolderCase("1", "q", places, ("two", "one", "three"), "howto")
    assert case.sections_in([passage("c.md", "C"), passage("b.md", "B")]) == 0.5
    assert case.files_in([passage("a.md", "Z"), passage("b.md", "Z")]) == 1.0
    assert case.is_answered_by("It gives **Three**.")


@pytest.mark.parametrize(
    "wrong", [{"gold": None}, {"gold": ["use.md"]}, {"answer": None}, {"question": ...}]
)
def test_a_row_that_cannot_be_scored_is_refused_with_its_line(tmp_path, wrong):
    row = {name: value for name, value in (ROW | wrong).items() if value is not ...}
    with pytest.raises(BadCases, match=r"q\.jsonl line 2: a row needs"):
        read_folder_cases(write_rows(tmp_path / "q.jsonl", [ROW, row]))


@pytest.mark.slow  # a whole build
def test_a_folder_is_built_as_watch_does_and_its_manual_is_found_before_its_notes_on_releases(
    tmp_path, monkeypatch
):
    live_in(tmp_path / "mine", monkeypatch)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "use.md").write_text(
        "# Manual\n\nA client sends requests.\n\n## Timeouts\n\nA request waits 5 seconds by "
        "default.\n\n"
        "## Pools\n\nA pool keeps at most 100 connections open.\n",
        "utf-8",
    )
    (folder / "changes.md").write_text(
        "# Changes\n\n## 1.4.0 (2026-01-02)\n\n- The seconds that a request does wait: 5 "
        "seconds.\n\n"
        "## 1.3.0\n\n- A pool keeps 100 connections.\n",
        "utf-8",
    )
    pools = {
        "question": "how many connections does a pool keep?",
        "answer": "100 connections",
        "kind": "lookup",
    }
    rows = [
        ROW | {"question": "how many seconds does a request wait?"},
        pools | {"gold": [{"file": "use.md", "heading": "Pools"}]},
        {"question": "who won the chess olympiad in Oslo?", "gold": []},
    ]
    questions = write_rows(tmp_path / "q.jsonl", rows)
    done = run("eval", "folder", str(folder), "--questions", str(questions), "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert list(document["baselines"]) == ["bm25", "dense", "fusion"]
    found = document["recipes"]["auto"]
    assert found["recall"] == {"1": 1.0, "3": 1.0, "5": 1.0}
    assert (found["mrr"], found["file"], found["missed"]) == (1.0, {"1": 1.0, "5": 1.0}, [])
    assert (found["answer_in_passages"], found["abstained_wrongly"]) == (1.0, 0.0)
    assert (found["abstained_rightly"], found["auroc"]) == (1.0, 1.0)
    assert found["kinds"] == {"lookup": {"questions": 1, "recall@5": 1.0}}
    assert document["build"]["seconds"] > document["build"]["first_answer_seconds"] > 0
    assert document["build"]["recall_of_words"]["5"] == 1.0
    assert not (tmp_path / "mine" / "graph.db").exists()
