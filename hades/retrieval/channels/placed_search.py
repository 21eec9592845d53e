"""A question that is asked from somewhere, ranked by what was fitted: candidates of every channel that knows the place.

Words and vectors of the question and of the place, a walk from the place, a walk from what resembles the question
there, and works that the question refers to by author give candidates. Two linear looks rank them: the first without
reading, the second with the words and dates of the passages that were read. Passages of the place itself are left out.
The coefficients are `models/linear_looks/placed.json` (`benchmarks/fit_placed.py`, fitted on citation sentences).

The rank in the walk from the place is no column: the sentences of the fit ask for citations that were taken out of the
graph, so what stands beside the place would be learned as a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import KINDS, Hits, Kind, Numbers, Passage
from hades.retrieval.channels.author_references import ReferredWorks, referred_works
from hades.retrieval.channels.contextual_search import PlacedRules, lean_to, name_places, walk_from
from hades.retrieval.ranking.fitted_files import linear_looks
from hades.retrieval.ranking.memory_features import Columns, Floats, weigh
from hades.retrieval.ranking.multihop_reranker import reciprocal
from hades.retrieval.ranking.relevance import IN, MENTIONS, OUT
from hades.retrieval.ranking.word_overlap import content_words, passage_body, stem, wording
from hades.retrieval.turn.types import FoundPassage, Question

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

_CHUNK = KINDS.index(Kind.CHUNK)
_CITES = "cites"
_RESEMBLING = 20  # passages near the question, there, from which the second walk starts
_OF_A_REFERENCE = 20  # passages of one reference that become candidates
_UNREACHED = 1e-7  # what a passage counts that a walk did not reach; logarithms need a floor


@dataclass(frozen=True)
class PlacedCandidates:
    """Candidates with what each channel knows of them: `columns` by name, arrays of one length."""

    nodes: Numbers
    columns: Columns
    works: ReferredWorks
    since: datetime | None  # when the place was written

    def take(self, rows: Numbers) -> PlacedCandidates:
        """These rows alone."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return PlacedCandidates(self.nodes[rows], columns, self.works, self.since)


def search_placed(
    view: MeteredView, question: Question, limit: int, rules: PlacedRules = PlacedRules()
) -> list[FoundPassage]:
    """Passages for a question asked from `question.near`, best first; `limit` are read and judged."""
    found = gather_placed(view, question, rules)
    if not len(found.nodes):
        return []
    looks = linear_looks("placed")
    first = weigh(found.columns, looks.first)
    read = found.take(np.argsort(-first, kind="stable")[:limit])
    passages = view.passages(read.nodes)
    read = read.take(np.arange(len(passages)))
    if not passages:
        return []
    worth = weigh(read_placed(question, read, passages), looks.second)
    shown = 2.0 / (1.0 + np.exp(worth.max() - worth))
    return [
        FoundPassage(int(read.nodes[row]), float(shown[row]), _tiers(read.columns, row))
        for row in np.argsort(-worth, kind="stable").tolist()
    ]


def gather_placed(view: MeteredView, question: Question, rules: PlacedRules = PlacedRules()) -> PlacedCandidates:
    """The candidates and what each channel gave them; only the place itself is read."""
    near = np.array(question.near, np.int64)
    is_chunk = view.kinds(near) == _CHUNK
    pieces, others = near[is_chunk], near[~is_chunk]
    there = view.passages(pieces) if len(pieces) else []
    told = " ".join(one.text for one in there) if there else name_places(view, others)
    depth, local = rules.depth, view.info.is_local
    spoken = view.lexical(question.text, kind=Kind.CHUNK, limit=depth)
    both = view.lexical(f"{question.text} {told}", kind=Kind.CHUNK, limit=depth)
    leaning = lean_to(view, question, pieces if len(pieces) else others, rules.lean)
    close = _no_hits() if leaning is None else _nearest(view, question, leaning, depth)
    exact = (
        _no_hits() if leaning is None or question.vector is None else _nearest(view, question, question.vector, depth)
    )
    walk = walk_from(view, question, others if len(others) else pieces, rules)
    alike = walk_from(view, question, close.numbers[:_RESEMBLING], rules) if local and len(close) else _no_hits()
    works = referred_works(view, question.text) if local else ReferredWorks((), ())
    named = [_closest(view, question, leaning, own) for own in works.passages]
    lists = [one.numbers[:depth] for one in (spoken, both, close, exact, walk, alike)]
    nodes = np.array(list(dict.fromkeys(np.concatenate([*lists, *named]).tolist())), np.int64)
    nodes = nodes[~np.isin(nodes, pieces)]
    columns = {
        "words": _share(_column(spoken, nodes)),
        "words_rank": _rank(_column(spoken, nodes)),
        "words_there": _share(_column(both, nodes)),
        "words_there_rank": _rank(_column(both, nodes)),
        **_cosines(view, question, leaning, nodes),
        **_walk_columns("walk", walk, nodes),
        **_walk_columns("alike", alike, nodes),
        **_reference_columns(works, nodes),
        "cited": _cited(view, nodes) if local else np.zeros(len(nodes)),
    }
    since = next((one.timestamp for one in there if one.timestamp is not None), None)
    return PlacedCandidates(nodes, columns, works, since)


