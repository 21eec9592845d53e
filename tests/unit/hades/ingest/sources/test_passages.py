"""Passages and the triples stated for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hades.ingest.sources.files import SourceError
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from hades.ingest.sources.passages import PassagesSource
from schemas.nodes import ChunkKind


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_passage_is_its_title_and_text_with_what_is_stated_of_it(tmp_path: Path) -> None:
    corpus = write(
        tmp_path / "c.jsonl",
        {"id": "a", "title": "Ann", "text": "Ann knows Bob."},
        {"id": 7, "title": "", "text": "No title."},
    )
    triples = write(
        tmp_path / "t.jsonl",
        {
            "id": "a",
            "entities": ["Ann", "Bob", "Ann", 3],
            "triples": [["Ann", "knows", "Bob"], ["Ann", "knows"]],
        },
        {"id": "a", "triples": [["Bob", "is", "  a   man "]]},
        {"id": "zz", "entities": ["X"], "triples": []},
    )
    first, second, third, fourth = PassagesSource(corpus, triples).read()
    assert isinstance(first, RejectedInput)
    assert (first.uri, first.reason) == ("t.jsonl:1", RejectReason.MALFORMED)
    assert "1 of 2 triples" in first.detail
    assert isinstance(second, Material)
    assert (second.origin, second.title, second.text) == ("a", "Ann", "Ann\n\nAnn knows Bob.")
    assert second.names == (("Ann", None), ("Bob", None))
    assert second.triples == (("Ann", "knows", "Bob"), ("Bob", "is", "a man"))
    assert [(one.start, one.end, one.kind) for one in second.sections] == [
        (0, len(second.text), ChunkKind.PASSAGE)
    ]
    assert isinstance(third, Material)
    assert (third.origin, third.text) == ("7", "No title.")
    assert isinstance(fourth, RejectedInput)
    assert (fourth.uri, fourth.reason) == ("t.jsonl:3", RejectReason.MALFORMED)


def test_a_passage_may_say_when_it_was_written_and_what_it_follows(tmp_path: Path) -> None:
    corpus = write(
        tmp_path / "c.jsonl",
        {"id": "a", "text": "Hello.", "date": "1:56 pm on 8 May, 2023"},
        {"id": "b", "text": "Hello!", "date": "2023-05-09T10:00:00+02:00", "after": "a"},
        {"id": "c", "text": "Bye.", "date": 2024, "after": None},
        {"id": "d", "text": "Bye!", "date": "some day"},
    )
    found = [one for one in PassagesSource(corpus).read() if isinstance(one, Material)]
    assert [one.follows for one in found] == ["", "a", "", ""]
    assert [one.created and one.created.isoformat() for one in found] == [
        "2023-05-08T00:00:00+00:00",
        "2023-05-09T08:00:00+00:00",
        "2024-01-01T00:00:00+00:00",
        None,
    ]


def test_bad_passages_are_named_by_line(tmp_path: Path) -> None:
    good = {"id": "a", "title": "T", "text": "x"}
    corpus = write(
        tmp_path / "c.jsonl",
        good,
        good,
        {"text": "x"},
        {"id": "b", "text": " "},
        {"id": "c", "text": 5},
    )
    reasons = [
        (one.uri, one.reason)
        for one in PassagesSource(corpus).read()
        if isinstance(one, RejectedInput)
    ]
    assert reasons == [
        ("c.jsonl:2", RejectReason.DUPLICATE),
        ("c.jsonl:3", RejectReason.MALFORMED),
        ("c.jsonl:4", RejectReason.EMPTY),
        ("c.jsonl:5", RejectReason.MALFORMED),
    ]


def test_same_words_under_two_ids_are_two_passages(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c.jsonl", {"id": "a", "text": "x"}, {"id": "b", "text": "x"})
    assert [one.origin for one in PassagesSource(corpus).read() if isinstance(one, Material)] == [
        "a",
        "b",
    ]


def test_a_missing_corpus_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected one passage a line"):
        PassagesSource(tmp_path / "none.jsonl")
