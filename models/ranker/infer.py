"""The fitted ranker in numpy: data and features; two rankings compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints, Longs, Singles, unit_rows

# What the ranker sees. The names of the columns are the contract between who computes the numbers
# and who fits on them: a model that was fitted to other names, or to the same names meaning
# something else (`FORMAT`), is not asked.

# Of a candidate of the default recipe, each in units of its spread among the candidates; `state` is
# how near the states of the candidate and of the question are.
COLUMNS: tuple[str, ...] = ("words", "cosine", "walk", "length", "state")
# The signals of whether there is an answer: the best cosine, the shares of key words that any
# passage holds and that one holds, the share of words that the corpus lacks, and 1.
SIGNALS: tuple[str, ...] = ("similarity", "held", "together", "unknown", "bias")
N_KINDS = 5
N_LEVELS = 4
N_EXTRA = N_KINDS + N_LEVELS + 3


def node_features(
    vectors: Singles,
    kinds: NDArray[np.uint8],
    levels: NDArray[np.uint8],
    degree_out: Longs,
    degree_in: Longs,
) -> Singles:
    """(n, dim + N_EXTRA): the text's vector at length 1 (zeros where there is none), kind, level,
    degrees.
    """
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


# The fitted ranker in numpy: what serving and publishing need of it, without the library that
# fitted it. A model is a signature, which is JSON, and one flat array of float32: both can be
# mapped into memory from a snapshot.
FORMAT = 2  # raise it with any change of what a model holds or of what a column means
_ROWS = 65_536  # nodes whose states are computed together


class BadModel(ValueError):
    """A model that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class RankerModel:
    """A fitted ranker. `signature` says what it was fitted to; `arrays` are its numbers by name.

    `line` (columns,) is what each column counts beside the shipped weights; `abstain` (signals,),
    where it was fitted, what each signal counts beside the shipped rule. The layers of GraphSAGE
    and the `tower` of questions are there where states were fitted.
    """

    signature: Mapping[str, Any]
    arrays: Mapping[str, Singles]

    @property
    def has_states(self) -> bool:
        """Whether nodes have states by it."""
        return "tower" in self.arrays

    def question_state(self, vector: Singles) -> Singles:
        """(state,) where a question lies among the states of nodes."""
        towards: Singles = unit_rows((vector @ self.arrays["tower"])[None, :])[0]
        return towards


def node_states(
    model: RankerModel,
    features: Singles,
    starts: Longs,
    targets: Ints,
) -> NDArray[np.float16]:
    """(n, state) float16, rows of length 1: two layers of GraphSAGE with the mean of the
    neighbours.

    `starts` (n + 1) and `targets` are the undirected adjacency. Neighbours are projected before
    they are averaged, which gives the same and moves a third of the bytes.
    """
    arrays = model.arrays
    hidden = features

    for layer in ("first", "second"):
        near = hidden @ arrays[f"{layer}.neighbours"]
        hidden = (
            hidden @ arrays[f"{layer}.own"]
            + _means(near, starts, targets)
            + arrays[f"{layer}.bias"]
        )
        if layer == "first":
            hidden = np.maximum(hidden, 0.0)

    return unit_rows(hidden).astype(np.float16)


def pack(model: RankerModel) -> tuple[bytes, Singles]:
    """The signature with the layout in it, and every number in one array; equal models give equal
    bytes.
    """
    names = sorted(model.arrays)

    layout = []
    for name in names:
        layout.append([name, list(model.arrays[name].shape)])

    body = {**model.signature, "layout": layout}
    flat = []
    for name in names:
        flat.append(np.asarray(model.arrays[name], "<f4").ravel())

    return json.dumps(body, sort_keys=True).encode(), np.concatenate(flat) if flat else np.zeros(
        0, np.float32
    )


def unpack(signature: bytes, numbers: Singles) -> RankerModel:
    """The model of a signature and its numbers; `BadModel` says why it cannot be used by this
    version.
    """
    try:
        body = json.loads(signature)
    except ValueError as error:
        raise BadModel("its signature is not JSON") from error

    if body.get("format") != FORMAT:
        raise BadModel(f"it has format {body.get('format')}, this version reads {FORMAT}")

    if tuple(body["columns"]) != COLUMNS:
        raise BadModel(
            f"it was fitted to {', '.join(body['columns'])}, this version computes "
            f"{', '.join(COLUMNS)}"
        )

    sizes = []
    for _, shape in body["layout"]:
        sizes.append(int(np.prod(shape, dtype=np.int64)))

    if sum(sizes) != len(numbers):
        raise BadModel(f"it has {len(numbers)} numbers, its layout speaks of {sum(sizes)}")
    if not np.isfinite(numbers).all():
        raise BadModel("it holds numbers that are not finite")

    cuts = np.cumsum([0, *sizes])
    arrays = {}
    for (name, shape), start, end in zip(
        body.pop("layout"),
        cuts[:-1],
        cuts[1:],
        strict=True,
    ):
        arrays[name] = numbers[start:end].reshape(shape)

    return RankerModel(body, arrays)