def read_placed(question: Question, found: PlacedCandidates, passages: Sequence[Passage]) -> Columns:
    """The columns of candidates with what reading them adds: their words, their title, and when they were written."""
    spoken = wording(question.text, [passage_body(one.title, one.text) for one in passages])
    asked = frozenset(map(stem, content_words(question.text)))
    titles = [frozenset(map(stem, content_words(one.title))) for one in passages]
    years = [one.timestamp.year if one.timestamp is not None else None for one in passages]
    return {
        **found.columns,
        "closely": _share(spoken.bm25),
        "holds": spoken.rarity @ spoken.holds / max(float(spoken.rarity.sum()), 1e-9),
        "title": np.array([len(own & asked) / max(1, len(own)) for own in titles]),
        "later": np.array([_is_later(one.timestamp, found.since) for one in passages]),
        **_year_columns(found.works, found.nodes, years),
    }


def _no_hits() -> Hits:
    return Hits(np.empty(0, np.int64), np.empty(0, np.float32))


def _nearest(view: MeteredView, question: Question, vector: np.ndarray, limit: int) -> Hits:
    return view.nearest(vector, kind=Kind.CHUNK, model=question.model, limit=limit)


def _closest(view: MeteredView, question: Question, vector: np.ndarray | None, nodes: Numbers) -> Numbers:
    """The few of these passages that are nearest to the question."""
    if vector is None or not len(nodes):
        return nodes[:_OF_A_REFERENCE]
    cosines = view.cosines(vector, nodes, model=question.model)
    return nodes[np.argsort(-cosines, kind="stable")[:_OF_A_REFERENCE]]


def _cosines(view: MeteredView, question: Question, leaning: np.ndarray | None, nodes: Numbers) -> Columns:
    """Cosines with the question, and with the question drawn to the place; 0 where nothing compares."""
    if leaning is None or question.vector is None or not view.info.is_local:
        return {name: np.zeros(len(nodes)) for name in ("cosine", "cosine_rank", "cosine_there", "cosine_there_rank")}
    exact = view.cosines(question.vector, nodes, model=question.model).astype(np.float64)
    there = view.cosines(leaning, nodes, model=question.model).astype(np.float64)
    return {
        "cosine": exact - exact.max(initial=-1.0),
        "cosine_rank": reciprocal(exact),
        "cosine_there": there - there.max(initial=-1.0),
        "cosine_there_rank": reciprocal(there),
    }


def _walk_columns(name: str, hits: Hits, nodes: Numbers) -> Columns:
    reached = _column(hits, nodes)
    logs = np.log(reached + _UNREACHED)
    return {name: logs - logs.max(initial=np.log(_UNREACHED))}


def _reference_columns(works: ReferredWorks, nodes: Numbers) -> Columns:
    """Whether a reference may mean a passage, and how few others it may mean."""
    may, rare = np.zeros(len(nodes)), np.zeros(len(nodes))
    for own in works.passages:
        among = np.isin(nodes, own)
        may[among] = 1.0
        rare[among] = np.maximum(rare[among], 1.0 / (1.0 + np.log1p(len(own))))
    return {"reference": may, "reference_rare": rare}


def _year_columns(works: ReferredWorks, nodes: Numbers, years: Sequence[int | None]) -> Columns:
    """Whether a reference that may mean a passage gives its year, or the one after; and one that it cannot mean."""
    exact, next_year, other = np.zeros(len(nodes)), np.zeros(len(nodes)), np.zeros(len(nodes))
    told = np.array([-1 if year is None else year for year in years])
    for reference, own in zip(works.references, works.passages, strict=True):
        if reference.year is not None:
            among, ahead = np.isin(nodes, own) & (told >= 0), reference.year - told
            exact[among & (ahead == 0)] = 1.0
            next_year[among & (ahead == 1)] = 1.0
            other[among & ((ahead < 0) | (ahead > 1))] = 1.0
    fits = np.maximum(exact, next_year)
    return {
        "year": exact,
        "year_before": np.where(exact > 0, 0.0, next_year),
        "year_other": np.where(fits > 0, 0.0, other),
    }


def _cited(view: MeteredView, nodes: Numbers) -> Floats:
    """The logarithm of how often what a passage is about is cited."""
    found = view.expand(nodes, direction=OUT, types=[MENTIONS], fanout=1)
    degrees = view.degree(found.target, direction=IN, types=[_CITES]).astype(np.float64)
    counts = np.zeros(len(nodes))
    np.maximum.at(counts, found.row, degrees)
    logs: Floats = np.log1p(counts)
    return logs


def _column(hits: Hits, nodes: Numbers) -> Floats:
    scores = dict(zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True))
    return np.array([scores.get(node, 0.0) for node in nodes.tolist()], np.float64)


def _share(values: Floats) -> Floats:
    most = float(values.max(initial=0.0))
    return values / most if most > 0.0 else np.zeros(len(values))


def _rank(scores: Floats) -> Floats:
    """1 for the best, 1/2 for the second, 1/3 ...; 0 for what has no score."""
    ranks: Floats = np.where(scores > 0.0, reciprocal(scores), 0.0)
    return ranks


def _is_later(written: datetime | None, since: datetime | None) -> float:
    return float(written is not None and since is not None and written > since)


def _tiers(columns: Columns, row: int) -> dict[str, float]:
    """What each channel gave to a passage; a channel that did not find it is left out."""
    names = {"lexical": "words", "lexical_near": "words_there", "vector": "cosine_there_rank"}
    tiers = {tier: float(columns[name][row]) for tier, name in names.items() if columns[name][row] > 0.0}
    if columns["reference"][row] > 0.0:
        tiers["reference"] = float(columns["reference_rare"][row])
    for tier, name in (("ppr", "walk"), ("alike", "alike")):
        if columns[name][row] > columns[name].min():
            tiers[tier] = float(np.exp(columns[name][row]))
    return tiers
