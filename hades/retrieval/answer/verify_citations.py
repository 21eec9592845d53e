"""Every citation checked against the document it names: same characters, same hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hades.ports.graph import EdgeFacts, Passage, SourceFacts
from hades.ports.view import GraphView
from schemas.ids import sha256_text


class Verdict(StrEnum):
    """What a look into the document said."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"  # no document, place or hash to look at, or the reads of the turn were used up
    MISMATCH = "mismatch"  # the document says something else there, or is not what was hashed: drop what cites it


@dataclass(frozen=True)
class Citation:
    """Words and where they are said to stand: `_id` of the document and [start, end) in characters of it."""

    document_id: str
    span: tuple[int, int] | None
    text: str


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
    """Compare each citation with its document, and the document with its hash; each is read once, by first mention.

    Through a metered view the reads are the turn's: documents it denies leave their citations unverified.
    """
    asked = list(dict.fromkeys(one.document_id for one in citations if one.document_id and one.span is not None))
    found = view.sources(asked) if asked else []  # shorter than asked where the budget ends it
    sources = {source.id: source for source in found if source is not None}
    whole = {key: sha256_text(source.text) == source.sha256 for key, source in sources.items()}
    return Verification(
        tuple(_verdict(one, sources.get(one.document_id), whole.get(one.document_id, False)) for one in citations)
    )


def passage_citation(passage: Passage) -> Citation:
    """What a passage claims."""
    return Citation(passage.document_id, passage.span, passage.text)


def edge_citation(edge: EdgeFacts) -> Citation:
    """What an edge claims: the words it was read from."""
    return Citation(edge.document_id, edge.span, edge.snippet)


def _verdict(citation: Citation, source: SourceFacts | None, is_whole: bool) -> Verdict:
    if source is None or citation.span is None:
        return Verdict.UNVERIFIED
    start, end = citation.span
    stands_there = 0 <= start <= end <= len(source.text) and source.text[start:end] == citation.text
    if not stands_there or (source.sha256 and not is_whole):
        return Verdict.MISMATCH
    return Verdict.VERIFIED if is_whole else Verdict.UNVERIFIED
