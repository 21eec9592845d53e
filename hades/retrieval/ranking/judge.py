"""By hand or learned; whether to answer at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers, Passage, RankerState
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import VECTOR, FoundPassage, FoundPath, Question, rank_by_worth
from hades.retrieval.core.words import Body, Wording, fitted_file, links, match_titles, passage_body, wording, words
from hades.retrieval.features.passages import (
    Columns,
    Pool,
    ReachState,
    Support,
    in_turn,
    look_closer,
    pairwise_features,
    passage_features,
    reciprocal,
    spread,
    weigh,
)
from hades.retrieval.features.sentences import Floats, QuestionWords, Reading, read_closely, wanted
from hades.retrieval.ranking.abstain import should_abstain
from hades.retrieval.search.second_hop import ANCHORS, KEPT, Net, cast_net
from models.kernels import unit_rows
from models.ranker.infer import BadModel, Head, RankerModel, matrix, unpack
from schemas.plan import Reason

# Who ranks what was found: weights by hand, or a ranker that was fitted; whoever asks notices no difference (B12).


class Judge:
    """Orders passages and paths, best first, and says when nothing supports an answer: by weights that people chose."""

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """The passages with the best `m` read and ranked; others than those found may be among them."""
        return rerank(view, question, found, m)

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """(n,) the worth of passages that a walk brought up and read; only differences mean something."""
        return look_closer(pool, want)

    def adjust(self, nodes: Sequence[int], worth: Floats, columns: Callable[[], Columns]) -> Floats:
        """(n,) the worth that the default recipe gave, with what this corpus taught about its columns; here nothing."""
        return worth

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """The paths, of which the first `len(texts)` were put into words, in the order to show them."""
        return rerank_paths(question, paths, texts, len(texts))

    def support(
        self, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage], unknown: float = 0.0
    ) -> Support:
        """What speaks for answering with these passages."""
        similarities = [passage.tiers[VECTOR] for passage in passages if VECTOR in passage.tiers]
        return should_abstain(question, read, max(similarities, default=None), unknown)


BY_HAND = Judge()


def judge_of(view: MeteredView, question: Question) -> Judge:
    """The ranker of the snapshot; weights by hand where it has none."""
    return learned_judge(view, question) if view.info.parts.get("ranker") else BY_HAND


def ranks_of(scores: Floats) -> list[int]:
    """Places best first; ties fall to the earlier place."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


# A closer look at the best candidates: read them, weigh them again, and take them so that they complete each other.
# First cosine, BM25 among the candidates, titles the question spells, and what earlier stages gave. Then greedily: a
# candidate gains by question words that nothing before it holds (coverage, as in maximal coverage selection) and by
# being named in a text already taken, for the second step of a question is named in the first. docs/retrieval.md has
# the figures that chose the weights.


_TITLE, _EARLIER = 0.5, 0.5  # what a spelled title and the score so far count beside cosine and words


def rerank(view: MeteredView, question: Question, passages: Sequence[FoundPassage], m: int) -> list[FoundPassage]:
    """The passages with the best `m` in a new order; the others follow as they were.

    Each of the `m` is read once. Where the budget ends the reading, the unread stay behind the read.
    """
    texts = view.passages(np.array([one.node for one in passages[:m]], np.int64))
    if not texts:
        return list(passages)
    looked_at, rest = passages[: len(texts)], passages[len(texts) :]
    bodies = [passage_body(text.title, text.text) for text in texts]
    spoken = wording(question.text, bodies)
    titles = [text.title for text in texts]
    earlier = np.array([one.score for one in looked_at], np.float64)
    title = match_titles(question.text, titles)
    worth = _weigh_by_hand(_similarity(view, question, looked_at), spoken, title, earlier)
    linked = links(titles, bodies, [text.document for text in texts])
    order, gains = in_turn(worth, spoken, linked)
    return _rescore([looked_at[place] for place in order], gains, rest)


