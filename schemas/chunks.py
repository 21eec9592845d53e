"""Pieces of documents small enough to embed, each an exact span of its document."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from schemas.record import Json, Keyed, Vector


class ChunkKind(StrEnum):
    """What a chunk was cut from."""

    PROSE = "prose"
    PASSAGE = "passage"
    ABSTRACT = "abstract"
    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"
    TEXT = "text"
    COMMIT = "commit"


CHANGED_FILES = "\n\nChanged files: "  # in the text of a commit, between its message and the names of its files
# Units of code and of configuration: whole lines, cut where the language says, not at sentence ends.
CODE_KINDS = frozenset({ChunkKind.FUNCTION, ChunkKind.METHOD, ChunkKind.CLASS, ChunkKind.MODULE, ChunkKind.TEXT})


class Chunk(Keyed):
    """A chunk: `document.text[span[0]:span[1]] == text`, always."""

    document: str = Field(description="`_id` of the document")
    text: str
    span: tuple[int, ...] = Field(description="[start, end) in characters of the document")
    chunk_index: int = Field(ge=0, description="position in the document")
    kind: ChunkKind = ChunkKind.PROSE
    headings: tuple[str, ...] = ()
    title: str = ""
    token_count: int = Field(ge=0)
    file_path: str = Field("", description="path of the file inside its workspace; empty where there is none")
    symbol: str = Field("", description="qualified name inside the file, as `Session.get`; empty at module level")
    signature: str = Field("", description="header of the function or class on one line")
    words: str = Field("", description="parts of identifiers and the repeated header, for search by words")
    start_line: int = Field(0, ge=0, description="first line in the file, from 1; 0 where lines mean nothing")
    end_line: int = Field(0, ge=0, description="last line in the file, inclusive")
    timestamp: datetime | None = Field(None, description="event date of the document")
    sha256: str = Field(description="of the text; the embedding belongs to this hash")
    embedding: Vector | None = None
    embedding_model: str | None = None
    metadata: Json = Field(default_factory=dict)
