"""The search of the default recipe: candidates of every channel, one walk, and one more from what
was read.

Words, vectors of the question and of its clauses, stated times, neighbours in the telling and a
walk from what the question names give candidates. The most promising are read. The names in their
fitting sentences start the second walk, which brings the rest, unless no name leads on. At most `m`
passages are read in all: the share of the reranker.
"""

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
from hades.retrieval.search.memory_search import NEXT, ORDER_EDGES, ChannelDepths, search_channels
from hades.retrieval.search.restart import as_seeds, named_entities
from hades.retrieval.search.seeds import nearest_chunks
from hades.retrieval.search.walk_search import HippoRules, WalkSearch, chunk_scores
from hades.text.dates import Interval, time_asked
from schemas.plan import Reason

Pick = Callable[[Columns, bool, bool], Floats]
MOSTLY = 0.5  # share of sections among the sample that makes a corpus a manual
_SAMPLE = 3  # candidates that are read to see whether they stand in sections
_CHANNELS = ChannelDepths(depth=200, searched=60)
_FIRST_SHARE = 0.6  # of the reads that come before the second walk
_CLAUSE = 12  # passages that each clause finds
_STARTS = 32  # nodes that the first walk starts from which the evidence names, at most
_ORDER_SAMPLE = 8  # candidates whose edges show whether the corpus states an order


@dataclass(frozen=True)
class Evidence:
    """Passages that were read, arrays of one length, with what every channel knows of them.

    `pool` and `want` describe them for the closer look, `columns` are the channels' figures by
    name. `unread` are the candidates that nobody read, best guess first. `entities` are what the
    question names, `starts` all that the first walk started from, heaviest first. `states_order`:
    whether the corpus states an order.
    """

    nodes: list[int]
    passages: list[Passage]
    pool: Pool
    want: QuestionWords
    columns: Columns
    unread: list[int]
    entities: list[Seed]
    time: Interval | None
    states_order: bool
    starts: Sequence[Seed] = ()

    @property
    def names_a_passage(self) -> bool:
        """Whether the question spells a title that one passage alone has: what the fused ranking
        was fitted on.
        """
        titles = Counter(reading.title for reading in self.pool.readings)
        return any(
            reading.own_name and reading.name in self.want.text and titles[reading.title] == 1
            for reading in self.pool.readings
        )

    @property
    def share_of_sections(self) -> float:
        """How many of the passages stand below a heading."""
        return _share_of_sections(self.passages)

    @property
    def why(self) -> str:
        """What of the question and the corpus set the weights, in words."""
        count = {0: "no entity", 1: "one entity"}.get(
            len(self.entities),
            f"{len(self.entities)} entities",
        )
        facts = [f"the question names {count}"]

        if self.states_order:
            facts.append("the passages are turns of a conversation or log")
        if self.time is not None:
            facts.append("the question asks about a time")

        return "; ".join(facts)


def search_evidence(
    view: MeteredView,
    parts: Sequence[Question],
    m: int,
    pick: Pick,
    rules: HippoRules = HippoRules(),
) -> Evidence:
    """Gather and read at most `m` passages for the first part, which is the question; the others
    are its clauses.
    """
    return _EvidenceSearch(view, parts, rules, pick).gather(m)