def _weigh_by_hand(cosine: Floats, spoken: Wording, title: Floats, earlier: Floats) -> Floats:
    """(n,) in [0, 1]: what a passage counts before it is taken beside others."""
    told = spread(cosine) + spread(spoken.bm25) + _TITLE * title + _EARLIER * spread(earlier)
    return told / (2.0 + _TITLE + _EARLIER)


def rerank_paths(question: Question, paths: Sequence[FoundPath], texts: Sequence[str], m: int) -> list[FoundPath]:
    """The paths with the best `m` in a new order: their own score, their words, and question words not yet covered.

    `texts` are the paths in words, which whoever calls has read already.
    """
    best = paths[:m]
    if not best:
        return list(paths)
    spoken = wording(question.text, [Body(words(text)) for text in texts[: len(best)]])
    own = np.array([path.score for path in best], np.float64)
    worth = (spread(own) + spread(spoken.bm25)) / 2
    order, _ = in_turn(worth, spoken, np.zeros((len(best), len(best))))
    return [best[place] for place in order] + list(paths[len(best) :])


def _similarity(view: MeteredView, question: Question, passages: Sequence[FoundPassage]) -> Floats:
    """Cosine of each passage with the question; 0 where either has no vector."""
    if question.vector is None:
        return np.zeros(len(passages))
    vectors, there = view.vectors(np.array([one.node for one in passages], np.int64), model=question.model)
    if not there.any():
        return np.zeros(len(passages))
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = (vectors @ question.vector) / np.where(lengths > 0, lengths, 1.0)
    return np.where(there, cosines, 0.0).astype(np.float64)


def _rescore(taken: Sequence[FoundPassage], gains: Sequence[float], rest: Sequence[FoundPassage]) -> list[FoundPassage]:
    """Scores that fall with the rank: of the taken what they gained, of the rest their own, below all of them."""
    result: list[FoundPassage] = []
    ceiling = 1.0
    for one, gain in zip(taken, gains, strict=True):
        ceiling = min(ceiling, gain)
        result.append(replace(one, score=ceiling, tiers={**one.tiers, "rerank": gain}))
    highest = max((one.score for one in rest), default=0.0)
    scale = ceiling / highest if highest > ceiling else 1.0
    return result + [replace(one, score=one.score * scale) for one in rest]


# Paths described by numbers for a learned ranker: how long, how strong, what they say, where they lead.


LIKENED = frozenset({"similar_to", "related_to", "coref"})  # edges that only say that two names are alike or near


def path_columns(
    view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str], known: ReachState
) -> dict[str, Floats]:
    """The columns `models.ranker.infer.PATH`; `texts` are the paths in words, one each, so all was read before."""
    score = np.array([path.score for path in paths], np.float64)
    spoken = wording(question.text, [Body(words(text)) for text in texts]).bm25
    cosines, (weights, likened) = _cosines(view, question, paths), _edges(view, paths)
    steps, asked = _states(paths, known)
    return {
        "score": spread(score),
        "score_rank": reciprocal(score),
        "reliability": np.array([path.reliability for path in paths], np.float64),
        "words": spread(spoken),
        "words_rank": reciprocal(spoken),
        "hops": np.array([len(path.edges) for path in paths], np.float64),
        "weight_mean": np.array([one.mean() for one in weights]),
        "weight_least": np.array([one.min() for one in weights]),
        "cosine_mean": np.array([one.mean() for one in cosines]),
        "cosine_best": np.array([one.max() for one in cosines]),
        "cosine_end": np.array([one[-1] for one in cosines]),
        "state_asked": asked,
        "state_steps": steps,
        "is_joined": np.array([float(path.origin != "beam") for path in paths]),
        "likened": likened,
    }


def _cosines(view: MeteredView, question: Question, paths: Sequence[FoundPath]) -> list[Floats]:
    """The cosine of each node of each path with the question."""
    nodes = np.array(list(chain.from_iterable(path.nodes for path in paths)), np.int64)
    found = np.zeros(len(nodes))
    if question.vector is not None:
        found = view.cosines(question.vector, nodes, model=question.model).astype(np.float64)
    return np.split(found, np.cumsum([len(path.nodes) for path in paths])[:-1])


