"""What a source hands over: one document with its exact text, its structure and the facts stated
beside it.

Everything the later phases need is here, so a source is one file. Spans are half-open and count
characters of `text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from hades.ingest.parsers.facts import ModuleImport, Section, Symbol
from schemas.nodes import NameType, RelationType
from schemas.sources import SourceKind


class RejectReason(StrEnum):
    """Why input was set aside; a closed list that the report counts by."""

    UNREADABLE = "unreadable"
    EMPTY = "empty"
    DUPLICATE = "duplicate"
    OVERSIZED = "oversized"
    NOT_TEXT = "not_text"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class CodeFile:
    """What a source file is, beside its text."""

    path: str  # relative to the workspace, with forward slashes
    language: str
    module: str
    size: int
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[ModuleImport, ...] = ()
    # Docstrings and comments; None: the whole text is prose.
    prose: tuple[tuple[int, int], ...] | None = None


# A name that the source states outright (an OpenIE entity, an author, a tag), not one found in the
# text.
GivenName = tuple[str, NameType | None]


@dataclass(frozen=True)
class Link:
    """A stated relation from this document's own entity to another thing named by the source.

    `target` is the origin of another document of the corpus, or with `external` a name such as
    `owner/repository`. `context` is the sentence it was read from, with its span in `text` where it
    stands there. `section` is the heading of the target that is meant, "" for all of it.
    """

    relation: RelationType
    target: str
    external: bool = False
    count: int = 1
    context: str = ""
    section: str = ""


@dataclass(frozen=True)
class Material:
    """One document as read from its source."""

    origin: str
    source: SourceKind
    text: str
    title: str = ""
    uri: str = ""
    mime: str = "text/plain"
    created: datetime | None = None
    sections: tuple[Section, ...] = ()  # empty: the whole text is one prose section
    code: CodeFile | None = None
    paper: dict[str, Any] | None = None  # what arXiv says of it, by the columns of `papers_raw`
    # Its id, author, and paths with the definitions changed in each.
    commit: dict[str, object] | None = None
    names: tuple[GivenName, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    links: tuple[Link, ...] = ()
    domain: str = ""  # stated by the source or the caller; first of the document's domains
    # Origin of the document right before this one, where the source states an order.
    follows: str = ""
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RejectedInput:
    """Input that cannot be used, and why. The run goes on."""

    source: SourceKind
    uri: str
    reason: RejectReason
    detail: str = ""
    size: int = 0


class Source(Protocol):
    """Reads one corpus. Order is stable: the same input gives the same sequence."""

    kind: SourceKind
    # what this corpus is called, the same at every reading: the name of its folder or file
    corpus: str
    # where the corpus is, so that a folder of the same name elsewhere is not taken for this one
    place: str
    # whether the corpus is a folder to mirror: documents that are gone from it are forgotten
    mirrors: bool
    # how many inputs it has, for the progress bar; known once reading began, or None
    total: int | None

    def read(self) -> Iterator[Material | RejectedInput]:
        """Everything there is, one document at a time; raises only when the corpus itself cannot be
        opened.
        """
