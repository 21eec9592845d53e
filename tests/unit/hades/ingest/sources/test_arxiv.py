"""arXiv rows in both forms, with links, and what becomes of bad ones."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.ingest.sources.arxiv import ArxivSource
from hades.ingest.sources.files import SourceError
from hades.ingest.sources.material import Link, Material, RejectedInput, RejectReason
from schemas.nodes import ChunkKind, NameType, RelationType

SNAPSHOT = {
    "id": "0704.0001",
    "submitter": "Pavel",
    "authors": "C. Bal\\'azs, E. L. Berger (ANL, Argonne) and P. M. Nadolsky",
    "title": "Calculation of prompt\n  diphotons",
    "comments": "37 pages",
    "doi": None,
    "abstract": "  A fully differential\ncalculation.\n",
    "categories": "hep-ph hep-ex",
    "versions": [
        {"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"},
        {"version": "v2", "created": "x"},
    ],
    "update_date": "2008-11-26",
    "authors_parsed": [["Balázs", "C.", ""], ["Berger", "E. L.", "Jr."]],
}
SHORT = {
    "id": "1.2",
    "title": "T",
    "abstract": "A b.",
    "authors": ["ann  lee"],
    "categories": ["cs.LG"],
    "date": "2009-03-16",
    "n_refs": 18,
}


def write(path: Path, *rows: object) -> Path:
    lines = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines)
    return path


def read(source: ArxivSource) -> tuple[list[Material], list[RejectedInput]]:
    outcomes = list(source.read())
    return [one for one in outcomes if isinstance(one, Material)], [
        one for one in outcomes if isinstance(one, RejectedInput)
    ]


def test_snapshot_rows(tmp_path: Path) -> None:
    [paper], rejected = read(ArxivSource(write(tmp_path / "p.jsonl.gz", SNAPSHOT)))
    assert rejected == []
    assert paper.text == "Calculation of prompt diphotons\n\nA fully differential calculation."
    assert [(one.start, one.end, one.kind) for one in paper.sections] == [
        (0, len(paper.text), ChunkKind.ABSTRACT)
    ]
    assert paper.created == datetime(2007, 4, 2, 19, 18, 42, tzinfo=UTC)
    assert paper.names == tuple(
        (name, NameType.PERSON) for name in ("C. Balázs", "E. L. Berger Jr.")
    )
    assert paper.paper is not None
    assert paper.paper["categories"] == ("hep-ph", "hep-ex")
    assert paper.paper["metadata"] == {"submitter": "Pavel", "comments": "37 pages"}


def test_short_rows(tmp_path: Path) -> None:
    [paper], _ = read(ArxivSource(write(tmp_path / "p.jsonl", SHORT)))
    assert (paper.origin, paper.title, paper.text) == ("1.2", "T", "T\n\nA b.")
    assert paper.created == datetime(2009, 3, 16, tzinfo=UTC)
    assert paper.paper is not None
    assert paper.paper["authors"] == ("ann lee",)
    assert paper.paper["metadata"] == {"n_refs": 18}


def test_authors_in_one_text_are_split_and_lose_their_affiliations(tmp_path: Path) -> None:
    row = {**SNAPSHOT, "authors_parsed": []}
    [paper], _ = read(ArxivSource(write(tmp_path / "p.jsonl", row)))
    assert paper.paper is not None
    assert paper.paper["authors"] == ("C. Bal\\'azs", "E. L. Berger", "P. M. Nadolsky")


def test_citations_and_code_links_become_links(tmp_path: Path) -> None:
    citations = write(
        tmp_path / "c.jsonl",
        {"src": "1.2", "dst": "9.9", "n_mentions": 3},
        {"src": "1.2", "dst": "8.8", "n_mentions": 0},
        {"src": "7.7", "dst": "1.2", "n_mentions": 1},
    )
    links = write(tmp_path / "l.jsonl", {"id": "1.2", "repo": "o/r", "context": "see  o/r"})
    [paper], rejected = read(ArxivSource(write(tmp_path / "p.jsonl", SHORT), citations, links))
    assert paper.links == (
        Link(RelationType.CITES, "9.9", count=3),
        Link(RelationType.CITES, "8.8", count=1),
        Link(RelationType.IMPLEMENTS, "o/r", external=True, context="see o/r"),
    )
    assert [(one.uri, one.reason) for one in rejected] == [("c.jsonl", RejectReason.MALFORMED)]
    assert "7.7" in rejected[0].detail


def test_citation_sentences_about_one_paper_are_one_link(tmp_path: Path) -> None:
    rows = [
        {"src": "1.2", "dst": "9.9", "context": text} for text in ("First.", "Second.", "First.")
    ]
    source = ArxivSource(write(tmp_path / "p.jsonl", SHORT), write(tmp_path / "c.jsonl", *rows))
    assert read(source)[0][0].links == (
        Link(RelationType.CITES, "9.9", count=3, context="First.\nSecond."),
    )


def test_bad_rows_are_named_by_line_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.jsonl",
        "{broken",
        SHORT,
        "[1]",
        {"id": "", "title": "x"},
        {"id": "2", "title": " ", "abstract": None},
        {"id": "3", "title": "only a title", "abstract": ""},
        SHORT,
        {"id": "4", "title": "x\u0000y"},
        {"id": "5", "title": ["x"]},
        "",
        {
            "id": "6",
            "abstract": "only an abstract",
            "authors": 7,
            "categories": 7,
            "date": "someday",
            "versions": [7],
        },
    )
    papers, rejected = read(ArxivSource(path))
    assert [one.origin for one in papers] == ["1.2", "3", "6"]
    assert [(one.uri, one.reason) for one in rejected] == [
        ("p.jsonl:1", RejectReason.MALFORMED),
        ("p.jsonl:3", RejectReason.MALFORMED),
        ("p.jsonl:4", RejectReason.MALFORMED),
        ("p.jsonl:5", RejectReason.EMPTY),
        ("p.jsonl:7", RejectReason.DUPLICATE),
        ("p.jsonl:8", RejectReason.NOT_TEXT),
        ("p.jsonl:9", RejectReason.MALFORMED),
    ]


def test_a_damaged_archive_gives_what_was_read_before_the_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl.gz", *({**SHORT, "id": str(number)} for number in range(5000)))
    path.write_bytes(path.read_bytes()[:-200])
    papers, rejected = read(ArxivSource(path))
    assert 0 < len(papers) < 5000
    assert [one.reason for one in rejected][-1] is RejectReason.UNREADABLE


def test_an_endless_row_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (300 << 20), 1))
    papers, rejected = read(ArxivSource(path))
    assert papers == []
    assert [one.reason for one in rejected] == [RejectReason.OVERSIZED]


def test_a_missing_corpus_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected one paper a line"):
        ArxivSource(tmp_path / "none.jsonl")
    with pytest.raises(SourceError, match="not a file"):
        ArxivSource(tmp_path)
    with pytest.raises(SourceError, match="citation"):
        ArxivSource(write(tmp_path / "p.jsonl", SHORT), tmp_path / "none.jsonl")
