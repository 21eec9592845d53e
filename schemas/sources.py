"""Every source kind, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, Field

from schemas.record import Keyed, Record

# Every kind of corpus, declared once: its name, what the command line says of it, and which options
# it reads. The command line, the flow, the record of known corpora and ingestion read this list. A
# new kind is one entry here and one file `hades/ingest/sources/<kind>.py` with a function
# `open_source`. This module loads no Arrow: `hades
# --help` reads it.


class SourceKind(StrEnum):
    """Where material comes from; one file in `hades/ingest/sources/` each."""

    WORKSPACE = "workspace"
    DOCUMENTS = "documents"
    ARXIV = "arxiv"
    PASSAGES = "passages"


FILE_FIELDS = ("path", "citations", "code_links", "triples")  # of a corpus: kept as absolute paths


class CorpusFields(BaseModel):
    """Where a corpus is and what lies beside it; each kind reads the options that its declaration
    names.
    """

    source: SourceKind = Field(description="what kind of corpus it is")
    path: str = Field(description="folder or file, as the worker sees it")
    citations: str | None = Field(
        None, description="who cites whom: rows of src, dst and n_mentions or context"
    )
    code_links: str | None = Field(
        None, description="which repository belongs to which paper: rows of id and repo"
    )
    triples: str | None = Field(
        None, description="ready-made triples: rows of id, entities and triples"
    )
    history: bool = Field(True, description="read the commits of a git repository")
    domain: str | None = Field(None, description="a domain of every document of the corpus")
    exclude: tuple[str, ...] = Field(
        (), description="patterns of paths to leave out, as in .gitignore"
    )


@dataclass(frozen=True)
class SourceDeclaration:
    """A kind of corpus as people meet it. `options` are fields of `CorpusFields`; all kinds have a
    domain.
    """

    kind: SourceKind
    about: str
    argument: str
    argument_help: str
    options: tuple[str, ...] = ()


SOURCES = (
    SourceDeclaration(
        SourceKind.WORKSPACE,
        "Ingest code: files, functions, docstrings, comments and pages. Deleted files are removed.",
        "path",
        "Folder of code; .gitignore is respected.",
        ("history", "exclude"),
    ),
    SourceDeclaration(
        SourceKind.DOCUMENTS,
        "Ingest documents. Files that are gone from the folder are removed.",
        "path",
        "Folder or file: Markdown, text, HTML, PDF, Word, slides, sheets, notebooks, mail, "
        "subtitles, EPUB.",
    ),
    SourceDeclaration(
        SourceKind.ARXIV,
        "Ingest papers by their metadata, with citations and links to code.",
        "papers",
        "PAPERS.jsonl[.gz], the public snapshot's form or ours.",
        ("citations", "code_links"),
    ),
    SourceDeclaration(
        SourceKind.PASSAGES,
        "Ingest passages, with ready-made triples where there are any.",
        "corpus",
        "CORPUS.jsonl[.gz]: rows of id, title and text.",
        ("triples",),
    ),
)


class SourceSpec(CorpusFields, Record):
    """Where a corpus is and what lies beside it."""


class KnownSource(CorpusFields, Keyed):
    """A corpus that was ingested once and that nightly builds read again."""