def _means(
    values: Singles,
    starts: Longs,
    targets: Ints,
) -> Singles:
    """(n, width) the mean over each node's neighbours, zeros where it has none."""
    means = np.zeros((len(starts) - 1, values.shape[1]), np.float32)
    for first in range(0, len(means), _ROWS):
        bounds = starts[first : first + _ROWS + 1]
        counts = np.diff(bounds)
        has_neighbours = counts > 0

        if has_neighbours.any():
            sums = np.add.reduceat(
                values[targets[bounds[0] : bounds[-1]]],
                bounds[:-1][has_neighbours] - bounds[0],
                axis=0,
            )
            means[first : first + len(counts)][has_neighbours] = (
                sums / counts[has_neighbours][:, None]
            )

    return means


@dataclass(frozen=True)
class StateRules:
    """How states are fitted. After `patience` epochs that gained less than `gain` on held-out edges
    it ends.
    """

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
    full_batch: int = (
        200_000  # nodes of a graph above which only what is near the candidates is seen
    )
    seed: int = 20260101
    device: str = "cpu"


@dataclass(frozen=True)
class Graph:
    """Nodes with their features (n, d) and the undirected adjacency as CSR: `starts` (n + 1),
    `targets`.
    """

    features: Singles
    starts: Longs
    targets: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1


# A question for the states of nodes: its vector, its candidates in the joined graph, and 1 for
# those that were wanted.
AskedNodes = tuple[Singles, Longs, Singles]


def undirected(
    out_starts: Longs,
    out_targets: Ints,
    in_starts: Longs,
    in_targets: Ints,
) -> tuple[Longs, Ints]:
    """Both directions of an adjacency as one: each node's outgoing neighbours, then its incoming
    ones.
    """
    starts = np.asarray(out_starts, np.int64) + np.asarray(in_starts, np.int64)
    targets = np.empty(int(starts[-1]), np.int32)
    counts = np.diff(out_starts)
    ahead = np.arange(len(out_targets)) + np.repeat(np.asarray(in_starts[:-1], np.int64), counts)
    behind = np.arange(len(in_targets)) + np.repeat(
        np.asarray(out_starts[1:], np.int64), np.diff(in_starts)
    )
    targets[ahead], targets[behind] = out_targets, in_targets
    return starts, targets


RESAMPLES = 4_000
SEED = 20260101


@dataclass(frozen=True)
class Difference:
    """Mean difference, each set of questions counting the same; its 95% interval; two-sided p by
    flipped signs.
    """

    mean: float
    low: float
    high: float
    p: float


def difference(
    ours: Floats,
    baseline: Floats,
    sets: Sequence[str] = (),
) -> Difference:
    """Paired by question, resampled within each set; without sets, all are of one."""
    from scipy import stats  # two seconds to load, and only a comparison needs it

    gain = ours - baseline

    if not len(gain) or not gain.any():
        return Difference(0.0, 0.0, 0.0, 1.0)

    names, place, counts = np.unique(
        np.array(sets or [""] * len(ours)),
        return_inverse=True,
        return_counts=True,
    )
    share = 1.0 / (
        len(names) * counts[place]
    )  # what a question counts, so that every set counts the same
    groups = [
        np.repeat(gain[place == group], 1 + (counts[group] == 1)) for group in range(len(names))
    ]  # two at least
    interval = stats.bootstrap(
        groups,
        lambda *samples, axis: np.mean([sample.mean(axis=axis) for sample in samples], axis=0),
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    flipped: Any = stats.permutation_test(
        (ours, baseline),
        lambda first, two, axis: ((first - two) * share).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=np.random.default_rng(SEED),
    )
    return Difference(
        float((gain * share).sum()),
        float(interval.low),
        float(interval.high),
        float(flipped.pvalue),
    )


def auroc(positive: Floats, negative: Floats) -> float:
    """The chance that a positive value is above a negative one; ties count half."""
    from sklearn.metrics import roc_auc_score

    if not len(positive) or not len(negative):
        return 0.5

    is_positive = np.repeat([True, False], [len(positive), len(negative)])
    return float(roc_auc_score(is_positive, np.concatenate([positive, negative])))


def reciprocal_rank(ranking: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next(
        (1.0 / place for place, document in enumerate(ranking, 1) if document in gold),
        0.0,
    )


def recall_at(
    ranking: Sequence[str],
    gold: frozenset[str],
    k: int,
) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranking[:k])) / len(gold)
