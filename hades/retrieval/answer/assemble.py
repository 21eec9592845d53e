"""Facts read, citations verified."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hades.ports.graph import EdgeFacts, NodeFacts, SourceFacts
from hades.retrieval.answer.path_text import TokenCounter, path_text, rationale
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, NarrowedTopic
from hades.retrieval.walks.flow import DECAY_RATE
from hades.snapshot.view import GraphView
from schemas.answer import CitedPassage, Path, PathEdge, PathNode, Source, Topic
from schemas.ids import sha256_text
from schemas.plan import Reason


class Verdict(StrEnum):
    """What a look into the document said."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"  # no document, place or hash to look at, or the reads of the turn were used up
    MISMATCH = "mismatch"  # the document says something else there, or is not what was hashed: drop what cites it


@dataclass(frozen=True)
class Citation:
    """Words and where they are said to stand: `_id` of the document and [start, end) in characters of it."""

    document_id: str
    span: tuple[int, int] | None
    text: str


def verify_spans(view: MeteredView | GraphView, citations: Sequence[Citation]) -> list[Verdict]:
    """A verdict for each citation: its document compared at its place, and with its hash; each is read once.

    Through a metered view the reads are the turn's: documents it denies leave their citations unverified.
    """
    asked = list(dict.fromkeys(one.document_id for one in citations if one.document_id and one.span is not None))
    found = view.sources(asked) if asked else []  # shorter than asked where the budget ends it
    sources = {source.id: source for source in found if source is not None}
    whole = {key: sha256_text(source.text) == source.sha256 for key, source in sources.items()}
    return [_verdict(one, sources.get(one.document_id), whole.get(one.document_id, False)) for one in citations]


def _verdict(citation: Citation, source: SourceFacts | None, is_whole: bool) -> Verdict:
    if source is None or citation.span is None:
        return Verdict.UNVERIFIED
    start, end = citation.span
    stands_there = 0 <= start <= end <= len(source.text) and source.text[start:end] == citation.text
    if not stands_there or (source.sha256 and not is_whole):
        return Verdict.MISMATCH
    return Verdict.VERIFIED if is_whole else Verdict.UNVERIFIED


# From numbers to what is shown: the facts of paths and passages are read here, best first, while the budget lasts.
_CITED = ("id", "document", "title", "text", "span", "document_id", "headings", "path", "lines", "symbol", "kind")
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
    """Read what is handed over. Passages come first: an answer without text is none; then paths, then topics."""
    read, verified_passages = _passages(view, passages)
    written, ranks, verified_edges = _paths(view, counter, paths)
    cited_passages = tuple(_explain(cited, found, ranks) for found, cited in read)
    named = _topics(view, topics)
    edges = [edge for path in written for edge in path.edges]
    return AnswerParts(
        written,
        cited_passages,
        named,
        facts=len(edges) + len(cited_passages),
        cited=sum(edge.provenance.span is not None for edge in edges) + len(cited_passages),
        verified=verified_passages + verified_edges,
    )


def confidence_of(edges: Sequence[EdgeFacts]) -> float:
    """Geometric mean of the weights, a missing one counting 1; 1 for a path without edges."""
    weights = [1.0 if edge.weight is None else max(0.0, min(1.0, edge.weight)) for edge in edges]
    if not weights:
        return 1.0
    return 0.0 if min(weights) == 0.0 else math.exp(math.fsum(map(math.log, weights)) / len(weights))


def shares_of(path: FoundPath, nodes: Sequence[NodeFacts], edges: Sequence[EdgeFacts]) -> tuple[float, ...]:
    """What each edge takes of the flow at its tail; where no flow was computed, its weight over the tail's edges."""
    weights = [1.0 if edge.weight is None else max(0.0, min(1.0, edge.weight)) for edge in edges]
    counted = (weight / max(1, node.deg_out) for node, weight in zip(nodes, weights, strict=False))
    return path.shares or tuple(counted)


def flow_of(shares: Sequence[float], decay_rate: float = DECAY_RATE) -> float:
    """The mean flow on the edges when the first node gives out one unit; 1 for a path without edges."""
    return float(np.cumprod(np.multiply(shares, decay_rate)).mean()) if shares else 1.0


def write_path(
    counter: TokenCounter, rank: int, path: FoundPath, nodes: Sequence[NodeFacts], edges: Sequence[EdgeFacts]
) -> Path:
    """A path whose facts have been read, in words and for machines."""
    shares = shares_of(path, nodes, edges)
    reliability = path.reliability or flow_of(shares)
    reason = rationale(edges, seed=nodes[0].name or nodes[0].id, origin=path.origin, reliability=reliability)
    return Path(
        rank=rank,
        score=path.score,
        reliability=reliability,
        confidence=confidence_of(edges),
        text=path_text(counter, nodes, edges, path.outbound),
        why=f"{reason}; {path.why}" if path.why else reason,
        origin=path.origin,
        propensity=path.propensity,
        nodes=tuple(PathNode(**{name: getattr(node, name) for name in PathNode.model_fields}) for node in nodes),
        edges=tuple(
            PathEdge(
                **{name: getattr(edge, name) for name in ("id", "source", "target", "type", "weight")},
                share=share,
                provenance=Source(doc=edge.document, span=edge.span),
            )
            for edge, share in zip(edges, shares, strict=True)
        ),
    )


