"""The fitted ranker in numpy: data, features, confidence; two rankings compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.kernels import unit_rows

# What the ranker sees: of a node, of a passage before it is read, of a passage that was read, of a path. The names
# are the contract between who computes the numbers and who fits on them: a model that was fitted to other names, or
# to the same names meaning something else (`VERSION`), is not asked.


Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
VERSION = 1  # raise it with any change of what a column means
NET: tuple[str, ...] = (
    "searched", "searched_rank", "searched_place", "lexical", "graph",
    "linked", "linked_best", "linked_sum", "named", "named_best",
    "cosine", "cosine_gap", "cosine_rank", "remaining", "anchored",
    "state_asked", "state_best", "state_anchored", "degree",
)  # fmt: skip
_ALONE = (
    "walk", "walk_rank", "again", "again_rank", "cosine", "remaining_cosine", "lexical", "words", "title_words",
    "best_sentence", "first_sentence", "named", "spoken_of_by_named", "spoken_of", "speaks_of_named", "namesakes",
    "namesake_place",
)  # fmt: skip
_BESIDE = ("first", "share", "rank", "spoken_of", "speaks_of", "adds_to_1", "adds_to_2", "adds_to_4", "two_steps")
READ: tuple[str, ...] = (
    *(f"alone_{name}" for name in _ALONE),
    *(f"beside_{name}" for name in _BESIDE),
    "worth", "worth_rank", "worth_place", "hand", "gain", "gain_rank", "gain_place",
    "bm25", "bm25_rank", "title", "cosine_rank",
)  # fmt: skip
PATH: tuple[str, ...] = (
    "score", "score_rank", "reliability", "words", "words_rank", "hops", "weight_mean", "weight_least",
    "cosine_mean", "cosine_best", "cosine_end", "state_asked", "state_steps", "is_joined", "likened",
)  # fmt: skip
SURE: tuple[str, ...] = (
    "share", "gap", "place", "margin", "cosine", "words", "title_words", "best_sentence", "title", "most_cosine",
    "most_words", "reach",
)  # fmt: skip
# Of a candidate of the default recipe, each in units of its spread among the candidates.
DEFAULT: tuple[str, ...] = ("words", "cosine", "walk", "length")
# States say which passages to read; who has read them knows better. A head that orders what was read by states as well
# ranks questions like those it was fitted to, and others worse (docs/ranker.md).
STATES = frozenset({"state_asked", "state_best", "state_anchored"})
PRIOR: Mapping[str, float] = {"gain_rank": 1.0}  # what the order by hand counts beside what a head learned
HEADS: Mapping[str, tuple[str, ...]] = {
    "reach": NET,  # which passages around the best ones are worth reading
    "again": NET,  # the same, from the best of the first look
    "read": (*READ, *(f"net_{name}" for name in NET if name not in STATES), "reach"),  # in which order to show them
    "walk": READ,  # the same for passages that a walk brought up
    "sure": SURE,  # whether a passage that was read supports an answer
    "path": PATH,  # in which order paths are shown
    "default": DEFAULT,  # what this corpus adds to the shipped ranking of the default recipe
}
N_KINDS = 5
N_LEVELS = 4
N_EXTRA = N_KINDS + N_LEVELS + 3


def prior_of(head: str) -> Singles:
    """(columns of the head,) what each column counts before anything is learned."""
    return np.array([PRIOR.get(name, 0.0) for name in HEADS[head]], np.float32)


def matrix(head: str, columns: Mapping[str, Floats]) -> Singles:
    """(n, columns of the head) in the head's order; a column that is missing is an error that names it."""
    return np.column_stack([columns[name] for name in HEADS[head]]).astype(np.float32)


def node_features(
    vectors: Singles,
    kinds: NDArray[np.uint8],
    levels: NDArray[np.uint8],
    degree_out: NDArray[np.int64],
    degree_in: NDArray[np.int64],
) -> Singles:
    """(n, dim + N_EXTRA): the text's vector at length 1 (zeros where there is none), kind, level, degrees."""
    has_vector = np.any(vectors != 0, axis=1)
    text = unit_rows(vectors)
    extra = np.zeros((len(vectors), N_EXTRA), np.float32)
    rows = np.arange(len(vectors))
    extra[rows, np.minimum(kinds, N_KINDS - 1)] = 1.0
    extra[rows, N_KINDS + np.minimum(levels, N_LEVELS - 1)] = 1.0
    extra[:, -3] = np.log1p(degree_out) / 5.0
    extra[:, -2] = np.log1p(degree_in) / 5.0
    extra[:, -1] = has_vector
    return np.hstack([text, extra]).astype(np.float32)