def _edges(view: MeteredView, paths: Sequence[FoundPath]) -> tuple[list[Floats], Floats]:
    """The weights along each path, 1 where there is none; and the share of its edges that only liken."""
    weights, likened = [], []
    for path in paths:
        facts = view.edges(np.array(path.edges, np.int64))
        own = [1.0 if fact.weight is None else fact.weight for fact in facts]
        weights.append(np.array(own or [1.0], np.float64))
        likened.append(sum(fact.type in LIKENED for fact in facts) / max(1, len(facts)))
    return weights, np.array(likened, np.float64)


def _states(paths: Sequence[FoundPath], known: ReachState) -> tuple[Floats, Floats]:
    """How alike neighbours on a path are by their states, and how near its nearest node is to the question."""
    if known.states is None:
        return np.zeros(len(paths)), np.zeros(len(paths))
    steps, asked = [], []
    for path in paths:
        own = known.states[list(path.nodes)].astype(np.float32)
        steps.append(float((own[:-1] * own[1:]).sum(axis=1).mean()) if len(own) > 1 else 1.0)
        asked.append(float((own @ known.asked).max()) if known.asked is not None else 0.0)
    return np.array(steps), np.array(asked)


# Passages that were read, described by numbers for a learned ranker: each alone, beside the others, and as by hand.


def describe(question: str, pool: Pool, want: QuestionWords, earlier: Floats) -> dict[str, Floats]:
    """The columns `models.ranker.infer.READ` of a pool; `earlier` is what an earlier stage gave."""
    alone, linked = passage_features(pool, want)
    looks = fitted_file("multihop")
    first = weigh(alone, looks["first"])
    beside = pairwise_features(pool, want, first, linked)
    worth = weigh(beside, looks["second"])
    cosine = (pool.vectors @ pool.asked).astype(np.float64)
    titles = [reading.title for reading in pool.readings]
    bodies = [[*words(reading.title), *" ".join(reading.spoken).split()] for reading in pool.readings]
    return {
        **{f"alone_{name}": column for name, column in alone.items()},
        **{f"beside_{name}": column for name, column in beside.items()},
        "worth": worth - worth.max(),
        "worth_rank": reciprocal(worth),
        "worth_place": np.log(reciprocal(worth)),
        **_by_hand(question, titles, bodies, cosine, earlier),
        "cosine_rank": reciprocal(cosine),
    }


def doubts(scores: Floats, described: dict[str, Floats], reach: Floats, cosine: Floats) -> dict[str, Floats]:
    """The columns `models.ranker.infer.SURE`: what says whether a passage supports an answer at all."""
    shares = np.exp(scores - scores.max())
    ranked = np.sort(scores)[::-1]
    ahead = float(ranked[0] - ranked[1]) if len(ranked) > 1 else 0.0
    ones = np.ones(len(scores))
    return {
        "share": shares / shares.sum(),
        "gap": np.maximum(scores - scores.max(), -12.0),
        "place": reciprocal(scores),
        "margin": ahead * ones,
        "cosine": cosine,
        **{name: described[f"alone_{name}"] for name in ("words", "title_words", "best_sentence")},
        "title": described["title"],
        "most_cosine": cosine.max() * ones,
        "most_words": described["alone_words"].max() * ones,
        "reach": np.maximum(reach - reach.max(), -12.0),
    }


def _by_hand(
    question: str, titles: Sequence[str], bodies: Sequence[Sequence[str]], cosine: Floats, earlier: Floats
) -> dict[str, Floats]:
    """What the weights by hand think, and in which order they would take the passages."""
    texts = [Body(body) for body in bodies]
    spoken = wording(question, texts)
    title = match_titles(question, titles)
    hand = _weigh_by_hand(cosine, spoken, title, earlier)
    order, gains = in_turn(hand, spoken, links(titles, texts, titles))
    gain, place = np.empty(len(hand)), np.empty(len(hand))
    gain[order], place[order] = np.minimum.accumulate(gains), np.arange(len(hand))
    return {
        "hand": hand,
        "gain": gain - gain.max(),
        "gain_rank": 1.0 / (1.0 + place),
        "gain_place": -np.log1p(place),
        "bm25": spread(spoken.bm25),
        "bm25_rank": reciprocal(spoken.bm25),
        "title": title,
    }


