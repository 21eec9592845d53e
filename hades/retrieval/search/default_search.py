"""The search of the default recipe: candidates of every channel, one walk, and one more from what was read.

Words, vectors of the question and of its clauses, stated times, neighbours in the telling and a walk from what the
question names give candidates. The most promising are read. The names in their fitting sentences start the second walk,
which brings the rest, unless no name leads on. At most `m` passages are read in all: the share of the reranker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import Numbers, Passage
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.core.words import ANY, Floats
from hades.retrieval.features.passages import Columns, Pool, dated_features, dated_pair_features
from hades.retrieval.features.sentences import QuestionWords, share_linked
from hades.retrieval.search.dated_passages import ChannelDepths, search_channels, was_said
from hades.retrieval.search.restart import as_seeds, named_entities
from hades.retrieval.search.seeds import nearest_chunks
from hades.retrieval.search.walk_search import HippoRules, WalkSearch, chunk_scores
from hades.text.dates import Interval, time_asked
from schemas.plan import Reason

Pick = Callable[[Columns, bool, bool], Floats]
TOLD, NEXT = "references", "next"  # the collection and the type of the edges that state an order of a corpus
MOSTLY = 0.5  # share of sections among the sample that makes a corpus a manual
_SAMPLE = 3  # candidates that are read to see whether they stand in sections
_CHANNELS = ChannelDepths(depth=200, searched=60)
_FIRST_SHARE = 0.6  # of the reads that come before the second walk
_CLAUSE = 12  # passages that each clause finds
_STARTS = 32  # nodes that the first walk starts from which are told, at most
_TOLD_SAMPLE = 8  # candidates whose edges tell whether there is one


@dataclass(frozen=True)
class Evidence:
    """Passages that were read, arrays of one length, with what every channel knows of them.

    `pool` and `want` describe them for the closer look, `columns` are the channels' figures by name. `unread` are the
    candidates that nobody read, best guess first. `entities` are what the question names, `starts` all that the first
    walk started from, heaviest first. `is_told`: whether the corpus states an order.
    """

    nodes: list[int]
    passages: list[Passage]
    pool: Pool
    want: QuestionWords
    columns: Columns
    unread: list[int]
    entities: list[Seed]
    asked: Interval | None
    is_told: bool
    clauses: Floats  # (n, clauses) cosine with each clause of the question
    starts: Sequence[Seed] = ()

    @property
    def names_a_passage(self) -> bool:
        """Whether the question spells a title that one passage alone has: what the fused ranking was fitted on."""
        titles = Counter(one.title for one in self.pool.readings)
        return any(one.own_name and one.name in self.want.text and titles[one.title] == 1 for one in self.pool.readings)

    @property
    def share_of_sections(self) -> float:
        """How many of the passages stand below a heading."""
        return _share_of_sections(self.passages)

    @property
    def why(self) -> str:
        """What of the question and the corpus set the weights, in words."""
        count = {0: "no entity", 1: "one entity"}.get(len(self.entities), f"{len(self.entities)} entities")
        said = [f"the question names {count}"]
        said += ["the passages are turns of a conversation or log"] if self.is_told else []
        return "; ".join([*said, *(["the question asks about a time"] if self.asked is not None else [])])


def search_evidence(
    view: MeteredView, parts: Sequence[Question], m: int, pick: Pick, rules: HippoRules = HippoRules()
) -> Evidence:
    """Gather and read at most `m` passages for the first part, which is the question; the others are its clauses."""
    return _EvidenceSearch(view, parts, rules, pick).gather(m)


class _EvidenceSearch(WalkSearch):
    def __init__(self, view: MeteredView, parts: Sequence[Question], rules: HippoRules, pick: Pick) -> None:
        super().__init__(view, parts[0], rules)
        self._parts, self._pick = parts, pick
        self._passages: dict[int, Passage] = {}

    def gather(self, m: int) -> Evidence:
        view, question, rules = self._view, self._question, self._rules
        asked = time_asked(question.text, question.mask.as_of)
        named = named_entities(view, question.text, rules.walk)
        if not named:
            view.turn.because(Reason.NO_ENTITY_MATCH)
        start = mass = self.start(named)
        walked = chunk_scores(view, self.walk(mass), _CHANNELS.depth)
        clauses = [nearest_chunks(view, part, _CLAUSE) for part in self._parts[1:]]
        others = [hits.by_number() for hits in clauses if hits is not None]
        candidates, heard = search_channels(view, question, asked, _CHANNELS, walked, others)
        first = dated_features(heard)
        is_told = self._is_told(candidates)
        names_something = any(one.is_name for one in named)
        order = candidates[np.argsort(-self._pick(first, is_told, names_something), kind="stable")].tolist()
        by_both = candidates[np.argsort(-self._pick(first, False, False), kind="stable")].tolist()
        order = order if is_told else _alternate(order, by_both)
        nodes = self._read_first(order, min(m, _SAMPLE))
        is_manual = not is_told and _share_of_sections([self._passages[node] for node in nodes]) > MOSTLY
        if is_manual:  # names lead nowhere among sections: words and vectors choose what is read
            order = list(dict.fromkeys([*nodes, *by_both]))
        hops = 0 if is_manual else rules.hops
        nodes = self._read_first(order, max(1, round(_FIRST_SHARE * m)) if hops else m)
        if hops and not (is_told or names_something or share_linked([self._readings[node] for node in nodes])):
            hops, nodes = 0, self._read_first(order, m)  # no name leads on
        for _ in range(hops):
            if not nodes or view.turn.expired():
                break
            mass = self.moved(mass, nodes, named)
            again = list(chunk_scores(view, self.walk(mass), m))
            nodes = self._read_first([*nodes, *_alternate(again, order)], m)
        row = {node: place for place, node in enumerate(candidates.tolist())}
        passages, read = [self._passages[node] for node in nodes], set(nodes)
        places = np.array([row.get(node, -1) for node in nodes], np.int64)
        seen = {name: _rows(column, places) for name, column in first.items()}
        by_words = {node: float(heard.words[row[node]]) for node in nodes if node in row}
        return Evidence(
            nodes,
            passages,
            self.pool(nodes, by_words),
            self.wanted(nodes, named),
            dated_pair_features(question.text, asked, passages, seen) if nodes else {},
            [node for node in order if node not in read],
            as_seeds(start, np.array([one.node for one in named], np.int64)),
            asked,
            is_told,
            self._clause_cosines(nodes),
            _heaviest(start, _STARTS),
        )

    def _is_told(self, candidates: Numbers) -> bool:
        """Whether the corpus states an order; links between pages lie in the same collection and state none."""
        if not self._view.info.edges.get(TOLD) or not len(candidates):
            return False
        return bool(len(self._view.expand(candidates[:_TOLD_SAMPLE], direction=ANY, types=[NEXT], fanout=1)))

    def _read_first(self, order: Sequence[int], most: int) -> list[int]:
        """The first `most` of these, read; one that had not been said at the question's moment is left out.

        What is read only to be left out counts too: no more than the plan's passages are read in all.
        """
        nodes = list(dict.fromkeys(order))[:most]
        room = self._rules.caps.passages - len(self._passages)
        missing = [node for node in nodes if node not in self._passages][: max(0, room)]
        read = self._view.passages(np.array(missing, np.int64)) if missing else []
        self._passages.update(zip(missing, read, strict=False))
        held = [node for node in nodes if node in self._passages and was_said(self._passages[node], self._question)]
        return self.read_all(held)

    def _clause_cosines(self, nodes: list[int]) -> Floats:
        vectors, asked = self.vectors(nodes)
        own = [part.vector for part in self._parts[1:] if part.vector is not None and len(part.vector) == len(asked)]
        if not own or len(asked) < 2:
            return np.zeros((len(nodes), 0))
        return (vectors @ np.stack(own).T).astype(np.float64)


def _share_of_sections(passages: Sequence[Passage]) -> float:
    return sum(bool(one.headings) for one in passages) / len(passages) if passages else 0.0


def _heaviest(mass: Mapping[int, float], most: int) -> list[Seed]:
    """The nodes with the most mass, as shares of the heaviest; equal ones by number."""
    ranked = sorted(mass.items(), key=lambda one: (-one[1], one[0]))[:most]
    return [Seed(node, weight / ranked[0][1], {"walk": weight}) for node, weight in ranked if weight > 0.0]


def _rows(column: Floats, places: Numbers) -> Floats:
    """The column at these places; its least value where a place is -1."""
    if not len(column):
        return np.zeros(len(places))
    return np.where(places >= 0, column[places], min(0.0, float(column.min())))


def _alternate(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Two of the first, one of the second, and so on; each node once."""
    mixed: list[int] = []
    for place in range(max(len(first), 2 * len(second))):
        mixed += first[place : place + 1]
        if place % 2:
            mixed += second[place // 2 : place // 2 + 1]
    return list(dict.fromkeys(mixed))