# The fitted ranker in numpy: what serving and publishing need of it, without the library that fitted it. A model is
# a signature, which is JSON, and one flat array of float32: both can be mapped into memory from a snapshot.


FORMAT = 1
_ROWS = 65_536  # nodes whose states are computed together


class BadModel(ValueError):
    """A model that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class Head:
    """Scores candidates: a line through the scaled columns, and a small network beside it."""

    mean: Singles
    scale: Singles
    line: Singles
    inner: Singles
    inner_bias: Singles
    outer: Singles

    def score(self, columns: Singles) -> Singles:
        """(n,) higher is better; only differences within one question mean something."""
        scaled = np.clip((columns - self.mean) * self.scale, -5.0, 5.0)
        hidden = np.maximum(scaled @ self.inner + self.inner_bias, 0.0)
        scores: Singles = scaled @ self.line + hidden @ self.outer
        return scores


@dataclass(frozen=True)
class RankerModel:
    """A fitted ranker. `signature` says what it was fitted to; `arrays` are its numbers by name."""

    signature: Mapping[str, Any]
    arrays: Mapping[str, Singles]

    def head(self, name: str) -> Head | None:
        """A head by its name; None where the gate left it out."""
        if f"{name}.line" not in self.arrays:
            return None
        parts = ("mean", "scale", "line", "inner", "inner_bias", "outer")
        return Head(*(self.arrays[f"{name}.{part}"] for part in parts))

    def question_state(self, vector: Singles) -> Singles:
        """(state,) where a question lies among the states of nodes."""
        towards: Singles = unit_rows((vector @ self.arrays["tower"])[None, :])[0]
        return towards

    def confidence(self, scores: Singles) -> Floats:
        """(n,) the chance that a passage supports an answer, by the scores of the head `sure`."""
        return np.interp(scores, self.arrays["sure.from"], self.arrays["sure.to"])

    @property
    def doubt(self) -> float:
        """Below this confidence of its best passage nothing is answered."""
        return float(self.signature["doubt"])


def node_states(
    model: RankerModel, features: Singles, starts: NDArray[np.int64], targets: NDArray[np.int32]
) -> NDArray[np.float16]:
    """(n, state) float16, rows of length 1: two layers of GraphSAGE with the mean of the neighbours.

    `starts` (n + 1) and `targets` are the undirected adjacency. Neighbours are projected before they are averaged,
    which gives the same and moves a third of the bytes.
    """
    arrays, hidden = model.arrays, features
    for layer in ("first", "second"):
        near = hidden @ arrays[f"{layer}.neighbours"]
        hidden = hidden @ arrays[f"{layer}.own"] + _means(near, starts, targets) + arrays[f"{layer}.bias"]
        if layer == "first":
            hidden = np.maximum(hidden, 0.0)
    return unit_rows(hidden).astype(np.float16)


def pack(model: RankerModel) -> tuple[bytes, Singles]:
    """The signature with the layout in it, and every number in one array; equal models give equal bytes."""
    names = sorted(model.arrays)
    layout = [[name, list(model.arrays[name].shape)] for name in names]
    body = {**model.signature, "layout": layout}
    flat = [np.asarray(model.arrays[name], "<f4").ravel() for name in names]
    return json.dumps(body, sort_keys=True).encode(), np.concatenate(flat) if flat else np.zeros(0, np.float32)


def unpack(signature: bytes, numbers: Singles) -> RankerModel:
    """The model of a signature and its numbers; `BadModel` says why it cannot be used by this version."""
    try:
        body = json.loads(signature)
    except ValueError as error:
        raise BadModel("its signature is not JSON") from error
    if body.get("format") != FORMAT:
        raise BadModel(f"it has format {body.get('format')}, this version reads {FORMAT}")
    if body.get("features") != VERSION:
        raise BadModel(f"it was fitted to features of version {body.get('features')}, this version has {VERSION}")
    for name, columns in body["columns"].items():
        if tuple(columns) != HEADS.get(name):
            raise BadModel(f"its head {name!r} was fitted to other columns than this version computes")
    sizes = [int(np.prod(shape, dtype=np.int64)) for _, shape in body["layout"]]
    if sum(sizes) != len(numbers):
        raise BadModel(f"it has {len(numbers)} numbers, its layout speaks of {sum(sizes)}")
    if not np.isfinite(numbers).all():
        raise BadModel("it holds numbers that are not finite")
    cuts = np.cumsum([0, *sizes])
    arrays = {
        name: numbers[start:end].reshape(shape)
        for (name, shape), start, end in zip(body.pop("layout"), cuts[:-1], cuts[1:], strict=True)
    }
    return RankerModel(body, arrays)


def _means(values: Singles, starts: NDArray[np.int64], targets: NDArray[np.int32]) -> Singles:
    """(n, width) the mean over each node's neighbours, zeros where it has none."""
    found = np.zeros((len(starts) - 1, values.shape[1]), np.float32)
    for first in range(0, len(found), _ROWS):
        own = starts[first : first + _ROWS + 1]
        counts = np.diff(own)
        some = counts > 0
        if some.any():
            sums = np.add.reduceat(values[targets[own[0] : own[-1]]], own[:-1][some] - own[0], axis=0)
            found[first : first + len(counts)][some] = sums / counts[some][:, None]
    return found


