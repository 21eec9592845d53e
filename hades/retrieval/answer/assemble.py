"""Facts read, citations verified."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

import numpy as np

from hades.ports.graph import EdgeFacts, NodeFacts, Passage, SourceFacts
from hades.retrieval.answer.path_text import TokenCounter, path_text, rationale
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, NarrowedTopic
from hades.retrieval.walks.flow import DECAY_RATE
from hades.snapshot.view import GraphView
from schemas.answer import CitedPassage, Path, PathEdge, PathNode, Source, Topic
from schemas.ids import sha256_text
from schemas.plan import Reason


class Verdict(StrEnum):
    """Whether a document holds what a citation quotes from it."""

    VERIFIED = "verified"
    UNVERIFIED = (
        "unverified"  # no document, place or hash to look at, or the reads of the turn were used up
    )
    # the document says something else there, or is not what was hashed: drop what cites it
    MISMATCH = "mismatch"


@dataclass(frozen=True)
class Citation:
    """Words and their cited place: `_id` of the document and [start, end) in characters of it."""

    document_id: str
    span: tuple[int, int] | None
    text: str


def verify_spans(
    view: MeteredView | GraphView,
    citations: Sequence[Citation],
) -> list[Verdict]:
    """A verdict for each citation: its document compared at its place, and with its hash; each is
    read once.

    Through a metered view the reads are the turn's: documents it denies leave their citations
    unverified.
    """
    document_ids = dict.fromkeys(
        citation.document_id
        for citation in citations
        if citation.document_id and citation.span is not None
    )
    # Shorter than the list of ids where the budget ends it.
    if document_ids:
        rows = view.sources(list(document_ids))
    else:
        rows = []

    sources = {}
    for source in rows:
        if source is not None:
            sources[source.id] = source

    whole_ids = set()
    for key, row in sources.items():
        if sha256_text(row.text) == row.sha256:
            whole_ids.add(key)

    return [
        _verdict(
            citation,
            sources.get(citation.document_id),
            citation.document_id in whole_ids,
        )
        for citation in citations
    ]


def _verdict(
    citation: Citation,
    source: SourceFacts | None,
    is_whole: bool,
) -> Verdict:
    if source is None or citation.span is None:
        return Verdict.UNVERIFIED

    start, end = citation.span
    stands_there = 0 <= start <= end <= len(source.text) and source.text[start:end] == citation.text
    if not stands_there or (source.sha256 and not is_whole):
        return Verdict.MISMATCH

    return Verdict.VERIFIED if is_whole else Verdict.UNVERIFIED


# From numbers to what is shown: the facts of paths and passages are read here, best first, while
# the budget lasts.
_CITED = (
    "id",
    "document",
    "title",
    "text",
    "span",
    "document_id",
    "headings",
    "path",
    "lines",
    "symbol",
    "kind",
    "timestamp",
)
NOT_SHOWN = "the path that leads to it is not among those shown"


@dataclass(frozen=True)
class AnswerParts:
    """The answer's parts; `cited` of its `facts` (edges and passages) say document and span."""

    paths: tuple[Path, ...]
    passages: tuple[CitedPassage, ...]
    topics: tuple[Topic, ...]
    facts: int
    cited: int
    verified: int


def show(
    view: MeteredView,
    counter: TokenCounter,
    paths: Sequence[FoundPath],
    passages: Sequence[FoundPassage],
    topics: Sequence[NarrowedTopic],
) -> AnswerParts:
    """Read what is handed over. Passages come first: an answer without text is none; then paths,
    then topics.
    """
    read, verified_passages = _cite_passages(view, passages)
    written, ranks, verified_edges = _cite_paths(view, counter, paths)
    cited_passages = tuple(_explain(cited, passage, ranks) for passage, cited in read)
    cited_topics = _cite_topics(view, topics)

    edges: list[PathEdge] = []
    for path in written:
        edges += path.edges

    return AnswerParts(
        written,
        cited_passages,
        cited_topics,
        facts=len(edges) + len(cited_passages),
        cited=sum(edge.provenance.span is not None for edge in edges) + len(cited_passages),
        verified=verified_passages + verified_edges,
    )


