"""What is said of the published graph: kinds of nodes, adjacency, hits, and facts of nodes, edges
and passages.

This module needs numpy only: a process that asks a question must not load more than that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Codes = NDArray[np.uint8]
Weights = NDArray[np.float32]
Flags = NDArray[np.bool_]
ALWAYS = np.iinfo(np.int64).min  # a validity that has no beginning
FOREVER = np.iinfo(np.int64).max  # and one that has no end


class Kind(StrEnum):
    """What a node is; its collection."""

    ENTITY = "entities"
    CHUNK = "doc_chunks"
    CLUSTER = "clusters"
    FUNC = "funcs"
    FILE = "files"


KINDS: tuple[Kind, ...] = tuple(Kind)
CHUNK = KINDS.index(Kind.CHUNK)  # the code of a chunk, as `kinds` of a view gives it
EDGES: tuple[str, ...] = (
    "relations",
    "mentions",
    "cluster_edges",
    "references",
    "contains",
    "imports",
    "chunk_code_edges",
)


# Endings of files by the names that people use for kinds of them; another name is an ending itself.
_ENDINGS = {
    "html": "html?",
    "javascript": "[cm]?jsx?",
    "markdown": "md|markdown",
    "notebook": "ipynb",
    "python": "pyi?",
    "sheet": "xlsx?|csv|tsv",
    "slides": "pptx?",
    "text": "txt",
    "typescript": "tsx?",
    "word": "docx?",
    "yaml": "ya?ml",
}


@dataclass(frozen=True)
class DocumentFilter:
    """What a question is limited to. Every field that is given must fit; of several values in one
    field, any may.

    `paths` are patterns with * and ?, `types` kinds or endings of files, `sources` folders, corpora
    or kinds of sources. A document without a date is in no range of dates. `without` are ids of
    documents, passages or remembered states that are left out, for a turn that is replayed without
    them. `within` is what the caller may see at all: it must fit as well, no topic does, since
    topics speak of everything, and a path does where nothing else tells of it. `readers` are the
    names that whoever asks reads by: a document fits that is public or names one of them. `as_of`
    is the moment that a question stands at: what is dated later does not fit, what has no date
    does.
    """

    domain: str | None = None
    paths: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    without: tuple[str, ...] = ()
    within: DocumentFilter | None = None
    readers: tuple[str, ...] = ()
    as_of: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether everything of its time fits but what is left out."""
        return self == DocumentFilter(without=self.without, as_of=self.as_of)

    @property
    def reads_documents(self) -> bool:
        """Whether more than a domain is given."""
        return self != DocumentFilter(self.domain)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Regular expressions that the path of a document must match, each of them."""
        paths = "|".join(_path_pattern(path) for path in self.paths)
        endings = "|".join(
            _ENDINGS.get(
                file_type.casefold(),
                re.escape(file_type.casefold().lstrip(".")),
            )
            for file_type in self.types
        )
        return (
            *([f"^(?:{paths})$"] if paths else []),
            *([rf"(?i)\.(?:{endings})$"] if endings else []),
        )


def _path_pattern(path: str) -> str:
    """`docs/*.md` -> `docs/.*\\.md`; a folder stands for all below it."""
    whole = f"{path}*" if path.endswith("/") else path
    return re.escape(whole).replace(r"\*", ".*").replace(r"\?", ".")


@dataclass(frozen=True)
class ViewInfo:
    """What is being read. `degraded_from` says why an older snapshot serves; None when the newest
    does.

    `parts` are the generations of what was built together: hierarchy, weights, bridges, ranker;
    empty where none was.
    """

    snapshot: str
    nodes: dict[str, int]
    edges: dict[str, int]
    models: dict[str, tuple[str, ...]]
    degraded_from: str | None = None
    parts: dict[str, str] = field(default_factory=dict)
    vectors: float = (
        1.0  # share of the passages that have one: less while a first build is under way
    )
    # only what lies around a question is in memory; the counts are those of the whole graph
    is_part: bool = False
    has_other_analyzer: bool = (
        False  # the server cuts texts into words otherwise than the catalogue declares
    )


@dataclass(frozen=True)
class Expansion:
    """Edges found, in arrays of one length: by asked node, then heaviest first, then by collection
    and key.

    `row` is the position of the node in the question, `type` a place in `type_names`. `work` counts
    the adjacency entries looked at; `capped` says that `max_work` ended the search.
    """

    row: Numbers
    target: Numbers
    edge: Numbers
    type: Codes
    weight: Weights
    outbound: Flags
    work: int
    capped: bool

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Csr:
    """One direction of the adjacency: the entries of node `n` stand at `starts[n]:starts[n + 1]`,
    heaviest first.

    `starts` int64; `target` and `edge` int32; `type` uint8; `weight` float32. Read-only.
    """

    starts: NDArray[np.int64]
    target: NDArray[np.int32]
    edge: NDArray[np.int32]
    type: NDArray[np.uint8]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class Validity:
    """Both half-open intervals of each edge, by handle, in microseconds since 1970; absent:
    `ALWAYS`, `FOREVER`.
    """

    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]
    recorded_at: NDArray[np.int64]
    retracted_at: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FetchedRows:
    """Which rows of an adjacency are whole, of a graph that is fetched in parts, and which others
    were read.

    `sums` are the weights of all edges of each node by type: what a walk must know of a node before
    it reads its row.
    """

    is_whole: Flags
    sums: NDArray[np.float64]
    are_wanted: Flags

    def want(self, nodes: Numbers) -> None:
        """Note that the rows of these nodes were read."""
        self.are_wanted[nodes] |= ~self.is_whole[nodes]


@dataclass(frozen=True)
class Adjacency:
    """All edges as arrays, for walks; `validity` is None when no edge has an interval.

    `sums` holds what walks have added up over whole rows, for those that come later. `fetched`:
    some rows are missing. `hidden` says by handle which edges no walk of a question may use.
    """

    out: Csr
    into: Csr
    validity: Validity | None
    fetched: FetchedRows | None = None
    sums: dict[tuple[object, ...], NDArray[np.float64]] = field(default_factory=dict, compare=False)
    hidden: Flags | None = None


@dataclass(frozen=True)
class Hits:
    """Nodes with a score, best first, then by key. `is_approximate`: a better one may have been
    overlooked.
    """

    numbers: Numbers
    scores: Weights
    is_approximate: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    def by_number(self) -> dict[int, float]:
        """The score of each node, best first."""
        return dict(zip(self.numbers.tolist(), self.scores.tolist(), strict=True))


@dataclass(frozen=True)
class NameMatches:
    """Entities named in a text and where: `text[start:end]` spells a name of the entity. By start,
    then key.
    """

    numbers: Numbers
    starts: Numbers
    ends: Numbers

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class NodeFacts:
    """A node as citations and prompts need it. `document` is the id that came in with the
    corpus.
    """

    id: str
    kind: Kind
    name: str
    type: str
    summary: str = ""
    document: str = ""
    span: tuple[int, int] | None = None
    deg_out: int = 0
    domain: str | None = None
    frequency: int = 0


@dataclass(frozen=True)
class EdgeFacts:
    """An edge as citations and prompts need it; `snippet` is the text it was read from.

    `document` is the id that came in with the corpus, `document_id` the document's `_id`; both
    empty without a source.
    """

    id: str
    source: str
    target: str
    type: str
    weight: float | None = None
    document: str = ""
    span: tuple[int, int] | None = None
    snippet: str = ""
    label: str = ""
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    recorded_at: datetime | None = None
    retracted_at: datetime | None = None
    document_id: str = ""


@dataclass(frozen=True)
class Passage:
    """A piece of a document: `sources([document_id])[0].text[span[0]:span[1]] == text`."""

    id: str
    text: str
    document: str
    document_id: str
    span: tuple[int, int]
    title: str = ""
    headings: tuple[str, ...] = ()
    kind: str = ""
    token_count: int = 0
    timestamp: datetime | None = None
    facts: tuple[
        str, ...
    ] = ()  # "subject relation object" of each triple that was given with a passage
    path: str = ""  # of the file inside its workspace; empty where there is none
    symbol: str = ""  # qualified name inside the file; empty at module level
    lines: tuple[int, int] | None = None  # first and last line in the file, from 1
    token_signs: str = ""  # of the embedder, for late interaction; empty where there are none


@dataclass(frozen=True)
class SourceFacts:
    """A whole document, to check citations against: `sha256_text(text) == sha256` unless someone
    changed one of them.

    `origin` is the id that came in with the corpus. `sha256` is as ingestion stored it; empty where
    none is kept.
    """

    id: str
    origin: str
    title: str
    text: str
    sha256: str


@dataclass(frozen=True, eq=False)
class RankerState:
    """The learned ranker as it lies in a snapshot: its signature (JSON bytes), its numbers, a state
    for each node.
    """

    signature: NDArray[np.uint8]
    numbers: NDArray[np.float32]
    states: NDArray[np.float16]


@dataclass(frozen=True)
class BridgePath:
    """A path between two topics that was computed ahead: n nodes, n - 1 edges, as numbers and
    handles of the view.

    `outbound[i]` says whether edge i points from node i to i + 1; the topics are nodes too.
    `weight` is the geometric mean of its edges discounted by length, in [0, 1]; `cost` the sum of
    their -ln(weight * boost).
    """

    from_cluster: int
    to_cluster: int
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    weight: float
    cost: float
    pinned: bool = False

    def reversed(self) -> BridgePath:
        """The same path walked from its other end."""
        turned = tuple(not is_outbound for is_outbound in reversed(self.outbound))
        ends = (self.to_cluster, self.from_cluster)
        walk = (self.nodes[::-1], self.edges[::-1])
        return BridgePath(
            *ends,
            *walk,
            turned,
            self.weight,
            self.cost,
            self.pinned,
        )
