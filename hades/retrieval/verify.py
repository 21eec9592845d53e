"""Every citation checked against the document it names: same characters, same hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hades.ports.view import EdgeFacts, GraphView, Passage
from schemas.ids import sha256_text


class Verdict(StrEnum):
    """What a look into the document said."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"  # the document is not stored, not known, or the reads of the turn were used up
    MISMATCH = "mismatch"  # the document says something else there: drop what cites it


@dataclass(frozen=True)
class Citation:
    """Words and where they are said to stand. `sha256` is the document's, where the citing side knows it."""

    document_id: str
    span: tuple[int, int] | None
    text: str
    sha256: str | None = None


@dataclass(frozen=True)
class Verification:
    """A verdict for each citation, in the order asked."""

    verdicts: tuple[Verdict, ...]

    @property
    def mismatches(self) -> int:
        """Citations that are wrong: a warning, for they should not exist."""
        return self.verdicts.count(Verdict.MISMATCH)

    @property
    def unverified(self) -> int:
        """Citations nobody could check."""
        return self.verdicts.count(Verdict.UNVERIFIED)


def verify_spans(view: GraphView, citations: Sequence[Citation]) -> Verification:
    """Compare each citation with its document; a document is read once, in the order of first mention.

    Through a metered view the reads are the turn's: documents it denies leave their citations unverified.
    """
    asked = list(dict.fromkeys(one.document_id for one in citations if one.document_id and one.span is not None))
    texts = dict(zip(asked, view.texts(asked), strict=False)) if asked else {}  # the budget may end the answer early
    return Verification(tuple(_verdict(one, texts.get(one.document_id)) for one in citations))


def passage_citation(passage: Passage) -> Citation:
    """What a passage claims."""
    return Citation(passage.document_id, passage.span, passage.text)


def edge_citation(edge: EdgeFacts, document_ids: Mapping[str, str]) -> Citation:
    """What an edge claims; `document_ids` lead from a document's id in the corpus to its `_id`."""
    return Citation(document_ids.get(edge.document, ""), edge.span, edge.snippet)


def document_ids(passages: Sequence[Passage]) -> dict[str, str]:
    """From ids in the corpus to `_id`s, for the documents these passages come from; ambiguous ones are left out."""
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    for passage in passages:
        if found.setdefault(passage.document, passage.document_id) != passage.document_id:
            ambiguous.add(passage.document)
    return {origin: identifier for origin, identifier in found.items() if origin not in ambiguous}


def _verdict(citation: Citation, text: str | None) -> Verdict:
    if text is None or citation.span is None:
        return Verdict.UNVERIFIED
    start, end = citation.span
    stands_there = 0 <= start <= end <= len(text) and text[start:end] == citation.text
    is_the_document = citation.sha256 is None or sha256_text(text) == citation.sha256
    return Verdict.VERIFIED if stands_there and is_the_document else Verdict.MISMATCH