def confidence_of(edges: Sequence[EdgeFacts]) -> float:
    """Geometric mean of the weights, a missing one counting 1; 1 for a path without edges."""
    weights = _weights(edges)
    if not weights:
        return 1.0
    if min(weights) == 0.0:
        return 0.0

    return math.exp(math.fsum(map(math.log, weights)) / len(weights))


def _weights(edges: Sequence[EdgeFacts]) -> list[float]:
    weights = []
    for edge in edges:
        weights.append(1.0 if edge.weight is None else max(0.0, min(1.0, edge.weight)))

    return weights


def shares_of(
    path: FoundPath,
    nodes: Sequence[NodeFacts],
    edges: Sequence[EdgeFacts],
) -> tuple[float, ...]:
    """What each edge takes of the flow at its tail; where no flow was computed, its weight over the
    tail's edges.
    """
    if path.shares:
        return path.shares

    tails = zip(nodes, _weights(edges), strict=False)
    return tuple(weight / max(1, node.deg_out) for node, weight in tails)


def flow_of(shares: Sequence[float], decay_rate: float = DECAY_RATE) -> float:
    """The mean flow on the edges when the first node gives out one unit; 1 for a path without
    edges.
    """
    if shares:
        return float(np.cumprod(np.multiply(shares, decay_rate)).mean())
    return 1.0


def write_path(
    counter: TokenCounter,
    rank: int,
    path: FoundPath,
    nodes: Sequence[NodeFacts],
    edges: Sequence[EdgeFacts],
) -> Path:
    """A path whose facts have been read, in words and for machines."""
    shares = shares_of(path, nodes, edges)
    reliability = path.reliability or flow_of(shares)
    reason = rationale(
        edges,
        seed=nodes[0].name or nodes[0].id,
        origin=path.origin,
        reliability=reliability,
    )
    return Path(
        rank=rank,
        score=path.score,
        reliability=reliability,
        confidence=confidence_of(edges),
        text=path_text(counter, nodes, edges, path.outbound),
        why=f"{reason}; {path.why}" if path.why else reason,
        origin=path.origin,
        propensity=path.propensity,
        nodes=tuple(map(_write_node, nodes)),
        edges=tuple(map(_write_edge, edges, shares)),
    )


def _write_node(node: NodeFacts) -> PathNode:
    return PathNode(**{name: getattr(node, name) for name in PathNode.model_fields})


def _write_edge(edge: EdgeFacts, share: float) -> PathEdge:
    return PathEdge(
        id=edge.id,
        source=edge.source,
        target=edge.target,
        type=edge.type,
        weight=edge.weight,
        share=share,
        provenance=Source(doc=edge.document, span=edge.span),
    )


def _explain(
    cited: CitedPassage,
    passage: FoundPassage,
    ranks: Mapping[tuple[int, ...], int],
) -> CitedPassage:
    """The passage with the rank of the path that leads to it, or with the reason why none does."""
    if not passage.explained_by:
        if passage.no_path:
            return cited.model_copy(update={"no_path": passage.no_path})
        return cited

    rank = ranks.get(passage.explained_by)
    return cited.model_copy(
        update={
            "explained_by": rank,
            "no_path": "" if rank else NOT_SHOWN,
        }
    )


def _cite_passages(
    view: MeteredView,
    passages: Sequence[FoundPassage],
) -> tuple[list[tuple[FoundPassage, CitedPassage]], int]:
    """Passages whose words stand at their cited place; a wrong one is dropped. With the number
    that was checked.
    """
    facts_of_passages = view.passages(np.array([passage.node for passage in passages], np.int64))
    verdicts = _check_citations(
        view,
        [Citation(facts.document_id, facts.span, facts.text) for facts in facts_of_passages],
    )

    shown: list[tuple[FoundPassage, CitedPassage]] = []
    for passage, facts, verdict in zip(
        passages,
        facts_of_passages,
        verdicts,
        strict=False,
    ):
        if verdict is not Verdict.MISMATCH:
            shown.append((passage, _cite(len(shown) + 1, passage, facts)))

    if len(shown) < len(facts_of_passages):
        view.turn.because(Reason.VIEW_DEGRADED)

    return shown, verdicts.count(Verdict.VERIFIED)


