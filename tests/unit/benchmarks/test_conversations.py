"""Conversations and articles become corpora with questions, and their figures are summed over all
of them.
"""

import gzip
import json

import pytest

from benchmarks.evaluation.conversations import prepare, split_of
from hades.evaluation.cases import BadCases
from tests.command_line import run
from tests.homes import live_in


def write(folder, name, rows):
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def talks(tmp_path):
    folder = tmp_path / "talks"
    said = [
        ("a", 1, "D1:1", "Ada", "I bought a blue kayak in Galway."),
        ("a", 1, "D1:2", "Bo", "My dog is called Rex."),
    ]
    said += [
        ("b", 1, "D1:1", "Cy", "We moved to Vienna in spring."),
        ("b", 1, "D1:2", "Di", "I play the cello."),
    ]
    keys = ("conv", "session", "dia_id", "speaker", "text")
    write(folder, "turns", [dict(zip(keys, row, strict=True)) for row in said])
    write(
        folder,
        "sessions",
        [{"conv": conv, "session": 1, "date_time": "8 May, 2023"} for conv in "ab"],
    )
    asked = [
        ("a", "What did Ada buy?", ["D1:1"]),
        ("b", "Who plays the cello?", ["D1:2"]),
        ("b", "Who won?", []),
    ]
    write(
        folder,
        "qa",
        [
            {
                "id": f"{conv}{place}",
                "conv": conv,
                "question": text,
                "gold": gold,
                "category_name": "fact",
            }
            for place, (conv, text, gold) in enumerate(asked)
        ],
    )
    return folder


def test_each_conversation_is_a_corpus_and_what_was_never_said_is_not_asked(talks, tmp_path):
    told = prepare(talks, tmp_path / "files")
    assert [one.name for one in told] == ["a", "b"]
    turns = [json.loads(line) for line in told[0].corpus.read_text().splitlines()]
    dated = {"title": "Ada, 8 May, 2023", "date": "8 May, 2023"}
    assert turns[0] == {
        "id": "D1:1",
        "text": "Ada: I bought a blue kayak in Galway.",
        "after": "",
        **dated,
    }
    assert turns[1]["after"] == "D1:1"
    assert len(told[1].questions.read_text().splitlines()) == 1


def test_paragraphs_follow_each_other_and_questions_are_told_apart_by_their_time(tmp_path):
    texts = ["A house.", " ", "Ann owned it.", "Bo owned it."]
    paragraphs = [
        {"id": f"House#{place}", "doc": "The_House", "text": text}
        for place, text in enumerate(texts)
    ]
    write(tmp_path, "passages", paragraphs)
    asked = {"Who owned it from 1811 to 1827?": "from to", "Who owned it in 1811?": "at a time"}
    asked |= {"Who owned it after 1827?": "before or after", "Who owned it?": "no time"}
    rows = [
        {"id": text, "doc": "The_House", "question": text, "gold": ["House#2"]} for text in asked
    ]
    write(tmp_path, "questions", rows)
    [told] = prepare(tmp_path, tmp_path / "files")
    lines = [json.loads(line) for line in told.corpus.read_text().splitlines()]
    assert [(row["id"], row["after"]) for row in lines] == [
        ("House#0", ""),
        ("House#2", "House#0"),
        ("House#3", "House#2"),
    ]
    questions = [json.loads(line) for line in told.questions.read_text().splitlines()]
    assert {row["question"]: row["type"] for row in questions} == asked
    assert {row["split"] for row in questions} == {split_of("The_House")}


def test_a_folder_of_neither_kind_is_refused(tmp_path):
    with pytest.raises(BadCases, match="neither turns"):
        prepare(tmp_path, tmp_path / "files")


@pytest.mark.slow
def test_the_command_sums_over_conversations(talks, tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch)
    done = run("eval", "memory", str(talks), "--recipes", "memory,hipporag", "-k", "1,2", "--json")
    document = json.loads(done.stdout)
    assert document["dataset"]["questions"] == 2
    assert document["dataset"]["passages"] == 4
    assert document["recipes"]["bm25"]["recall"]["1"] == 1.0
    assert set(document["recipes"]) == {"bm25", "dense", "fusion", "memory", "hipporag"}
    assert document["recipes"]["memory"]["recall"]["1"] == 1.0
    assert sum(half["questions"] for half in document["splits"].values()) == 2


@pytest.mark.slow
def test_questions_of_articles_without_gold_are_unanswerable(tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch)
    write(
        tmp_path,
        "passages",
        [{"id": "House#1", "doc": "The_House", "text": "Ann owned the house in 1811."}],
    )
    asked = {"Who owned the house in 1811?": ["House#1"], "Who sank the ship in 1911?": []}
    rows = [
        {"id": text, "doc": "The_House", "question": text, "gold": gold}
        for text, gold in asked.items()
    ]
    write(tmp_path, "questions", rows)
    done = run("eval", "memory", str(tmp_path), "--recipes", "auto", "--json")
    document = json.loads(done.stdout)
    assert document["dataset"]["questions"] == 1
    assert sum(half["questions"] for half in document["splits"].values()) == 1
    assert document["abstention"]["auto"]["unanswerable"] == 1