def _explain(cited: CitedPassage, found: FoundPassage, ranks: Mapping[tuple[int, ...], int]) -> CitedPassage:
    """The passage with the rank of the path that leads to it, or with the reason why none does."""
    if not found.explained_by:
        return cited.model_copy(update={"no_path": found.no_path}) if found.no_path else cited
    rank = ranks.get(found.explained_by)
    return cited.model_copy(update={"explained_by": rank, "no_path": "" if rank else NOT_SHOWN})


def _passages(
    view: MeteredView, passages: Sequence[FoundPassage]
) -> tuple[list[tuple[FoundPassage, CitedPassage]], int]:
    """Passages whose words stand where they are said to; a wrong one is dropped. With the number that was checked."""
    read = view.passages(np.array([passage.node for passage in passages], np.int64))
    verdicts = _check(view, [Citation(one.document_id, one.span, one.text) for one in read])
    kept = [
        (found, passage)
        for found, passage, verdict in zip(passages, read, verdicts, strict=False)
        if verdict is not Verdict.MISMATCH
    ]
    if len(kept) < len(read):
        view.turn.because(Reason.VIEW_DEGRADED)
    cited = [
        CitedPassage(
            rank=rank,
            score=found.score,
            origins=tuple(sorted(found.tiers)),
            tiers=dict(sorted(found.tiers.items())),
            propensity=found.propensity,
            **{name: getattr(passage, name) for name in _CITED},
        )
        for rank, (found, passage) in enumerate(kept, 1)
    ]
    return list(zip((found for found, _ in kept), cited, strict=True)), verdicts.count(Verdict.VERIFIED)


def _check(view: MeteredView, cited: Sequence[Citation]) -> list[Verdict]:
    """A verdict a citation. Only reads that nobody needs any more are spent on it; the rest stays unverified."""
    spare = view.turn.reads_left // 2
    documents = list(dict.fromkeys(one.document_id for one in cited if one.span is not None))[:spare]
    checkable = [one for one in cited if one.document_id in documents]
    if view.turn.expired() or not checkable:
        return [Verdict.UNVERIFIED] * len(cited)
    verdicts = iter(verify_spans(view, checkable))
    return [next(verdicts) if one.document_id in documents else Verdict.UNVERIFIED for one in cited]


def _paths(
    view: MeteredView, counter: TokenCounter, paths: Sequence[FoundPath]
) -> tuple[tuple[Path, ...], dict[tuple[int, ...], int], int]:
    """Whole paths only: one whose facts may not all be read ends the list, one with an edge whose words do not stand
    where it says is dropped. With their ranks by edges, and the number of edges that were checked.
    """
    read = list(view.path_facts(paths))
    named = dict.fromkeys(edge.document_id for _, _, edges in read for edge in edges if edge.document_id)
    outside = view.outside_documents(list(named))
    read = [one for one in read if outside.isdisjoint(edge.document_id for edge in one[2])]
    claims = [Citation(edge.document_id, edge.span, edge.snippet) for _, _, edges in read for edge in edges]
    verdicts = iter(_check(view, claims))
    written: list[Path] = []
    ranks: dict[tuple[int, ...], int] = {}
    verified = 0
    for path, nodes, edges in read:
        found = [next(verdicts) for _ in edges]
        if Verdict.MISMATCH in found:
            view.turn.because(Reason.VIEW_DEGRADED)
            continue
        verified += found.count(Verdict.VERIFIED)
        written.append(write_path(counter, len(written) + 1, path, nodes, edges))
        ranks[path.edges] = len(written)
    return tuple(written), ranks, verified


def _topics(view: MeteredView, topics: Sequence[NarrowedTopic]) -> tuple[Topic, ...]:
    facts = view.nodes(np.array([topic.node for topic in topics], np.int64))
    return tuple(
        Topic(id=fact.id, level=topic.level, summary=fact.summary or fact.name)
        for topic, fact in zip(topics, facts, strict=False)
    )


def paths_inside(view: MeteredView, paths: Sequence[FoundPath]) -> tuple[FoundPath, ...]:
    """The paths whose vertices all belong to the domain of the turn, in their order."""
    nodes = np.unique(np.array([node for path in paths for node in path.nodes], np.int64))
    inside = set(nodes[view.may_show(nodes)].tolist())
    return tuple(path for path in paths if inside.issuperset(path.nodes))


def passages_inside(view: MeteredView, passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages whose documents belong to the domain of the turn, in their order."""
    inside = view.is_inside(np.array([one.node for one in passages], np.int64))
    return tuple(one for one, is_kept in zip(passages, inside.tolist(), strict=True) if is_kept)