def _cite(
    rank: int,
    passage: FoundPassage,
    facts: Passage,
) -> CitedPassage:
    return CitedPassage(
        rank=rank,
        score=passage.score,
        origins=tuple(sorted(passage.tiers)),
        tiers=dict(sorted(passage.tiers.items())),
        propensity=passage.propensity,
        **{name: getattr(facts, name) for name in _CITED},
    )


def place_of(passage: CitedPassage) -> str:
    """Where a passage stands for a reader: `path:line` of code, else its headings."""
    if passage.path and passage.lines:
        return f"{passage.path}:{passage.lines[0]}"
    return ", ".join(passage.headings)


def _check_citations(view: MeteredView, cited: Sequence[Citation]) -> list[Verdict]:
    """A verdict a citation. Only reads that nobody needs any more are spent on it; the rest stays
    unverified.
    """
    spare = view.turn.reads_left // 2
    cited_ids = dict.fromkeys(citation.document_id for citation in cited if citation.span)
    documents = list(cited_ids)[:spare]

    checkable = []
    for citation in cited:
        if citation.document_id in documents:
            checkable.append(citation)

    if view.turn.expired() or not checkable:
        return [Verdict.UNVERIFIED] * len(cited)

    verdicts = iter(verify_spans(view, checkable))
    return [
        next(verdicts) if citation.document_id in documents else Verdict.UNVERIFIED
        for citation in cited
    ]


def _cite_paths(
    view: MeteredView,
    counter: TokenCounter,
    paths: Sequence[FoundPath],
) -> tuple[tuple[Path, ...], dict[tuple[int, ...], int], int]:
    """Whole paths only: one whose facts may not all be read ends the list, one with an edge whose
    words do not stand where it says is dropped. With their ranks by edges, and the number of edges
    that were checked.
    """
    facts_of_paths = list(view.path_facts(paths))

    document_ids: dict[str, None] = {}
    for _, _, edges in facts_of_paths:
        document_ids |= dict.fromkeys(edge.document_id for edge in edges if edge.document_id)

    outside = view.outside_documents(list(document_ids))
    inside = []

    claims: list[Citation] = []
    for path, nodes, edges in facts_of_paths:
        if outside.isdisjoint([edge.document_id for edge in edges]):
            inside.append((path, nodes, edges))
            claims += [Citation(edge.document_id, edge.span, edge.snippet) for edge in edges]

    verdicts = iter(_check_citations(view, claims))
    written: list[Path] = []
    ranks: dict[tuple[int, ...], int] = {}

    verified = 0
    for path, nodes, edges in inside:
        path_verdicts = [next(verdicts) for _ in edges]
        if Verdict.MISMATCH in path_verdicts:
            view.turn.because(Reason.VIEW_DEGRADED)
            continue

        verified += path_verdicts.count(Verdict.VERIFIED)
        written.append(
            write_path(
                counter,
                len(written) + 1,
                path,
                nodes,
                edges,
            )
        )
        ranks[path.edges] = len(written)

    return tuple(written), ranks, verified


def _cite_topics(
    view: MeteredView,
    topics: Sequence[NarrowedTopic],
) -> tuple[Topic, ...]:
    facts = view.nodes(np.array([topic.node for topic in topics], np.int64))
    return tuple(
        Topic(
            id=fact.id,
            level=topic.level,
            summary=fact.summary or fact.name,
        )
        for topic, fact in zip(topics, facts, strict=False)
    )


def paths_inside(
    view: MeteredView,
    paths: Sequence[FoundPath],
) -> tuple[FoundPath, ...]:
    """The paths whose vertices all belong to the domain of the turn, in their order."""
    nodes = np.unique(np.array(list(chain.from_iterable(path.nodes for path in paths)), np.int64))
    inside = set(nodes[view.may_show(nodes)].tolist())
    return tuple(path for path in paths if inside.issuperset(path.nodes))


def passages_inside(
    view: MeteredView,
    passages: Sequence[FoundPassage],
) -> tuple[FoundPassage, ...]:
    """The passages whose documents belong to the domain of the turn, in their order."""
    inside = view.is_inside(np.array([passage.node for passage in passages], np.int64))
    return tuple(
        passage for passage, is_kept in zip(passages, inside.tolist(), strict=True) if is_kept
    )
