"""Every source kind, declared once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, Field, field_validator

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
        None,
        description="who cites whom: rows of src, dst and n_mentions or context",
    )
    code_links: str | None = Field(
        None,
        description="which repository belongs to which paper: rows of id and repo",
    )
    triples: str | None = Field(
        None,
        description="ready-made triples: rows of id, entities and triples",
    )
    history: bool = Field(True, description="read the commits of a git repository")
    domain: str | None = Field(
        None,
        description="a domain of every document of the corpus",
    )
    exclude: tuple[str, ...] = Field(
        (),
        description="patterns of paths to leave out, as in .gitignore",
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


# A password where a placeholder such as ${WIKI_TOKEN} is expected: of the user, or in the query.
_WRITTEN_CREDENTIAL = re.compile(
    r"//[^/@\s]*:(?!\$\{)[^/@\s]+@"
    r"|[?&]\w*(?:password|passwd|secret|token|api_?key|signature)\w*=(?!\$\{)[^&\s]",
    re.IGNORECASE,
)


class RemoteSource(Record):
    """A place elsewhere whose documents are copied, kept in step, and read as a corpus."""

    url: str = Field(description="where the documents are; credentials as ${VARIABLE}")
    domain: str | None = Field(
        None,
        description="a domain of every document of the source",
    )
    every_hours: float = Field(
        24.0,
        gt=0.0,
        description="how often it is synced; answers name a source that is overdue",
    )
    min_documents: int = Field(
        1,
        ge=0,
        description="a sync that lists fewer documents is stopped",
    )
    max_gone: float = Field(
        0.2,
        ge=0.0,
        le=1.0,
        description="a sync that loses a larger share at once is stopped",
    )
    include: tuple[str, ...] = Field(
        (),
        description="files, web: patterns of paths to read, as in .gitignore; empty: all",
    )
    exclude: tuple[str, ...] = Field(
        (),
        description="files, web: patterns of paths to leave out, as in .gitignore",
    )
    delay_seconds: float = Field(
        1.0,
        ge=0.0,
        description="web: least time between two requests",
    )
    table: str = Field("", description="sql: the table whose rows are documents")
    query: str = Field(
        "",
        description="sql: a query whose rows are documents, instead of a table",
    )
    key: str = Field(
        "",
        description="sql, dlt: the column that identifies a row",
    )
    cursor: str = Field(
        "",
        description="sql, dlt: the column that changes with a row, such as updated_at",
    )
    title: str = Field("", description="sql, dlt: the column that names a row")
    required: tuple[str, ...] = Field(
        (),
        description="sql, dlt: columns without which a sync is stopped",
    )
    rights: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="who may read files by patterns of paths, as in .gitignore; the last that fits "
        "counts",
    )
    readers: tuple[str, ...] = Field(
        (),
        description="sql, dlt: the columns that name who may read a row",
    )

    @field_validator("url")
    @classmethod
    def _holds_no_credential(cls, url: str) -> str:
        if _WRITTEN_CREDENTIAL.search(url):
            raise ValueError(
                "an address may not hold a password or token; write a placeholder such as "
                "${WIKI_TOKEN} and set that variable in the environment"
            )

        return url
