"""Every collection, edge, index and view, once: both stores provision themselves from here."""

from __future__ import annotations

from collections.abc import Collection as Held
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from schemas.builds import (
    EntityEdit,
    Extraction,
    ManifestEntry,
    Merge,
    QuarantineRow,
    StageRecord,
    StandingQuestion,
)
from schemas.edges import ClusterEdge, CodeEdge, Mention, Reference, Relation
from schemas.memory import LatestState, MemoryAudit, MemoryEdge, MemoryState, MemoryTrace
from schemas.nodes import Chunk, Document, Entity, File, Func, Paper
from schemas.record import Column, Record, arrow_schema, columns_of
from schemas.sources import KnownSource
from schemas.telemetry import QueryLog, WeightConfig
from schemas.topics import Bridge, Cluster, MembershipChange

ANALYZER = "hades_text_en"
NAME_ANALYZER = "hades_name"


@dataclass(frozen=True)
class Index:
    """A look-up by value. `broad` marks one whose values each select a large share of the rows.

    ArangoDB makes every one of them; the embedded store answers broad ones by a columnar scan,
    which is faster there.
    """

    fields: tuple[str, ...]
    sparse: bool = False
    broad: bool = False


@dataclass(frozen=True)
class EdgeShape:
    """What an edge collection joins, and which of its columns mean type, weight and cost."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    type_field: str = "type"
    weight_field: str = "weight"
    cost_field: str | None = None


@dataclass(frozen=True)
class Collection:
    """A collection: its record, its indexes, what full-text search reads, and its shape if it holds
    edges.

    `name_fields` are found whole, ignoring case and accents; over ArangoDB in the same view as the
    text. `described_in` are indexed in that view for queries of users. Retrieval leaves them out:
    the sentences that they quote are chunks.
    """

    name: str
    record: type[Record]
    about: str
    indexes: tuple[Index, ...] = ()
    text_fields: tuple[str, ...] = ()
    vector_field: str | None = None
    edge: EdgeShape | None = None
    name_fields: tuple[str, ...] = ()
    described_in: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows."""
        return arrow_schema(self.record)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns, in order."""
        return columns_of(self.record)

    @property
    def view(self) -> str | None:
        """Name of its ArangoSearch view, when it has text to search."""
        return f"{self.name}_view" if self.text_fields else None


@dataclass(frozen=True)
class Graph:
    """A named graph over edge collections."""

    name: str
    edges: tuple[str, ...]


COLLECTIONS: tuple[Collection, ...] = (
    Collection(
        "documents",
        Document,
        "texts that spans point into; not traversed",
        (Index(("origin",)),),
    ),
    Collection(
        "papers_raw",
        Paper,
        "raw arXiv metadata; not traversed",
        (Index(("id",)), Index(("document",))),
        text_fields=("title",),
    ),
    Collection(
        "entities",
        Entity,
        "papers, concepts, methods, people and code symbols",
        (
            Index(("type",), broad=True),
            Index(("layer",), broad=True),
            Index(("cluster_id",)),
            Index(("name_lower",), sparse=True),
            Index(("deg_out",), broad=True),
        ),
        text_fields=("name",),
        described_in=("summary",),
        vector_field="embedding",
        name_fields=("name", "canonical_name", "aliases"),
    ),
    Collection(
        "files",
        File,
        "files of a workspace",
        (Index(("path",)), Index(("document",))),
    ),
    Collection(
        "funcs",
        Func,
        "functions, methods and classes",
        (Index(("name",)), Index(("document",))),
        text_fields=("qualified_name", "docstring"),
        vector_field="embedding",
    ),
    Collection(
        "doc_chunks",
        Chunk,
        "pieces of documents with their exact spans",
        (Index(("document",)), Index(("sha256",)), Index(("embedding_model",), broad=True)),
        text_fields=("title", "symbol", "words", "text"),
        vector_field="embedding",
    ),
    Collection(
        "clusters",
        Cluster,
        "L1 topics and L2 super-topics",
        (Index(("level",), broad=True), Index(("centroid_version",), broad=True)),
        text_fields=("summary",),
        vector_field="centroid",
    ),
    Collection(
        "bridge_cache",
        Bridge,
        "precomputed hot paths between topics",
        (
            Index(("from_cluster", "to_cluster")),
            Index(("to_cluster",)),
            Index(("generation",), broad=True),
        ),
    ),
    Collection(
        "weight_config",
        WeightConfig,
        "priors, time constants and boosts per relation type",
    ),
    Collection(
        "query_logs",
        QueryLog,
        "what each turn did",
        (Index(("at",)),),
    ),
    Collection(
        "standing_questions",
        StandingQuestion,
        "questions that each build asks before it publishes",
    ),
    Collection(
        "cluster_membership_journal",
        MembershipChange,
        "which entity moved to which topic in which build",
        (Index(("entity",)), Index(("build",))),
    ),
    Collection(
        "memory_states",
        MemoryState,
        "versions of what is known about a topic",
        (
            Index(("topic", "version"), broad=True),
            Index(("topic", "valid_from")),
            Index(("timestamp",), broad=True),
        ),
        text_fields=("topic", "content"),
        vector_field="embedding",
    ),
    Collection(
        "memory_traces",
        MemoryTrace,
        "histories of topics",
        (Index(("topic",)),),
    ),
    Collection(
        "memory_latest",
        LatestState,
        "topic to newest state",
        (Index(("topic",)),),
    ),
    Collection(
        "memory_audit",
        MemoryAudit,
        "who changed memory, when and why",
        (Index(("subject",)),),
    ),
    Collection(
        "ingest_manifest",
        ManifestEntry,
        "what has been ingested, by content hash",
        (Index(("document",)), Index(("source",), broad=True)),
    ),
    Collection(
        "quarantine",
        QuarantineRow,
        "input set aside, with the reason",
        (Index(("source",), broad=True),),
    ),
    Collection(
        "extractions",
        Extraction,
        "what a language model read in a text, by its hash",
        (Index(("sha256",)),),
    ),
    Collection(
        "merge_log",
        Merge,
        "names folded into others, with the rule",
        (Index(("canonical",)),),
    ),
    Collection(
        "entity_edits",
        EntityEdit,
        "corrections of entities by hand, with who agreed",
        (Index(("entity",)),),
    ),
    Collection(
        "sources",
        KnownSource,
        "corpora that nightly builds read again",
    ),
    Collection(
        "build_stages",
        StageRecord,
        "which stage of the build last completed, and from what",
    ),
    Collection(
        "relations",
        Relation,
        "entity to entity",
        (Index(("type",), broad=True), Index(("layer_bridge",), broad=True)),
        edge=EdgeShape(
            ("entities",),
            ("entities",),
            cost_field="cost",
        ),
    ),
    Collection(
        "cluster_edges",
        ClusterEdge,
        "member to topic, topic to super-topic; upward only",
        edge=EdgeShape(("entities", "clusters"), ("clusters",)),
    ),
    Collection(
        "mentions",
        Mention,
        "chunk names entity",
        edge=EdgeShape(("doc_chunks",), ("entities",)),
    ),
    Collection(
        "references",
        Reference,
        "chunk to chunk",
        edge=EdgeShape(("doc_chunks",), ("doc_chunks",)),
    ),
    Collection(
        "contains",
        CodeEdge,
        "file to its symbols, class to its members",
        edge=EdgeShape(("files", "funcs"), ("funcs",)),
    ),
    Collection(
        "imports",
        CodeEdge,
        "code to code: imports, calls, inherits, overrides, tests, changes with",
        edge=EdgeShape(("files", "funcs"), ("files", "funcs")),
    ),
    Collection(
        "chunk_code_edges",
        CodeEdge,
        "chunk to the code it is a unit of, documents or, as a commit, touched",
        edge=EdgeShape(("doc_chunks",), ("funcs", "files")),
    ),
    Collection(
        "memory_edges",
        MemoryEdge,
        "state to state, with both time axes",
        (
            Index(("relationship_type",), broad=True),
            Index(("valid_from",), broad=True),
            Index(("superseded_by",), sparse=True),
        ),
        edge=EdgeShape(
            ("memory_states",),
            ("memory_states",),
            type_field="relationship_type",
            weight_field="strength",
        ),
    ),
)
# HADES_KG is the graph of specification 002, Appendix A; the other two keep text and memory apart
# from it.
GRAPHS: tuple[Graph, ...] = (
    Graph("HADES_KG", ("relations", "cluster_edges")),
    Graph(
        "HADES_SOURCES",
        ("mentions", "references", "contains", "imports", "chunk_code_edges"),
    ),
    Graph("HADES_MEMORY", ("memory_edges",)),
)
NAMES = tuple(collection.name for collection in COLLECTIONS)
_BY_NAME = {collection.name: collection for collection in COLLECTIONS}


def collection_named(name: str) -> Collection | None:
    """The collection of that name, or None when there is none."""
    return _BY_NAME.get(name)


def declared(name: str) -> Collection:
    """The collection of a name that is known to be one."""
    return _BY_NAME[name]


def columns_schema(collection: str, columns: Iterable[str]) -> pa.Schema:
    """Some columns of a collection, in their types."""
    return pa.schema([_BY_NAME[collection].schema.field(name) for name in columns])


def as_table(collection: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows that all name the same columns, in the collection's types."""
    return pa.Table.from_pylist(
        list(rows),
        schema=columns_schema(collection, rows[0]),
    )


