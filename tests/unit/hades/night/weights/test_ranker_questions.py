"""Questions to learn ranking from: files with gold, and answers that somebody judged."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.night.exam.questions import Draft
from hades.night.exam.stage import judged_questions
from hades.night.ranker.questions import BadQuestions, read_questions
from hades.retrieval.turn_result import judge, write_log
from schemas.telemetry import JudgedRanks, QueryLog, ShownPassage, ShownResults
from tests.homes import empty_store


def test_a_file_of_questions_plain_or_gzip(tmp_path: Path) -> None:
    body = json.dumps({"question": "who?", "gold": ["a", 7]}) + "\n"
    (tmp_path / "q.jsonl").write_text(body)
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(body.encode()))
    expected = [("who?", ["a", "7"])]
    assert (
        read_questions(tmp_path / "q.jsonl") == read_questions(tmp_path / "q.jsonl.gz") == expected
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [("", "no question"), ('{"question": "who?"}\n', "line 1"), (None, "not there")],
)
def test_a_file_that_cannot_be_learned_from_says_why(
    tmp_path: Path, body: str | None, told: str
) -> None:
    if body is not None:
        (tmp_path / "q.jsonl").write_text(body)
    with pytest.raises(BadQuestions, match=told):
        read_questions(tmp_path / "q.jsonl")


def test_judged_answers_come_by_time_and_want_what_was_good(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    for key, day in (("later", 2), ("earlier", 1), ("nobody", 3), ("disliked", 4)):
        passages = [ShownPassage(rank=rank, score=1.0, id=f"doc_chunks/{rank}") for rank in (1, 2)]
        shown = ShownResults(passages=tuple(passages)).model_dump(mode="json")
        moment = datetime(2026, 1, day, tzinfo=UTC)
        write_log(
            store,
            QueryLog(key=key, query=f"{key}?", recipe="r", snapshot="s", at=moment, results=shown),
        )
        if key in ("later", "earlier"):
            judge(store, key, good=JudgedRanks(passages=(2,)), at=moment)
    judge(store, "disliked", bad=JudgedRanks(passages=(1,)), at=datetime(2026, 1, 5, tzinfo=UTC))
    assert judged_questions(store) == [
        Draft("judged", f"{key}?", (("doc_chunks/2",),)) for key in ("earlier", "later")
    ]
