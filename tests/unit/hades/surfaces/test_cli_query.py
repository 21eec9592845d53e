"""`hades query`, `feedback`, `explain` and `queries` on a real home: what a script and a person
get.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing

import pytest
from rich.console import Console

from hades.surfaces.access import contexts as local_context
from hades.surfaces.cli.show_answers import show_passage
from tests.command_line import run, run_json
from tests.homes import live_in, publish_pages

PAGE = """# Rivers

The Rhine flows from Basel to the North Sea. Basel lies on the Rhine. The North Sea is salt.

# Bread

Bread is baked in Basel with salt from the North Sea.
"""
QUESTION = "What lies on the Rhine?"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish_pages(tmp_path_factory.mktemp("asked"), {"page.md": PAGE}).home


@pytest.fixture(autouse=True)
def here(home, monkeypatch, tmp_path):
    live_in(home, monkeypatch, tmp_path)


def answered(*arguments: str) -> dict:
    return run_json("query", QUESTION, *arguments)


def test_an_answer_cites_the_page_to_the_character():
    passage = answered()["passages"][0]
    assert passage["document"] == "page.md"
    start, end = passage["span"]
    assert PAGE[start:end] == passage["text"]


@pytest.fixture(scope="module")
def home_of_towns(tmp_path_factory):
    towns = ("Basel", "Bonn", "Cologne", "Mainz", "Speyer", "Worms")
    pages = {
        f"{town}{number}.md": f"# {town} {number}\n\n{town} lies on the Rhine, {number} km on.\n"
        for town in towns
        for number in range(4)
    }
    return publish_pages(tmp_path_factory.mktemp("towns"), pages).home


@pytest.mark.parametrize(
    ("mode", "passages"), [("execution", 5), ("planning", 10), ("brainstorming", 20)]
)
def test_a_mode_of_nexus_gives_as_many_passages_as_it_says(
    home_of_towns, monkeypatch, mode, passages
):
    live_in(home_of_towns, monkeypatch)
    found = answered("--recipe", "nexus", "--mode", mode)
    assert len(found["passages"]) == passages
    assert "cap_exceeded" not in found["reasons"]


def test_a_turn_that_cannot_be_logged_is_answered_and_says_so(home, monkeypatch):
    monkeypatch.setattr(local_context, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(home / "graph.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")  # another process writes
        done = run("query", QUESTION)
    assert done.exit_code == 0, done.output
    answer, note = done.stdout.split("The turn was not logged")
    assert "Basel lies on the Rhine" in answer
    assert "held by another writer for 0.1 s" in " ".join(note.split())


def test_an_abstaining_turn_shows_its_nearest_passages_as_such():
    done = run("query", "Which enzyme splits lactose in yeast?", "--json")
    answer = json.loads(done.stdout)
    assert answer["reasons"][-1] == "abstained"
    assert answer["passages"]
    shown = run("query", "Which enzyme splits lactose in yeast?").stdout
    assert shown.index("The sources do not answer this; nearest:") < shown.index("page.md")


def test_a_passage_is_shown_as_a_page_and_printed_as_it_stands():
    table, code = "| day | hour |\n|---|---|\n| Monday | 9 |", "```sh\nferry --now\n```"
    text = f"# Ferry\n\nThe [ferry](x.md) **leaves** at:\n\n{table}\n\n{code}\n"
    one = {
        "rank": 1,
        "document": "a.md",
        "span": [0, len(text)],
        "title": "Boats",
        "headings": ["Boats", "Ferry"],
        "kind": "prose",
        "text": text,
        "score": 0.5,
        "from": ["lexical"],
    }
    console = Console(width=60, file=io.StringIO())
    for part in show_passage(one):
        console.print(part)
    shown = console.file.getvalue()
    assert "[1] Boats › Ferry" in shown
    assert "The ferry leaves at:" in shown
    assert "ferry --now" in shown
    assert not re.search(r"```|\*\*|\]\(|\|", shown)
    assert answered()["passages"][0]["text"].startswith("# Rivers")


def test_the_prompt_is_what_a_model_is_told():
    done = run("query", QUESTION, "--format", "prompt")
    assert done.stdout.startswith("Hierarchy context (HiRAG):")
    assert "Answer using only the information in these paths" in done.stdout


def test_a_plan_file_is_lowered_to_its_caps(tmp_path):
    (tmp_path / "plan.yaml").write_text("{retriever: {k: 99}, graph: {hops: 2}}", encoding="utf-8")
    found = answered("--plan", str(tmp_path / "plan.yaml"))
    assert (found["plan"]["retriever"]["k"], found["plan"]["graph"]["hops"]) == (8, 2)
    assert "plan_clamped" in found["reasons"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["query", "x", "--recipe", "recall"], 2, "'recall' is not one of"),
        (["query", " "], 1, "question is empty"),
        (["query", "x", "--as-of", "soon"], 2, "--as-of"),
        (["query", "x", "--format", "xml"], 2, "'xml' is not one of"),
        (["feedback", "q_none", "--good", "1"], 1, "q_none"),
        (["feedback", "q_none"], 2, "--good 1"),
        (["explain", "q_none"], 1, "q_none"),
    ],
)
def test_mistakes_are_named(arguments, code, words):
    done = run(*arguments)
    assert done.exit_code == code
    assert words in " ".join(done.output.split())
