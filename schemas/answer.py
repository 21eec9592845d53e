"""Retrieval and WrittenAnswer, also as Arrow tables."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field

from schemas.ids import Span
from schemas.plan import Plan, Reason
from schemas.record import Json, Record

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = "its number in the prompt, by which `hades feedback --good` names it; paths come first"


class Shape(Record):
    """A part of the answer; dumped under the names that programs know."""

    model_config = ConfigDict(serialize_by_alias=True)


class PathNode(Shape):
    """A node on a path. `document` is the id that came in with the corpus; entities that no text
    defines have none.
    """

    id: str
    name: str
    type: str
    document: str = ""
    span: Span | None = None
    deg_out: int = Field(
        0,
        description="edges that leave it: what its flow is split over",
    )


class Source(Shape):
    """Where a fact was read."""

    doc: str = ""
    span: Span | None = None


class PathEdge(Shape):
    """An edge of a path as it is stored, whichever way the path walks it."""

    id: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: float | None = None
    share: float = Field(
        0.0,
        description="what it takes of the flow at the node that the path leaves by it",
    )
    provenance: Source = Source()


class Path(Shape):
    """A walk through the graph, for machines and for people."""

    rank: int = Field(ge=1)
    score: float
    reliability: float = Field(description="the mean flow on its edges, in [0, 1]")
    confidence: float = Field(description="geometric mean of the weights of its edges, in [0, 1]")
    text: str
    why: str = ""
    origin: str = Field("", description="the search that found it")
    nodes: tuple[PathNode, ...]
    edges: tuple[PathEdge, ...]
    propensity: float = Field(
        1.0,
        gt=0.0,
        le=1.0,
        description="chance to stand at this rank: 1 unless answers explore",
    )
    number: int = Field(0, description=NUMBERED)
    in_prompt: bool = Field(False, description="whether the prompt holds it")


class CitedPassage(Shape):
    """A piece of a document; `tiers` say what each search in `from` gave it."""

    rank: int = Field(ge=1)
    id: str
    document: str
    title: str = ""
    text: str
    score: float
    origins: tuple[str, ...] = Field(alias="from")
    span: Span = (0, 0)
    document_id: str = Field(
        "",
        description="the `_id` whose text the span points into",
    )
    headings: tuple[str, ...] = Field(
        (),
        description="where it stands: headings, page, slide, cells, time",
    )
    tiers: dict[str, float] = Field(default_factory=dict)
    propensity: float = Field(
        1.0,
        gt=0.0,
        le=1.0,
        description="chance to stand at this rank: 1 unless answers explore",
    )
    path: str = Field(
        "",
        description="path of the file inside its workspace; empty where there is none",
    )
    lines: tuple[int, int] | None = Field(
        None,
        description="first and last line in the file, from 1",
    )
    symbol: str = Field(
        "",
        description="qualified name inside the file; empty at module level and in prose",
    )
    kind: str = Field(
        "",
        description="function, method, class, module, prose, passage ...",
    )
    timestamp: datetime | None = Field(
        None,
        description="date of its document: as stated, else of the commit that added the file",
    )
    address: str = Field(
        "",
        description="where a document of a remote source is opened",
    )
    last_seen: datetime | None = Field(
        None,
        description="when its remote source was last in step; None of other documents",
    )
    overdue: bool = Field(
        False,
        description="its source was not seen for longer than its schedule allows",
    )
    explained_by: int | None = Field(
        None,
        description="rank of the path that leads to it; None where none is shown",
    )
    no_path: str = Field(
        "",
        description="why no path leads to it, where that was looked for",
    )
    number: int = Field(0, description=NUMBERED)
    in_prompt: bool = Field(False, description="whether the prompt holds it")


class RankedItem(Shape):
    """A file or symbol of a ranking that was asked for with `level`; a symbol is
    `path:Qualified.name`.
    """

    rank: int = Field(ge=1)
    id: str
    score: float = Field(description="1 for the first, falling with the place")


class Topic(Shape):
    """A topic that the question was narrowed to, or that what was found belongs to."""

    id: str
    level: int
    summary: str


class Tokens(Shape):
    """Size of the prompt and of its parts."""

    prompt: int = 0
    hierarchy: int = 0
    paths: int = 0


class StageReport(Shape):
    """What one stage spent and made of it."""

    name: str
    reads: int = 0
    ms: float = 0.0
    taken: int = Field(0, alias="in")
    given: int = Field(0, alias="out")
    dedupe_rate: float = 0.0
    coverage: float = 0.0
    capped: bool = False
    early_stop: bool = False
    work: int = 0
    reads_stage: int = Field(0, description="`reads` by the name of specification 001")
    latency_stage: float = Field(0.0, description="`ms` by the name of specification 001")
    coverage_score: float = Field(
        0.0,
        description="`coverage` by the name of specification 001",
    )
    flags: dict[str, bool] = Field(
        default_factory=dict,
        description="`capped` and `early_stop`, as specification 001 has them",
    )


class Telemetry(Shape):
    """What the turn spent; `counters` are candidates, discarded nodes, kept paths and prompt
    tokens.

    `loading_ms` is what loading a model and machine code took in this process before and beside the
    turn; `ms` is without it.
    """

    reads: int = 0
    ms: float = 0.0
    loading_ms: float = 0.0
    stages: tuple[StageReport, ...] = ()
    work: int = 0
    counters: dict[str, int] = Field(default_factory=dict)


class ContextFactor(Shape):
    """The parts of the context factor; see docs/retrieval.md for how each is measured."""

    local: float = Field(alias="L")
    intent: float = Field(alias="I")
    action: float = Field(alias="A")
    ground: float = Field(alias="G")
    value: float


class Conveyance(Shape):
    """How much of the answer reaches the reader, for the time it took."""

    what: float = Field(alias="W")
    where: float = Field(alias="R")
    who: float = Field(alias="H")
    time: float = Field(alias="T")
    context: ContextFactor = Field(alias="Ctx")
    value: float = Field(alias="C")
    reach: tuple[float, ...] = Field(
        (),
        alias="P_ij",
        description="reliability of each path, first node to last",
    )


class NearestMiss(Shape):
    """A passage that came near; `lacks` are the words of the question that it does not hold."""

    id: str
    document: str
    title: str = ""
    where: str = Field("", description="path:line of code; else headings")
    score: float
    lacks: tuple[str, ...] = ()


class AbsenceCertificate(Shape):
    """What a turn searched that found nothing to answer from."""

    sentence: str = Field("", description="the certificate in words")
    channels: dict[str, int] = Field(
        default_factory=dict,
        description="how many of the passages read each search found; 0 for one that found none",
    )
    passages: int | None = Field(
        None,
        description="passages that the filters leave; None where they are not counted",
    )
    read: int = 0
    names: tuple[str, ...] = Field(
        (),
        description="names in the question that the graph knows",
    )
    unknown_names: tuple[str, ...] = Field(
        (),
        description="names in the question that nothing is called and no passage holds",
    )
    unknown_words: tuple[str, ...] = Field(
        (),
        description="words of the question that no passage in scope holds",
    )
    filters: Json = Field(
        default_factory=dict,
        description="what the question was limited to",
    )
    times: tuple[str, ...] = Field(
        (),
        description="begin and end of the time that the question names",
    )
    nearest: tuple[NearestMiss, ...] = ()


class StatedChange(Shape):
    """A statement then and now; `before` is empty for one that was added, `now` for one that was
    removed.
    """

    change: Literal["added", "changed", "removed"]
    before: str = ""
    now: str = ""
    document: str = Field(description="the id that came in with the corpus; a topic of memory")
    document_id: str = ""
    at: datetime = Field(description="when the page, by a night or a commit, or memory changed")
    before_state: str = Field(
        "",
        description="of `before`: until when it stood, and where it is",
    )
    now_state: str = Field(
        "",
        description="of `now`: since when it stands, and where it is",
    )


class ChangeReport(Shape):
    """What changed about a subject in a stretch of time."""

    subject: str
    since: datetime | None = None
    until: datetime
    kept_since: datetime | None = Field(
        None,
        description="since when changes are known; None where nothing is kept",
    )
    statements: tuple[StatedChange, ...] = Field((), description="newest first")
    more: int = Field(0, description="statements that are not listed")
    mentions: int = Field(
        0,
        description="passages of today that hold the words of the subject",
    )
    sentence: str = Field("", description="the report in words")


class Carried(Shape):
    """What a question has from the one that it follows."""

    follows: str = Field(description="id of the earlier question")
    words: tuple[str, ...] = ()
    filters: Json = Field(
        default_factory=dict,
        description="filters by the names that requests have",
    )


class Retrieval(Shape):
    """An answered question."""

    query_id: str
    query: str
    recipe: str
    snapshot: str
    as_of: datetime | None = None
    known_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()
    plan: Plan
    paths: tuple[Path, ...] = ()
    passages: tuple[CitedPassage, ...] = ()
    hierarchy: tuple[Topic, ...] = ()
    prompt: str = ""
    tokens: Tokens = Tokens()
    telemetry: Telemetry = Telemetry()
    conveyance: Conveyance
    why: str = Field("", description="why this recipe, where `auto` chose it")
    confidence: float | None = Field(
        None,
        description="how likely the evidence supports an answer, in [0, 1]; None where the recipe "
        "does not judge it",
    )
    level: str = Field(
        "passage",
        description="what was ranked: passage, symbol or file",
    )
    excluded: int | None = Field(
        None,
        description="documents that the filters and the moment (as_of, known_at) of the question "
        "leave out; None where there is neither, or nothing is later",
    )
    ranking: tuple[RankedItem, ...] = Field(
        (),
        description="files or symbols, best first; empty at level passage",
    )
    filters: Json = Field(
        default_factory=dict,
        description="what the question was limited to, and asked near",
    )
    absence: AbsenceCertificate | None = Field(
        None,
        description="what was searched, where nothing supports an answer; else None",
    )
    carried: Carried | None = Field(
        None,
        description="what the question has from the one that it follows; else None",
    )
    changes: ChangeReport | None = Field(
        None,
        description="of a question about what changed: the statements then and now",
    )

    @property
    def is_answered(self) -> bool:
        """Whether the turn did not find that the sources, as far as they were searched, give no
        answer.
        """
        return {Reason.ABSTAINED, Reason.UNFINISHED}.isdisjoint(self.reasons)

    def to_arrow(self, part: str = "passages") -> pa.Table:
        """The passages, the paths or the ranking as an Arrow table, one row each, best first."""
        if part not in TABLES:
            raise ValueError(
                f"{part!r} is not a part of a result; expected one of {', '.join(TABLES)}"
            )

        if part == "paths":
            rows = [_path_row(path) for path in self.paths]
        elif part == "passages":
            rows = [_passage_row(passage) for passage in self.passages]
        else:
            rows = [row.model_dump() for row in self.ranking]

        return pa.Table.from_pylist(rows, schema=TABLES[part])

    def to_pandas(self, part: str = "passages") -> pd.DataFrame:
        """The same as a pandas frame; needs pandas, which the extra `flows` brings."""
        return as_pandas(self.to_arrow(part))


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """A table as a pandas frame; without pandas the error names the extra that brings it."""
    try:
        return table.to_pandas()
    except ImportError:
        raise ImportError(
            "a frame needs pandas, which is not installed; run `pip install "
            "'hades-graphrag[flows]'`, or use to_arrow()"
        ) from None


_TEXTS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int64())
TABLES: dict[str, pa.Schema] = {
    "passages": pa.schema(
        [
            ("rank", pa.int64()),
            ("id", pa.string()),
            ("document", pa.string()),
            ("title", pa.string()),
            ("text", pa.string()),
            ("score", pa.float64()),
            ("from", _TEXTS),
            ("span", _NUMBERS),
            ("headings", _TEXTS),
            ("heading", pa.string()),
            ("source", pa.string()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("path", pa.string()),
            ("lines", _NUMBERS),
            ("symbol", pa.string()),
            ("kind", pa.string()),
        ]
    ),
    "paths": pa.schema(
        [
            ("rank", pa.int64()),
            ("score", pa.float64()),
            ("reliability", pa.float64()),
            ("confidence", pa.float64()),
            ("text", pa.string()),
            ("why", pa.string()),
            ("nodes", _TEXTS),
            ("relations", _TEXTS),
            ("documents", _TEXTS),
        ]
    ),
    "ranking": pa.schema([("rank", pa.int64()), ("id", pa.string()), ("score", pa.float64())]),
}


def _passage_row(passage: CitedPassage) -> dict[str, Any]:
    """`heading` is one line of all headings, `source` where the document is opened."""
    return {
        **passage.model_dump(by_alias=True),
        "heading": " › ".join(passage.headings),
        "source": passage.address or passage.path or passage.document,
    }


def _path_row(path: Path) -> dict[str, Any]:
    row = path.model_dump(include={"rank", "score", "reliability", "confidence", "text", "why"})
    return {
        **row,
        "nodes": [node.id for node in path.nodes],
        "relations": [edge.type for edge in path.edges],
        "documents": sorted({edge.provenance.doc for edge in path.edges if edge.provenance.doc}),
    }


class AnswerSource(Shape):
    """A passage or path of this turn under the number that sentences cite."""

    number: int = Field(ge=1)
    kind: Literal["passage", "path", "state"] = Field(
        description="a state is what a page or memory said at a time; `where` says which"
    )
    rank: int = Field(
        ge=1,
        description="its rank among the passages or paths of the turn, for feedback",
    )
    score: float = Field(0.0, description="its score in the turn")
    id: str = Field(
        description="id of the passage; for a path, ids of its nodes with blanks between"
    )
    document: str = Field("", description="the id that came in with the corpus")
    title: str = ""
    where: str = Field(
        "",
        description="path:line of code; else page, slide, cells, cell, time or headings",
    )
    headings: tuple[str, ...] = Field((), description="headings above it, from the top")
    span: Span = (0, 0)
    code: str = Field(
        "",
        description="of code: function, method, class or module; else empty",
    )
    symbol: str = Field(
        "",
        description="of code: the name of the function or class, with that of its class",
    )
    begins_in_code: bool = Field(
        False,
        description="its text begins inside a block of code",
    )
    text: str
    markdown: str = Field(
        "",
        description="of a passage that is no code: its text as plain Markdown without headings",
    )
    address: str = Field(
        "",
        description="where a document of a remote source is opened",
    )
    last_seen: datetime | None = Field(
        None,
        description="when its remote source was last in step; None of other documents",
    )
    overdue: bool = Field(
        False,
        description="its source was not seen for longer than its schedule allows",
    )
    needed: float | None = Field(
        None,
        description="share of the answer's support that is lost without this passage; None where "
        "not checked",
    )
    carries: bool = Field(
        False,
        description="the answer cites it, and no other passage states what it cites",
    )
    instead: str = Field(
        "",
        description="id of a passage that states what the answer cites of this one",
    )


class AnswerSentence(Shape):
    """One sentence, or one block of a quoted passage as Markdown; `citations` are numbers of
    sources.
    """

    text: str
    citations: tuple[int, ...] = ()
    quote: str = Field(
        "",
        description="a quotation as it stands in its source, with its markup",
    )
    heading: str = Field(
        "",
        description="of the first block of a source: the headings above it",
    )
    kind: str = Field(
        "",
        description="of a quoted block: paragraph, item, term, row or code",
    )
    marks: tuple[str, ...] = Field(
        (),
        description="of a quoted block: the words of `text` that decide",
    )
    is_supported: bool = True
    problem: str = ""


class AnswerCost(Shape):
    """Tokens of the call to the language model: estimated before, counted after. Zero where none
    was called.
    """

    prompt_tokens: int = 0
    completion_tokens_at_most: int = 0
    completion_tokens: int = 0


class WrittenAnswer(Shape):
    """An answer in sentences. `mode` says whether a language model wrote them or they are
    quotations.
    """

    query_id: str
    query: str
    recipe: str
    snapshot: str
    mode: Literal["written", "extracted", "estimate", "no_answer"]
    model: str = ""
    text: str = Field(
        "",
        description="Markdown: the sentences or quoted blocks with their citations as [number]",
    )
    sentences: tuple[AnswerSentence, ...] = ()
    sources: tuple[AnswerSource, ...] = ()
    unknown_citations: tuple[int, ...] = Field(
        (),
        description="numbers that the model cited and that no source has",
    )
    cost: AnswerCost = AnswerCost()
    reasons: tuple[Reason, ...] = Field(
        (),
        description="what the turn says about itself, as in a query",
    )
    problem: str = Field(
        "",
        description="why no language model wrote it although one is set",
    )
    excluded: int | None = Field(
        None,
        description="documents that the filters of the question leave out",
    )
    confidence: float | None = Field(
        None,
        description="how likely the evidence supports an answer, as in a query",
    )
    absence: AbsenceCertificate | None = Field(
        None,
        description="what was searched, where nothing answers; else None",
    )
    carried: Carried | None = Field(
        None,
        description="what the question has from the one that it follows; else None",
    )
    changes: ChangeReport | None = Field(
        None,
        description="of a question about what changed: the statements then and now",
    )
    check_ms: float = Field(
        0.0,
        description="time of the check which sources are needed; 0 where it was left out",
    )
