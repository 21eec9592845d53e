"""What the graph is about: documents it was read from, entities it speaks of, files and functions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from schemas.graph_types import EntityType
from schemas.record import Json, Keyed, Unit, Vector
from schemas.source_kinds import SourceKind


class NameType(StrEnum):
    """The finer kind of a name, as found in text (requirement E6)."""

    PERSON = "PERSON"
    ORG = "ORG"
    GPE = "GPE"
    PRODUCT = "PRODUCT"
    EVENT = "EVENT"
    CONCEPT = "CONCEPT"


class FuncKind(StrEnum):
    """What a code symbol is."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"


class Document(Keyed):
    """A text that spans point into. Not traversed."""

    origin: str = Field(description="the id that came in with the corpus, or the path; what citations show")
    source: SourceKind
    uri: str = ""
    title: str = ""
    mime: str = "text/plain"
    text: str = Field(description="exact text; every span counts characters of it")
    sha256: str = Field(description="of the text")
    domains: tuple[str, ...] = Field(
        (), description="what questions can be limited to: stated domain, categories, language, folder, corpus, source"
    )
    created: datetime | None = Field(None, description="event date of the source, never the time of ingestion")
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
    layer: int = Field(0, description="always 0; kept for readers of the specification's field")
    cluster_id: str | None = Field(None, description="key of the L1 topic")
    prev_cluster_id: str | None = Field(None, description="the topic before the last build moved it")
    embedding: Vector | None = None
    embedding_model: str | None = Field(None, description="tag of the model that made the vector")
    vector_of: str | None = Field(None, description="what the vector is of: its `name`, or the `document` it titles")
    summary: str = Field("", description="a whole sentence of the corpus that says what it is")
    deg_out: int = Field(0, ge=0, description="out-degree, for hub demotion")
    domain: str | None = Field(None, description="the first domain of the documents that mention it most")
    domains: tuple[str, ...] = Field((), description="domains of all documents that mention it")
    canonical_name: str = ""
    aliases: tuple[str, ...] = ()
    frequency: int = Field(0, ge=0, description="mentions over the corpus")
    entity_type: NameType | None = None
    confidence: Unit | None = None
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
