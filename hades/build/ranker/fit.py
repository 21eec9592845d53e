"""One ranker from replayed questions: states of nodes, then one head after the other, each on what the last one chose.

Nothing is fitted to a question's own answer and then judged by it: a head's candidates come from heads, and its states
from networks, that have not seen the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hades.build.ranker.questions import SEARCHED, WALKED, ReplayedQuestion, offline
from hades.ports.graph import Numbers
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.types import FoundPath
from hades.retrieval.features.passages import ReachState
from hades.retrieval.ranking.judge import (
    BY_HAND,
    PassagePool,
    describe,
    doubts,
    first_net,
    path_columns,
    ranks_of,
    read_best,
    second_net,
)
from hades.retrieval.search.second_hop import Net
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import graph_of
from models.ranker.infer import (
    FORMAT,
    HEADS,
    VERSION,
    Choices,
    Curve,
    Head,
    HeadRules,
    Lists,
    RankerModel,
    StateRules,
    doubt_threshold,
    folds,
    hold_out,
    isotonic,
    join,
    matrix,
    node_states,
    prior_of,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ranking = tuple[str, ...]
HALVES = 2  # networks of states that have not seen half of the questions


@dataclass(frozen=True)
class RankerRules:
    """How a ranker is fitted; `held` is the share of the newest logged questions that only the gate sees."""

    states: StateRules = field(default_factory=StateRules)
    heads: HeadRules = field(default_factory=HeadRules)
    n_folds: int = 5
    held: float = 0.2


@dataclass(frozen=True)
class Material:
    """A published graph and the questions that were asked of it again."""

    name: str
    view: GraphView
    asked: Sequence[ReplayedQuestion]


@dataclass(frozen=True)
class Unseen:
    """What a model makes of questions that it has not seen: rankings by recipe, confidence and whether it was right.

    `best` is the confidence of the best passage of each question, twice: with its gold there, and without. `paths` is
    the reciprocal rank of the first good path as learned and as by hand; None where no path is good, or all are.
    """

    rankings: Mapping[str, list[Ranking]]
    chances: Floats
    right: Floats
    best: Floats
    answerable: NDArray[np.bool_]
    paths: Sequence[tuple[float, float] | None] = ()


@dataclass(frozen=True)
class Fit:
    """A fitted ranker with the cases it was fitted to, the set of each, and its curves."""

    model: RankerModel
    cases: tuple[ReplayedQuestion, ...]
    sets: tuple[str, ...]
    unseen: Unseen
    curves: Mapping[str, Curve]


def fit_ranker(
    materials: Sequence[Material], model: str, data_hash: str, rules: RankerRules, progress: ProgressReport = silent
) -> Fit:
    """Fit every head; `model` is the tag of the vectors, `data_hash` that of everything that went in."""
    work = _Work(materials, rules, progress)
    work.fit_states(model)
    reach = work.fit("reach", [work.net("reach", place, work.first_net(place)) for place in work.every])
    nets = [work.second_net(place, reach[place]) for place in work.every]
    again = work.fit("again", [work.net("again", place, nets[place]) for place in work.every])
    pooled = [work.read(place, nets[place], again[place]) for place in work.every]
    read = work.fit("read", [work.pool(place, pooled[place]) for place in work.every])
    walk = work.fit("walk", [work.walk(place) for place in work.every])
    routes = [work.path(place) for place in work.every]
    path = work.fit("path", routes)
    sure = work.fit_sure(nets, pooled, again, read)
    signature = {
        "format": FORMAT,
        "features": VERSION,
        "columns": {name: list(columns) for name, columns in HEADS.items() if f"{name}.line" in work.arrays},
        "model": model,
        "state": rules.states.state,
        "data_hash": data_hash,
        "doubt": round(doubt_threshold(sure.best, sure.answerable), 4),
    }
    rankings = {
        SEARCHED: [work.ranking(place, [one.node for one in pooled[place].found], read[place]) for place in work.every],
        WALKED: [work.ranking(place, work.cases[place].nodes, walk[place]) for place in work.every],
    }
    fitted = RankerModel(signature, work.arrays)
    paths = [work.first_good_path(place, routes[place], path[place]) for place in work.every]
    unseen = replace(sure, rankings=rankings, paths=paths)
    return Fit(fitted, tuple(work.cases), tuple(work.sets), unseen, work.curves)


@dataclass(frozen=True)
class _Block:
    """The candidates of one question for one head; `counts` marks those that it may be learned from."""

    columns: Singles
    wanted: Singles
    counts: NDArray[np.bool_]

    @property
    def taught(self) -> tuple[Singles, Singles]:
        """What of it may be learned from."""
        return self.columns[self.counts], self.wanted[self.counts]

    def teaches(self, each: bool) -> bool:
        """Whether there is something to learn: for candidates one by one any, else some of both sorts."""
        return bool(self.counts.any() if each else 0 < self.wanted[self.counts].sum() < self.counts.sum())


class _Work:
    """A fit on its way: the cases of all sets one after the other, and the arrays found so far."""

    def __init__(self, materials: Sequence[Material], rules: RankerRules, progress: ProgressReport) -> None:
        self.rules, self.progress = rules, progress
        self.materials = materials
        self.cases = [case for material in materials for case in material.asked]
        self.sets = [material.name for material in materials for _ in material.asked]
        self.every = range(len(self.cases))
        owners = [place for place, material in enumerate(materials) for _ in material.asked]
        views = [offline(material.view) for material in materials]
        self.owners, self.views = owners, [views[owner] for owner in owners]
        texts = [case.asked.text for case in self.cases]
        self.fold = folds(texts, rules.n_folds)
        times = [case.asked.at for case in self.cases]
        timed = np.array([at is not None for at in times], np.bool_)
        self.is_held = hold_out(texts, times, rules.held) & timed
        size = {name: self.sets.count(name) for name in self.sets}
        self.weights = [
            case.asked.weight * len(self.cases) / (len(size) * size[name])
            for case, name in zip(self.cases, self.sets, strict=True)
        ]
        self.arrays: dict[str, Singles] = {}
        self.curves: dict[str, Curve] = {}
        self.known = [ReachState()] * len(self.cases)

    def fit_states(self, model: str) -> None:
        """The network over all graphs, and for each half of the questions one that has not seen it."""
        from models.ranker.fit import fit_states  # the door to torch

        graphs = [graph_of(material.view, model) for material in self.materials]
        whole, offsets = join(graphs)
        taught = [place for place in self.every if not self.is_held[place]]
        choices, owners = self._choices(taught, offsets)
        self.arrays, self.curves["states"] = fit_states(whole, choices, self.rules.states, self.progress)
        for half in range(HALVES):
            inside = np.flatnonzero(np.array([self.fold[place] % HALVES != half for place in owners], np.bool_))
            arrays, _ = fit_states(whole, choices.subset(inside), self.rules.states, self.progress)
            network = RankerModel({}, arrays)
            states = [node_states(network, one.features, one.starts, one.targets) for one in graphs]
            for place in self.every:
                if self.fold[place] % HALVES == half:
                    asked = network.question_state(np.asarray(self.cases[place].question.vector, np.float32))
                    self.known[place] = ReachState(states[self.owners[place]], asked)

    def fit(self, head: str, blocks: Sequence[_Block], *, each: bool = False) -> list[Floats]:
        """Fit a head and keep it; the scores of every block by a head that has not seen its question."""
        from models.ranker.fit import fit_head

        case = np.arange(len(blocks)) % len(self.cases)  # the blocks may go round the cases more than once
        usable = [place for place, block in enumerate(blocks) if not self.is_held[case[place]] and block.teaches(each)]
        if not usable:
            return [np.zeros(len(block.wanted)) for block in blocks]
        columns, wanted = zip(*(blocks[place].taught for place in usable), strict=True)
        lists = Lists(columns, wanted, np.array([self.weights[case[place]] for place in usable], np.float32))
        folded = self.fold[case[usable]]
        fitted = fit_head(lists, folded, self.rules.heads, prior_of(head), each=each, progress=self.progress)
        self.arrays |= {f"{head}.{name}": one for name, one in fitted.arrays.items()}
        self.curves[head] = fitted.curve
        taught = set(usable)
        return [
            Head(**(fitted.unseen(int(self.fold[case[place]])) if place in taught else fitted.arrays))
            .score(block.columns)
            .astype(np.float64)
            for place, block in enumerate(blocks)
        ]

    def fit_sure(
        self, nets: Sequence[Net], pooled: Sequence[PassagePool], again: Sequence[Floats], read: Sequence[Floats]
    ) -> Unseen:
        """The head that says whether a passage supports an answer, on questions with their gold and without it."""
        without = [self._without_gold(place, nets[place], again[place]) for place in self.every]
        reader = Head(**{part: self.arrays[f"read.{part}"] for part in Head.__dataclass_fields__})
        unread = [reader.score(matrix("read", own.columns)).astype(np.float64) for own in without]
        blocks = [
            self._doubts(place % len(self.cases), own, scores)
            for place, (own, scores) in enumerate(zip([*pooled, *without], [*read, *unread], strict=True))
        ]
        scores = self.fit("sure", blocks, each=True)
        every, right = np.concatenate(scores), np.concatenate([block.wanted for block in blocks]).astype(np.float64)
        places = np.concatenate([np.full(len(one), place) for place, one in enumerate(scores)])
        odd = (np.tile(self.fold, 2) % 2 == 1)[places]
        chances = np.empty(len(every))
        for half in (odd, ~odd):  # said of one half by what the other taught
            chances[half] = np.interp(every[half], *isotonic(every[~half], right[~half]))
        knots = isotonic(every, right)
        self.arrays["sure.from"], self.arrays["sure.to"] = (one.astype(np.float32) for one in knots)
        starts = np.cumsum([0, *(len(one) for one in scores)])
        best = np.maximum.reduceat(chances, starts[:-1])
        answerable = np.array([block.wanted.any() for block in blocks], np.bool_)
        return Unseen({}, chances, right, best, answerable)

    def first_net(self, place: int) -> Net:
        case = self.cases[place]
        return first_net(self.views[place], case.question, case.found, self.known[place])

    def second_net(self, place: int, scores: Floats) -> Net:
        case = self.cases[place]
        first = self.first_net(place)
        return second_net(self.views[place], case.question, case.found, first, scores, self.known[place])

    def read(self, place: int, net: Net, scores: Floats) -> PassagePool:
        case = self.cases[place]
        pooled = read_best(self.views[place], case.question, net, scores, case.m, case.found)
        assert pooled is not None  # training has no budget
        return pooled

    def net(self, head: str, place: int, net: Net) -> _Block:
        return _Block(matrix(head, net.columns), *self._judge(place, net.nodes))

    def pool(self, place: int, pooled: PassagePool) -> _Block:
        nodes = np.array([one.node for one in pooled.found], np.int64)
        return _Block(matrix("read", pooled.columns), *self._judge(place, nodes))

    def walk(self, place: int) -> _Block:
        case = self.cases[place]
        if case.pool is None or case.want is None or not case.nodes:
            return _nothing("walk")
        nodes = np.array(case.nodes, np.int64)
        columns = describe(case.question.text, case.pool, case.want, case.pool.walk)
        return _Block(matrix("walk", columns), *self._judge(place, nodes))

    def path(self, place: int) -> _Block:
        """A path is good where an edge of it was read in a gold document."""
        case = self.cases[place]
        if not case.paths or not case.asked.gold:
            return _nothing("path")
        columns = path_columns(self.views[place], case.question, case.paths, case.texts, self.known[place])
        wanted = np.array([bool(documents & case.asked.gold) for documents in case.path_documents], np.float32)
        return _Block(matrix("path", columns), wanted, np.ones(len(wanted), np.bool_))

    def first_good_path(self, place: int, block: _Block, scores: Floats) -> tuple[float, float] | None:
        """1 over the place of the first good path, as learned and as by hand; None where order says nothing."""
        case = self.cases[place]
        if not 0 < block.wanted.sum() < len(block.wanted):
            return None
        good = {path for path, liked in zip(case.paths, block.wanted.tolist(), strict=True) if liked}
        by_hand = BY_HAND.paths(self.views[place], case.question, case.paths, case.texts)
        learned = [case.paths[row] for row in ranks_of(scores)]
        return _first(learned, good), _first(by_hand, good)

    def ranking(self, place: int, nodes: Sequence[int], scores: Floats) -> Ranking:
        """Documents, best first, each once; as many as are shown."""
        order = np.array(nodes, np.int64)[ranks_of(scores)]
        return tuple(dict.fromkeys(one.document for one in self.views[place].passages(order)))

    def _doubts(self, place: int, pooled: PassagePool, scores: Floats) -> _Block:
        columns = matrix("sure", doubts(scores, pooled.described, pooled.reach, pooled.cosine))
        wanted, _ = self._judge(place, np.array([one.node for one in pooled.found], np.int64))
        return _Block(columns, wanted, np.ones(len(wanted), np.bool_))

    def _judge(self, place: int, nodes: Numbers) -> tuple[Singles, NDArray[np.bool_]]:
        asked, read = self.cases[place].asked, self.views[place].passages(nodes)
        wanted = np.array([asked.wants(one.id, one.document) for one in read], np.float32)
        return wanted, np.array([asked.compares(one.id) for one in read], np.bool_)

    def _choices(self, places: Sequence[int], offsets: NDArray[np.int64]) -> tuple[Choices, list[int]]:
        """The first nets as choices among nodes of the joined graph; questions of which nothing was wanted stay out."""
        vectors, nodes, wanted, owners = [], [], [], []
        for place in places:
            net = self.first_net(place)
            liked, counts = self._judge(place, net.nodes)
            if 0 < liked[counts].sum() < counts.sum():
                owners.append(place)
                vectors.append(np.asarray(self.cases[place].question.vector, np.float32))
                nodes.append(net.nodes[counts] + offsets[self.owners[place]])
                wanted.append(liked[counts])
        return Choices(np.stack(vectors), nodes, wanted), owners

    def _without_gold(self, place: int, net: Net, scores: Floats) -> PassagePool:
        """What would be read if nothing of what was wanted were in the graph."""
        wanted, _ = self._judge(place, net.nodes)
        left = wanted == 0
        rest = Net(net.nodes[left], {name: column[left] for name, column in net.columns.items()})
        return self.read(place, rest, scores[left])


def _first(paths: Sequence[FoundPath], good: set[FoundPath]) -> float:
    return 1.0 / next(rank for rank, path in enumerate(paths, 1) if path in good)


def _nothing(head: str) -> _Block:
    return _Block(np.zeros((0, len(HEADS[head])), np.float32), np.zeros(0, np.float32), np.zeros(0, np.bool_))
