"""A corpus that is read again every night."""

from __future__ import annotations

from pydantic import Field

from schemas.nodes import SourceKind
from schemas.record import Keyed, Record


class SourceSpec(Record):
    """Where a corpus is and what lies beside it."""

    source: SourceKind = Field(description="what kind of corpus it is")
    path: str = Field(description="folder or file, as the worker sees it")
    citations: str | None = Field(None, description="arxiv only: who cites whom")
    code_links: str | None = Field(None, description="arxiv only: which repository belongs to which paper")
    triples: str | None = Field(None, description="passages only: ready-made triples")
    history: bool = Field(True, description="workspace only: read the commits of a git repository")
    domain: str | None = Field(None, description="a domain of every document of the corpus")
    exclude: tuple[str, ...] = Field((), description="workspace only: patterns of paths to leave out, as in .gitignore")


class KnownSource(Keyed):
    """A corpus that was ingested once and that nightly builds read again."""

    source: SourceKind
    path: str
    citations: str | None = None
    code_links: str | None = None
    triples: str | None = None
    history: bool = True
    domain: str | None = None
    exclude: tuple[str, ...] = ()