class _EvidenceSearch(WalkSearch):
    def __init__(
        self,
        view: MeteredView,
        parts: Sequence[Question],
        rules: HippoRules,
        pick: Pick,
    ) -> None:
        super().__init__(view, parts[0], rules)
        self._parts = parts
        self._pick = pick
        self._passages: dict[int, Passage] = {}

    def gather(self, m: int) -> Evidence:
        view = self._view
        question = self._question
        rules = self._rules
        time = time_asked(question.text, question.mask.as_of)
        entities = named_entities(view, question.text, rules.walk)

        if not entities:
            view.turn.because(Reason.NO_ENTITY_MATCH)

        start = self.start(entities)
        walked = chunk_scores(
            view,
            self.walk(start),
            _CHANNELS.depth,
        )

        clause_hits = []
        for part in self._parts[1:]:
            clause_hits.append(nearest_chunks(view, part, _CLAUSE))

        clause_scores = []
        for hits in clause_hits:
            if hits is not None:
                clause_scores.append(hits.by_number())

        candidates, channels = search_channels(
            view,
            question,
            time,
            _CHANNELS,
            walked=walked,
            other_channels=clause_scores,
        )
        features = dated_features(channels)
        states_order = self._states_order(candidates)
        names_something = any(entity.is_name for entity in entities)
        by_both = _best_first(candidates, self._pick(features, False, False))
        order = _best_first(candidates, self._pick(features, states_order, names_something))

        if not states_order:
            order = _alternate(order, by_both)

        hops = rules.hops
        nodes = self._read_first(order, min(m, _SAMPLE))
        sample = [self._passages[node] for node in nodes]

        if not states_order and _share_of_sections(sample) > MOSTLY:
            # Names lead nowhere among sections: words and vectors choose what is read.
            order = list(dict.fromkeys([*nodes, *by_both]))
            hops = 0

        nodes = self._read_first(order, max(1, round(_FIRST_SHARE * m)) if hops else m)
        if hops and not (states_order or names_something or self._share_linked(nodes)):
            hops = 0
            nodes = self._read_first(order, m)

        mass = start
        for _ in range(hops):
            if not nodes or view.turn.expired():
                break

            mass = self.moved(mass, nodes, entities)
            walked_nodes = list(chunk_scores(view, self.walk(mass), m))
            nodes = self._read_first([*nodes, *_alternate(walked_nodes, order)], m)

        row = {}
        for place, node in enumerate(candidates.tolist()):
            row[node] = place

        places = np.array([row.get(node, -1) for node in nodes], np.int64)
        node_features = {}
        for name, column in features.items():
            node_features[name] = _rows(column, places)

        by_words = {}
        for node in nodes:
            if node in row:
                by_words[node] = float(channels.words[row[node]])

        passages = [self._passages[node] for node in nodes]
        columns: Columns = {}
        if passages:
            columns = dated_pair_features(
                question.text,
                time,
                passages,
                node_features,
            )

        read_nodes = set(nodes)
        return Evidence(
            nodes=nodes,
            passages=passages,
            pool=self.pool(nodes, by_words),
            want=self.question_words(nodes, entities),
            columns=columns,
            unread=[node for node in order if node not in read_nodes],
            entities=as_seeds(start, [entity.node for entity in entities]),
            time=time,
            states_order=states_order,
            starts=_heaviest(start, _STARTS),
        )

    def _share_linked(self, nodes: Sequence[int]) -> float:
        """The share of these passages that name another by its title, or are named so."""
        return share_linked([self._readings[node] for node in nodes])

    def _states_order(self, candidates: Numbers) -> bool:
        """Whether the corpus states an order; links between pages lie in the same collection and
        state none.
        """
        if not self._view.info.edges.get(ORDER_EDGES) or not len(candidates):
            return False

        sample = candidates[:_ORDER_SAMPLE]
        return (
            len(
                self._view.expand(
                    sample,
                    direction=ANY,
                    types=[NEXT],
                    fanout=1,
                )
            )
            > 0
        )

    def _read_first(self, order: Sequence[int], most: int) -> list[int]:
        """The first `most` of these, read; no more than the plan's passages are read in all."""
        nodes = list(dict.fromkeys(order))[:most]
        room = self._rules.caps.passages - len(self._passages)
        missing = [node for node in nodes if node not in self._passages][: max(0, room)]

        if missing:
            passages = self._view.passages(np.array(missing, np.int64))
        else:
            passages = []

        self._passages.update(zip(missing, passages, strict=False))
        return self.read_all([node for node in nodes if node in self._passages])


def _best_first(nodes: Numbers, scores: Floats) -> list[int]:
    ordered: list[int] = nodes[np.argsort(-scores, kind="stable")].tolist()
    return ordered


def _share_of_sections(passages: Sequence[Passage]) -> float:
    if passages:
        return sum(bool(passage.headings) for passage in passages) / len(passages)
    return 0.0


def _heaviest(mass: Mapping[int, float], most: int) -> list[Seed]:
    """The nodes with the most mass, as shares of the heaviest; equal ones by number."""
    ranked = sorted(mass, key=lambda node: (-mass[node], node))[:most]
    return [
        Seed(
            node,
            mass[node] / mass[ranked[0]],
            {"walk": mass[node]},
        )
        for node in ranked
        if mass[node] > 0.0
    ]


def _rows(column: Floats, places: Numbers) -> Floats:
    """The column at these places; its least value where a place is -1."""
    if not len(column):
        return np.zeros(len(places))
    return np.where(
        places >= 0,
        column[places],
        min(0.0, float(column.min())),
    )


def _alternate(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Two of the first, one of the second, and so on; each node once."""
    mixed: list[int] = []
    for place in range(max(len(first), 2 * len(second))):
        mixed += first[place : place + 1]
        if place % 2:
            mixed += second[place // 2 : place // 2 + 1]

    return list(dict.fromkeys(mixed))
