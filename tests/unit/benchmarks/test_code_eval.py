"""`hades eval code`: each case at its own commit, and single functions, with baselines beside the
default recipe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from benchmarks.evaluation.code import CodeGraph, evaluate_code, evaluate_functions
from hades.errors import HadesError
from hades.evaluation.cases import BadCases
from hades.ingest.phases import IngestContext
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from tests.homes import empty_store
from tests.unit.hades.ingest.sources.repositories import Repository


def _repository(folder: Path) -> list[str]:
    """Two commits: the second moves `area` to another file. Their ids."""
    repository, square = Repository(folder), "def area(side):\n    return side * side\n"
    shapes = {"shapes.py": square, "names.py": "def title(name):\n    return name.title()\n"}
    squares = {"shapes.py": "def edge(side):\n    return side\n", "squares.py": square}
    return [repository.commit("Shapes and names", shapes), repository.commit("Squares", squares)]


def test_each_case_is_asked_at_its_own_commit(tmp_path: Path) -> None:
    first, second = _repository(tmp_path / "repo")
    rows = [
        {
            "id": commit,
            "commit": commit,
            "question": "`area` fails",
            "gold": [path],
            "gold_symbols": [f"{path}:area"],
        }
        for commit, path in ((first, "shapes.py"), (second, "squares.py"))
    ]
    cases = tmp_path / "cases.jsonl"
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = evaluate_code(tmp_path / "repo", cases, MiniLmTokenizer(), embedder=HashingEmbedder())
    assert set(found["recipes"]) == {"bm25_files", "bm25_functions", "dense", "fusion", "auto"}
    assert found["recipes"]["auto"]["one_file"] == {
        "file_acc": {"1": 1.0, "3": 1.0, "5": 1.0, "10": 1.0},
        "cases": 2,
    }
    assert found["recipes"]["auto"]["symbol_acc"]["5"] == 1.0
    assert [step["parsed"] for step in found["steps"]] == [2, 2]


def test_a_case_without_a_commit_is_refused(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"question": "what", "gold": ["a.py"]}\n')
    with pytest.raises(BadCases, match="--at"):
        evaluate_code(tmp_path, cases, MiniLmTokenizer())


def test_single_functions_are_found_by_what_they_say(tmp_path: Path) -> None:
    files, questions = tmp_path / "files.jsonl", tmp_path / "questions.jsonl"
    functions = [
        {
            "id": "a",
            "name": "read_json",
            "text": 'def read_json(path):\n    """Read a JSON file."""\n',
        },
        {
            "id": "b",
            "name": "send_mail",
            "text": 'def send_mail(to):\n    """Send a message."""\n    return to\n',
        },
    ]
    files.write_text("".join(json.dumps(row) + "\n" for row in functions))
    questions.write_text('{"id": "q", "question": "how to read a json file", "gold": ["a"]}\n')
    found = evaluate_functions(files, questions, HashingEmbedder())
    assert found["recipes"]["auto"]["mrr"] == 1.0
    assert set(found["recipes"]) == {"bm25_functions", "dense", "fusion", "auto"}


def test_other_recipes_are_asked_of_a_graph_that_follows_the_commits(tmp_path: Path) -> None:
    first, second = _repository(tmp_path / "repo")
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": commit, "commit": commit, "question": "where is the area of a side?", "gold": [path]}
        for commit, path in ((first, "shapes.py"), (second, "squares.py"))
    ]
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))

    @contextmanager
    def open_graph(repo: str) -> Iterator[CodeGraph]:
        home = tmp_path / "home"
        with closing(empty_store(home / "graph.db")) as store:
            yield CodeGraph(
                IngestContext(store, HashingEmbedder(), MiniLmTokenizer(), home / "cache"), home
            )

    found = evaluate_code(
        tmp_path / "repo",
        cases,
        MiniLmTokenizer(),
        recipes=("auto", "lexical"),
        open_graph=open_graph,
    )
    assert set(found["recipes"]) == {"bm25_files", "bm25_functions", "auto", "lexical"}
    assert found["recipes"]["lexical"]["file_acc"]["1"] == 1.0
    with pytest.raises(HadesError, match="recipe 'lexical' is asked of a graph"):
        evaluate_code(tmp_path / "repo", cases, MiniLmTokenizer(), recipes=("lexical",))