# Confidence that means what it says: scores become the share of candidates that were right at that score.


BINS = 10


def isotonic(scores: Floats, right: Floats, most: int = 128) -> tuple[Floats, Floats]:
    """Knots (score, chance) of the best rising function; at most `most` of them.

    Between the knots the chance is read off a straight line, beyond them it stays.
    """
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.001, y_max=0.999).fit(scores, right)
    count = len(fitted.X_thresholds_)
    chosen = np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.int64))
    return fitted.X_thresholds_[chosen], fitted.y_thresholds_[chosen]


def expected_calibration_error(chance: Floats, right: Floats, bins: int = BINS) -> float:
    """Mean distance between what was said and what came true, over bins of equal width, by how many lie in each."""
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    said = np.bincount(place, chance, bins)
    came = np.bincount(place, right, bins)
    return float(np.abs(said - came).sum() / max(1, counts.sum()))


def doubt_threshold(best: Floats, is_answerable: NDArray[np.bool_], most_lost: float = 0.02) -> float:
    """The highest confidence below which so few of the questions that can be answered lie: silence is a cost too."""
    answerable = np.sort(best[is_answerable])
    return float(answerable[int(most_lost * len(answerable))]) if len(answerable) else 0.0


# What the ranker is fitted to and how: graphs, questions with their candidates, and who is held out.


Longs = NDArray[np.int64]


@dataclass(frozen=True)
class StateRules:
    """How states are fitted. After `patience` epochs that gained less than `gain` on held-out edges it ends."""

    hidden: int = 128
    state: int = 64
    epochs: int = 20
    patience: int = 4
    gain: float = 1e-3
    rate: float = 0.01
    decay: float = 1e-4
    dropout: float = 0.2
    choice: float = 1.0
    links: int = 32_768  # edges that an epoch draws its loss from
    full_batch: int = 200_000  # nodes of a graph above which only what is near the candidates is seen
    seed: int = 20260101
    device: str = "cpu"


@dataclass(frozen=True)
class HeadRules:
    """How a head is fitted. `first` is what the top place counts beside the whole list."""

    hidden: int = 8
    steps: int = 120
    every: int = 6
    rate: float = 0.02
    decay: float = 0.3
    dropout: float = 0.3
    first: float = 1.5
    seed: int = 20260101


@dataclass
class Curve:
    """Losses by epoch: of what is fitted, and of what is held out to know when to stop."""

    fitted: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Graph:
    """Nodes with their features (n, d) and the undirected adjacency as CSR: `starts` (n + 1), `targets`."""

    features: Singles
    starts: Longs
    targets: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Lists:
    """The candidates of each question: their columns (n, columns), and 1 for those that were preferred.

    `weight` (questions,) is what a question counts.
    """

    columns: Sequence[Singles]
    wanted: Sequence[Singles]
    weight: Singles

    def __len__(self) -> int:
        return len(self.columns)

    def subset(self, questions: Longs) -> Lists:
        """Some of the questions, in the order given."""
        rows = questions.tolist()
        return Lists([self.columns[row] for row in rows], [self.wanted[row] for row in rows], self.weight[questions])


@dataclass(frozen=True)
class Choices:
    """Questions for the states of nodes: vectors (q, dim), and of each its candidates in the joined graph, and who was
    wanted.
    """

    vectors: Singles
    nodes: Sequence[Longs]
    wanted: Sequence[Singles]

    def __len__(self) -> int:
        return len(self.nodes)

    def subset(self, questions: Longs) -> Choices:
        """Some of the questions."""
        rows = questions.tolist()
        return Choices(self.vectors[questions], [self.nodes[row] for row in rows], [self.wanted[row] for row in rows])