# The learned ranker as it serves: numpy over arrays of the snapshot, no read and no library more than by hand.
# Passages: the net is cast twice around the best ones (`reach`), the most promising are read, and a small network
# orders them by what they say (`described`). Paths: a small network over hops, weights, words and states. A head
# that the gate left out, or a question that cannot be compared, is judged by hand.


CONFIDENCE = "confidence"
LIKELY = 0.5


def learned_judge(view: MeteredView, question: Question) -> Judge:
    """The ranker of the snapshot; weights by hand, with the reason, where it cannot be asked."""
    fitted = view.fitted()
    model = None if fitted is None else _model(fitted)
    if fitted is None or model is None or not _fits(model, fitted, question):
        view.turn.because(Reason.RANKER_UNAVAILABLE)
        return BY_HAND
    if not len(fitted.states):  # only the default ranking was learned
        return LearnedJudge(model, ReachState())
    asked = model.question_state(np.asarray(question.vector, np.float32))
    return LearnedJudge(model, ReachState(fitted.states, asked))


@dataclass(frozen=True)
class PassagePool:
    """Passages that were read, with what is known of them before the network judges."""

    found: list[FoundPassage]
    described: dict[str, Floats]
    columns: dict[str, Floats]
    reach: Floats
    cosine: Floats


class LearnedJudge(Judge):
    """A `Judge` by a fitted model."""

    def __init__(self, model: RankerModel, known: ReachState) -> None:
        self._model, self._known = model, known

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """See `Judge.passages`."""
        reach, again, read = (self._model.head(name) for name in ("reach", "again", "read"))
        if reach is None or again is None or read is None or not found or m < 1:
            return super().passages(view, question, found, m)
        first = first_net(view, question, found, self._known)
        second = second_net(view, question, found, first, _scores(reach, "reach", first.columns), self._known)
        pooled = read_best(view, question, second, _scores(again, "again", second.columns), m, found)
        if pooled is None or view.turn.expired():
            return list(found)
        scores = _scores(read, "read", pooled.columns)
        return self._order(pooled, scores) + [one for one in found[m:] if one.node not in set(second.nodes.tolist())]

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """See `Judge.walked`."""
        head = self._model.head("walk")
        if head is None:
            return super().walked(question, nodes, pool, want)
        return _scores(head, "walk", describe(question.text, pool, want, pool.walk))

    def adjust(self, nodes: Sequence[int], worth: Floats, columns: Callable[[], Columns]) -> Floats:
        """See `Judge.adjust`: in units of the spread of the worth."""
        head = self._model.head("default")
        return worth if head is None else worth + float(worth.std()) * _scores(head, "default", columns())

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """See `Judge.paths`."""
        head = self._model.head("path")
        if head is None or not texts:
            return super().paths(view, question, paths, texts)
        looked_at = list(paths[: len(texts)])
        scores = _scores(head, "path", path_columns(view, question, looked_at, texts, self._known))
        return [looked_at[place] for place in ranks_of(scores)] + list(paths[len(texts) :])

    def support(
        self, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage], unknown: float = 0.0
    ) -> Support:
        """See `Judge.support`. Where the rule by hand doubts too, the best must be more likely right than not."""
        known = [one.tiers[CONFIDENCE] for one in passages if CONFIDENCE in one.tiers]
        by_hand = super().support(question, passages, read, unknown)
        if not known:
            return by_hand
        best = max(known)
        needed = LIKELY if by_hand.should_abstain else self._model.doubt
        why = f"confidence of the best passage {best:.2f}, {needed:.2f} needed; {by_hand.why}"
        return replace(by_hand, margin=best - needed, why=why)

    def _order(self, pooled: PassagePool, scores: Floats) -> list[FoundPassage]:
        """Best first; scores fall from 1, and `confidence` says how likely each supports an answer."""
        sure = self._model.head("sure")
        tiers = [one.tiers for one in pooled.found]
        if sure is not None:
            columns = doubts(scores, pooled.described, pooled.reach, pooled.cosine)
            chances = self._model.confidence(sure.score(matrix("sure", columns)))
            tiers = [{**own, CONFIDENCE: float(chance)} for own, chance in zip(tiers, chances, strict=True)]
        return rank_by_worth([one.node for one in pooled.found], scores, tiers.__getitem__)


