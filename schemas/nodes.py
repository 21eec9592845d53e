"""Documents, chunks, entities, files, functions and their types."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from schemas.record import Json, Keyed, Vector
from schemas.sources import SourceKind

MAX_LEARNED = 4.0  # no setting lets judged answers move a logit further than this


class EntityType(StrEnum):
    """The five types a traversal meets (requirement C9)."""

    PAPER = "paper"
    CONCEPT = "concept"
    METHOD = "method"
    PERSON = "person"
    CODE_SYMBOL = "code_symbol"


class RelationType(StrEnum):
    """Types of entity-to-entity relations: six of specification 002, two of specification 004."""

    CITES = "cites"
    IMPLEMENTS = "implements"
    EXTENDS = "extends"
    REFERS_TO = "refers_to"
    COREF = "coref"
    DERIVES_FROM = "derives_from"
    SIMILAR_TO = "similar_to"
    RELATED_TO = "related_to"


class CodeEdgeType(StrEnum):
    """How code is joined to code and to text."""

    CONTAINS = "contains"
    IMPORTS = "imports"
    CALLS = "calls"
    DESCRIBES = "describes"
    INHERITS = "inherits"
    OVERRIDES = "overrides"
    TESTS = "tests"
    DOCUMENTS = "documents"
    TOUCHED = "touched"
    CHANGES_WITH = "changes_with"


class NameType(StrEnum):
    """The finer kind of a name, as found in text (requirement E6, and works, code and options)."""

    PERSON = "PERSON"
    ORG = "ORG"
    GPE = "GPE"
    PRODUCT = "PRODUCT"
    WORK = "WORK"
    EVENT = "EVENT"
    CODE = "CODE"
    OPTION = "OPTION"
    CONCEPT = "CONCEPT"


class FuncKind(StrEnum):
    """What a code symbol is."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"


class Document(Keyed):
    """A text that spans point into. Not traversed."""

    origin: str = Field(
        description="the id that came in with the corpus, or the path; what citations show"
    )
    source: SourceKind
    uri: str = ""
    title: str = ""
    mime: str = "text/plain"
    text: str = Field(description="exact text; every span counts characters of it")
    sha256: str = Field(description="of the text")
    domains: tuple[str, ...] = Field(
        (),
        description="what questions can be limited to: stated domain, categories, language, "
        "folder, corpus, source",
    )
    created: datetime | None = Field(
        None,
        description="event date of the source, never the time of ingestion",
    )
    facts: Json = Field(
        default_factory=dict,
        description="what the source states beside the text: names, triples, links, imports, calls",
    )
    metadata: Json = Field(default_factory=dict)


class Paper(Keyed):
    """Raw arXiv metadata. Kept outside the graph: the paper that is traversed is an entity."""

    id: str = Field(description="arXiv id")
    title: str
    abstract: str
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    date: datetime | None = None
    document: str = Field(description="`_id` of the text that spans point into")
    metadata: Json = Field(default_factory=dict)


class Entity(Keyed):
    """A thing that relations join."""

    name: str
    name_lower: str = Field(description="for look-up; not unique, homonyms are kept apart")
    type: EntityType
    layer: int = Field(
        0,
        description="always 0; kept for readers of the specification's field",
    )
    cluster_id: str | None = Field(None, description="key of the L1 topic")
    prev_cluster_id: str | None = Field(
        None,
        description="the topic before the last build moved it",
    )
    embedding: Vector | None = None
    embedding_model: str | None = Field(None, description="tag of the model that made the vector")
    vector_of: str | None = Field(
        None,
        description="what the vector is of: its `name`, or the `document` it titles",
    )
    summary: str = Field(
        "",
        description="a whole sentence of the corpus that says what it is",
    )
    deg_out: int = Field(
        0,
        ge=0,
        description="out-degree, for hub demotion",
    )
    domain: str | None = Field(
        None,
        description="the first domain of the documents that mention it most",
    )
    domains: tuple[str, ...] = Field(
        (),
        description="domains of all documents that mention it",
    )
    canonical_name: str = ""
    aliases: tuple[str, ...] = ()
    frequency: int = Field(
        0,
        ge=0,
        description="mentions over the corpus",
    )
    entity_type: NameType | None = None
    metadata: Json = Field(default_factory=dict)


class File(Keyed):
    """A file of a workspace."""

    path: str = Field(description="relative to the workspace; files are deduplicated by it")
    language: str = ""
    document: str = Field(description="`_id` of its text")
    sha256: str
    size: int = Field(0, ge=0)
    module: str = ""


class Func(Keyed):
    """A function, method or class of a file."""

    name: str
    qualified_name: str
    kind: FuncKind
    path: str
    language: str = ""
    document: str
    span: tuple[int, ...] = Field(description="[start, end) in characters of the document")
    signature: str = ""
    docstring: str = ""
    embedding: Vector | None = None
    embedding_model: str | None = None


class ChunkKind(StrEnum):
    """What a chunk was cut from."""

    PROSE = "prose"
    # prose that begins inside a block of code, which was too long for one chunk
    LISTING = "listing"
    PASSAGE = "passage"
    ABSTRACT = "abstract"
    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"
    TEXT = "text"
    COMMIT = "commit"


# in the text of a commit, between its message and the names of its files
CHANGED_FILES = "\n\nChanged files: "
# Units of code and of configuration: whole lines, cut where the language says, not at sentence
# ends.
CODE_KINDS = frozenset(
    {ChunkKind.FUNCTION, ChunkKind.METHOD, ChunkKind.CLASS, ChunkKind.MODULE, ChunkKind.TEXT}
)


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
    file_path: str = Field(
        "",
        description="path of the file inside its workspace; empty where there is none",
    )
    symbol: str = Field(
        "",
        description="qualified name inside the file, as `Session.get`; empty at module level",
    )
    signature: str = Field(
        "",
        description="header of the function or class on one line",
    )
    words: str = Field(
        "",
        description="parts of identifiers and the repeated header, for search by words",
    )
    start_line: int = Field(
        0,
        ge=0,
        description="first line in the file, from 1; 0 where lines mean nothing",
    )
    end_line: int = Field(
        0,
        ge=0,
        description="last line in the file, inclusive",
    )
    timestamp: datetime | None = Field(None, description="event date of the document")
    sha256: str = Field(description="of the text; the embedding belongs to this hash")
    embedding: Vector | None = None
    token_signs: str | None = Field(
        None,
        description="signs of the mean states of four tokens each: bits in base64",
    )
    embedding_model: str | None = None
    metadata: Json = Field(default_factory=dict)