def join(graphs: Sequence[Graph]) -> tuple[Graph, Longs]:
    """Several graphs as one, and the number that the first node of each has there."""
    sizes = np.cumsum([0, *(len(graph) for graph in graphs)]).astype(np.int64)
    edges = np.cumsum([0, *(len(graph.targets) for graph in graphs)]).astype(np.int64)
    starts = np.concatenate([*(graph.starts[:-1] + edges[place] for place, graph in enumerate(graphs)), edges[-1:]])
    targets = np.concatenate([graph.targets.astype(np.int64) + sizes[place] for place, graph in enumerate(graphs)])
    features = np.concatenate([graph.features for graph in graphs])
    return Graph(features, starts.astype(np.int64), targets.astype(np.int32)), sizes[:-1]


def undirected(
    out_starts: Longs, out_targets: NDArray[np.int32], in_starts: Longs, in_targets: NDArray[np.int32]
) -> tuple[Longs, NDArray[np.int32]]:
    """Both directions of an adjacency as one: each node's outgoing neighbours, then its incoming ones."""
    starts = np.asarray(out_starts, np.int64) + np.asarray(in_starts, np.int64)
    targets = np.empty(int(starts[-1]), np.int32)
    counts = np.diff(out_starts)
    ahead = np.arange(len(out_targets)) + np.repeat(np.asarray(in_starts[:-1], np.int64), counts)
    behind = np.arange(len(in_targets)) + np.repeat(np.asarray(out_starts[1:], np.int64), np.diff(in_starts))
    targets[ahead], targets[behind] = out_targets, in_targets
    return starts, targets


def folds(texts: Sequence[str], count: int) -> Longs:
    """The fold of each question, by the hash of its words: the same question is always in the same one."""
    return np.array([int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % count for text in texts], np.int64)


def hold_out(texts: Sequence[str], times: Sequence[float | None], share: float) -> NDArray[np.bool_]:
    """Who is kept for the gate: the latest of those that have a time; of the others those that their hash chooses."""
    held = np.zeros(len(texts), np.bool_)
    timed = np.array([place for place, at in enumerate(times) if at is not None], np.int64)
    if len(timed):
        moments = np.array([times[place] for place in timed], np.float64)
        order = np.lexsort((timed, moments))
        held[timed[order[len(timed) - round(share * len(timed)) :]]] = True
    untimed = np.array([place for place, at in enumerate(times) if at is None], np.int64)
    parts = max(2, round(1.0 / share))
    held[untimed[folds([texts[place] for place in untimed], parts) == 0]] = True
    return held


# Two rankings of the same questions: how much better one is, and how sure that is.


RESAMPLES = 4_000
SEED = 20260101


@dataclass(frozen=True)
class Difference:
    """Mean difference, each set of questions counting the same; its 95% interval; two-sided p by flipped signs."""

    mean: float
    low: float
    high: float
    p: float


def difference(ours: Floats, theirs: Floats, sets: Sequence[str]) -> Difference:
    """Paired by question, resampled within each set."""
    from scipy import stats  # two seconds to load, and only a comparison needs it

    gain = ours - theirs
    if not len(gain) or not gain.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    names, place, counts = np.unique(np.array(sets), return_inverse=True, return_counts=True)
    share = 1.0 / (len(names) * counts[place])  # what a question counts, so that every set counts the same
    groups = [np.repeat(gain[place == group], 1 + (counts[group] == 1)) for group in range(len(names))]  # two at least
    interval = stats.bootstrap(
        groups,
        lambda *samples, axis: np.mean([sample.mean(axis=axis) for sample in samples], axis=0),
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    flipped: Any = stats.permutation_test(
        (ours, theirs),
        lambda one, two, axis: ((one - two) * share).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=np.random.default_rng(SEED),
    )
    return Difference(float((gain * share).sum()), float(interval.low), float(interval.high), float(flipped.pvalue))


def auroc(positive: Floats, negative: Floats) -> float:
    """The chance that a positive value is above a negative one; ties count half."""
    from sklearn.metrics import roc_auc_score

    if not len(positive) or not len(negative):
        return 0.5
    is_positive = np.repeat([True, False], [len(positive), len(negative)])
    return float(roc_auc_score(is_positive, np.concatenate([positive, negative])))


def reciprocal_rank(ranking: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next((1.0 / place for place, one in enumerate(ranking, 1) if one in gold), 0.0)


def recall_at(ranking: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranking[:k])) / len(gold)