def first_net(view: MeteredView, question: Question, found: Sequence[FoundPassage], known: ReachState) -> Net:
    """Around the best of what the searches found."""
    anchors = np.array([one.node for one in found[:ANCHORS]], np.int64)
    return cast_net(view, question, found, anchors, known)


def second_net(
    view: MeteredView, question: Question, found: Sequence[FoundPassage], first: Net, scores: Floats, known: ReachState
) -> Net:
    """Around the best of the first net; its own best stay."""
    best = first.nodes[ranks_of(scores)]
    return cast_net(view, question, found, best[:ANCHORS], known, best[:KEPT].tolist())


def read_best(
    view: MeteredView, question: Question, net: Net, scores: Floats, m: int, found: Sequence[FoundPassage]
) -> PassagePool | None:
    """Read the `m` most promising and describe them; None where the budget allows none."""
    order = np.array(ranks_of(scores)[:m], np.int64)
    texts = view.passages(net.nodes[order])
    order = order[: len(texts)]
    if not len(order):
        return None
    nodes, reach = net.nodes[order], np.asarray(scores, np.float64)[order]
    readings = [read_closely(text) for text in texts]
    vectors = _units(view, question, nodes)
    asked = np.asarray(question.vector, np.float32)
    own = {name: column[order] for name, column in net.columns.items()}
    walk = np.exp(reach - reach.max())
    pool = Pool(readings, walk, own["linked_sum"] + 1e-6, own["lexical"], vectors, asked)
    described = describe(question.text, pool, _question_words(view, question, readings), reach)
    columns = {**described, **{f"net_{name}": column for name, column in own.items()}, "reach": reach - reach.max()}
    tiers = {one.node: one.tiers for one in found}
    cosine = (vectors @ asked).astype(np.float64)
    passages = [
        FoundPassage(node, 0.0, tiers.get(node, {"graph": float(own["linked_sum"][place])}))
        for place, node in enumerate(nodes.tolist())
    ]
    return PassagePool(passages, described, columns, reach, cosine)


def _question_words(view: MeteredView, question: Question, readings: Sequence[Reading]) -> QuestionWords:
    """What the question asks for; its names are the spelled-out entities with a capital."""
    found = view.match_names(question.text)
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    names = [question.text[start:end] for start, end in spans]
    return wanted(question.text, [name for name in names if name[:1].isupper()], readings)


def _units(view: MeteredView, question: Question, nodes: Numbers) -> NDArray[np.float32]:
    vectors, _ = view.vectors(nodes, model=question.model)
    return unit_rows(vectors)


def _scores(head: Head, name: str, columns: Mapping[str, Floats]) -> Floats:
    return head.score(matrix(name, columns)).astype(np.float64)


@lru_cache(maxsize=4)
def _model(fitted: RankerState) -> RankerModel | None:
    """The model of a snapshot, laid out once; None where this version cannot use it."""
    try:
        return unpack(fitted.signature.tobytes(), fitted.numbers)
    except BadModel:
        return None


def _fits(model: RankerModel, fitted: RankerState, question: Question) -> bool:
    """Whether the question's vector is of the model's kind, and the states are of this graph."""
    width = (len(fitted.states), int(model.signature["state"]))
    return question.vector is not None and question.model == model.signature["model"] and fitted.states.shape == width