def edge_collections() -> tuple[Collection, ...]:
    """The collections that hold edges."""
    return tuple(collection for collection in COLLECTIONS if collection.edge)


def graph_of(edges: str) -> Graph:
    """The named graph an edge collection belongs to."""
    return next(graph for graph in GRAPHS if edges in graph.edges)


# Databases smaller than the whole: what one that is made for a single purpose holds (requirement
# C4). A database says itself what it was made for: one with nothing but the collections of a part
# is that part's.
ALL = "all"
MEMORY = "memory"
PARTS: tuple[str, ...] = (ALL, MEMORY)
_MEMORY_PREFIX = "memory_"
_FOR_EVERY_PART = ("query_logs", "build_stages")  # what was asked, and which chore last ran


def names_in(part: str) -> tuple[str, ...]:
    """The collections of a part, in catalogue order: its own, which its edges join, and what every
    part needs.
    """
    if part == ALL:
        return NAMES
    if part != MEMORY:
        raise ValueError(f"no part is called {part!r}; use one of {', '.join(PARTS)}")

    return tuple(
        name for name in NAMES if name.startswith(_MEMORY_PREFIX) or name in _FOR_EVERY_PART
    )


def collections_in(part: str) -> tuple[Collection, ...]:
    """The same with what the catalogue declares of them."""
    names = set(names_in(part))
    return tuple(collection for collection in COLLECTIONS if collection.name in names)


def graphs_in(part: str) -> tuple[Graph, ...]:
    """The named graphs whose edges all belong to a part."""
    names = set(names_in(part))
    return tuple(graph for graph in GRAPHS if names.issuperset(graph.edges))


def part_of(collections: Held[str]) -> str:
    """What a database with these collections was made for; an empty one, and one with anything
    more, for everything.
    """
    known = set(collections).intersection(NAMES)
    if known and known.issubset(names_in(MEMORY)):
        return MEMORY

    return ALL


def notes_on(part: str) -> tuple[str, ...]:
    """What a person should know who provisions a database that is made for a part."""
    if part == ALL:
        return ()
    return (f"this database is made for {part}; `hades provision --only all` makes the rest",)
