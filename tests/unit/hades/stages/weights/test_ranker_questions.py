"""Questions to learn ranking from: files with gold, and answers that somebody judged."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.build.ranker.questions import FEEDBACK, BadQuestions, LabelledQuestion, judge_questions, read_questions
from hades.retrieval.turn_result import judge, write_log
from schemas.telemetry import JudgedRanks, QueryLog, ShownPassage, ShownResults
from tests.unit.hades.snapshot.homes import empty_store


def test_a_file_of_questions_plain_or_gzip(tmp_path: Path) -> None:
    body = json.dumps({"question": "who?", "gold": ["a", 7]}) + "\n"
    (tmp_path / "q.jsonl").write_text(body)
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(body.encode()))
    expected = [LabelledQuestion("who?", gold=frozenset({"a", "7"}))]
    assert read_questions(tmp_path / "q.jsonl") == read_questions(tmp_path / "q.jsonl.gz") == expected


@pytest.mark.parametrize(
    ("body", "told"), [("", "no question"), ('{"question": "who?"}\n', "line 1"), (None, "not there")]
)
def test_a_file_that_cannot_be_learned_from_says_why(tmp_path: Path, body: str | None, told: str) -> None:
    if body is not None:
        (tmp_path / "q.jsonl").write_text(body)
    with pytest.raises(BadQuestions, match=told):
        read_questions(tmp_path / "q.jsonl")


def test_judged_answers_come_by_time_with_their_propensities(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    for key, day in (("later", 2), ("earlier", 1), ("nobody", 3), ("disliked", 4)):
        passages = [
            ShownPassage(rank=rank, score=1.0, id=f"doc_chunks/{rank}", propensity=0.5 / rank) for rank in (1, 2)
        ]
        shown = ShownResults(passages=tuple(passages)).model_dump(mode="json")
        moment = datetime(2026, 1, day, tzinfo=UTC)
        write_log(store, QueryLog(key=key, query=f"{key}?", recipe="r", snapshot="s", at=moment, results=shown))
        if key in ("later", "earlier"):
            judge(store, key, good=JudgedRanks(passages=(2,)), at=moment)
    judge(store, "disliked", bad=JudgedRanks(passages=(1,)), at=datetime(2026, 1, 5, tzinfo=UTC))
    found = judge_questions(store)
    assert [one.text for one in found] == ["earlier?", "later?"]
    assert found[0].good == {"doc_chunks/2"}
    assert found[0].shown == {"doc_chunks/1": 0.5, "doc_chunks/2": 0.25}
    assert found[0].source == FEEDBACK
    assert found[0].weight == 4.0
    assert found[0].wants("doc_chunks/2", "any")
    assert not found[0].compares("doc_chunks/9")
