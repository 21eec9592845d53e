"""Fit the states of nodes; offline estimates; comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from models.ranker.infer import Choices, Graph, Singles
from models.ranker.network import Curve, NeighbourSampler, States, Told, adjacency, edge_list, rectangle

if TYPE_CHECKING:
    import torch

    from models.ranker.network import States


# Fitting the states of nodes by links and choices; seeded and stopped early.


@dataclass(frozen=True)
class StateRules:
    """How states are fitted. Graphs above `full_batch` nodes are sampled, `batch` edges and `fanouts` at a time.

    After `patience` epochs that gained less than `gain` on held-out edges it ends.
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
    links: int = 32_768
    full_batch: int = 200_000
    batch: int = 1_024
    fanouts: tuple[int, int] = (10, 5)
    seed: int = 20260101
    device: str = "cpu"


def fit_states(
    graph: Graph, choices: Choices | None, rules: StateRules, told: Told = lambda what, done, of: None
) -> tuple[dict[str, Singles], Curve]:
    """The arrays of the network and of the tower, and their curve. A twentieth of the edges says when to stop."""
    import torch

    torch.manual_seed(rules.seed)
    random = np.random.default_rng(rules.seed)
    dimension = choices.vectors.shape[1] if choices is not None and len(choices) else 1
    network = States(graph.features.shape[1], dimension, rules.hidden, rules.state).to(rules.device)
    learner = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.decay)
    edges = _Edges(graph, random)
    padded = _PaddedChoices.of(choices, rules.device) if choices is not None and len(choices) else None
    step = _full_step if len(graph) <= rules.full_batch else _sample_step
    batch = _Batch(graph, edges, padded, rules, random)
    curve, best, kept, waited = Curve(), np.inf, network.exported(), 0
    for epoch in range(rules.epochs):
        network.train()
        curve.fitted.append(step(network, learner, batch))
        curve.held.append(_hold_loss(network, batch))
        told("states", epoch + 1, rules.epochs)
        if curve.held[-1] < best - rules.gain:
            best, kept, waited = curve.held[-1], network.exported(), 0
        else:
            waited += 1
            if waited >= rules.patience:
                break
    return {name: one.numpy() for name, one in kept.items()}, curve


class _Edges:
    """Edges as pairs, a twentieth of them held out of the adjacency that messages pass along."""

    def __init__(self, graph: Graph, random: np.random.Generator) -> None:
        n = len(graph)
        left = np.repeat(np.arange(n), np.diff(graph.starts))
        right = graph.targets.astype(np.int64)
        once = left < right
        code = np.unique(left[once] * n + right[once])
        held = random.random(len(code)) < 0.05
        self.left, self.right = code[~held] // n, code[~held] % n
        self.held_left, self.held_right = code[held] // n, code[held] % n
        hidden = np.sort(np.concatenate([code[held], self.held_right * n + self.held_left]))
        entry = left * n + right
        place = np.minimum(np.searchsorted(hidden, entry), max(0, len(hidden) - 1))
        kept = hidden[place] != entry if len(hidden) else np.ones(len(entry), np.bool_)
        self.targets = graph.targets[kept]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(left[kept], minlength=n))]).astype(np.int64)
        self.held_other = random.integers(0, n, len(self.held_left))


@dataclass(frozen=True)
class _PaddedChoices:
    """Choices as rectangles: (q, most) nodes, wanted, and which places hold a candidate."""

    vectors: torch.Tensor
    nodes: torch.Tensor
    wanted: torch.Tensor
    there: torch.Tensor

    @classmethod
    def of(cls, choices: Choices, device: str) -> _PaddedChoices:
        import torch

        nodes, there = rectangle(choices.nodes, choices.starts)
        wanted, _ = rectangle(choices.wanted, choices.starts)
        given = (choices.vectors, nodes, wanted, there)
        return cls(*(torch.from_numpy(np.ascontiguousarray(one)).to(device) for one in given))


@dataclass(frozen=True)
class _Batch:
    """What a step works on."""

    graph: Graph
    edges: _Edges
    choices: _PaddedChoices | None
    rules: StateRules
    random: np.random.Generator
    kept: dict[str, torch.Tensor] = field(default_factory=dict)
    samplers: list[NeighbourSampler] = field(default_factory=list)

    def sampler(self) -> NeighbourSampler:
        """Draws from the edges that are not held out; made once."""
        if not self.samplers:
            self.samplers.append(NeighbourSampler(self.edges.starts, self.edges.targets))
        return self.samplers[0]

    def features(self) -> torch.Tensor:
        """What is known of every node, put on the device once."""
        import torch

        if "features" not in self.kept:
            self.kept["features"] = torch.from_numpy(self.graph.features).to(self.rules.device)
        return self.kept["features"]

    def whole(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and adjacency of the full batch."""
        import torch

        if "edges" not in self.kept:
            starts, targets = torch.from_numpy(self.edges.starts), torch.from_numpy(self.edges.targets.astype(np.int64))
            self.kept["edges"] = adjacency(starts, targets).to(self.rules.device)
        return self.features(), self.kept["edges"]


def _full_step(network: States, learner: torch.optim.Optimizer, batch: _Batch) -> float:
    """One epoch over the whole graph: one pass, one step."""
    import torch

    rules, edges = batch.rules, batch.edges
    features, adjacency = batch.whole()
    chosen = batch.random.integers(0, max(1, len(edges.left)), min(rules.links, len(edges.left)))
    other = batch.random.integers(0, len(batch.graph), len(chosen))
    learner.zero_grad()
    states = network.nodes(features, adjacency, rules.dropout)
    left, right, far = (
        torch.from_numpy(one).to(rules.device) for one in (edges.left[chosen], edges.right[chosen], other)
    )
    loss = network.link_loss(states, left, right, far)
    if batch.choices is not None:
        loss = loss + rules.choice * _choice_loss(network, states, batch.choices)
    loss.backward()  # type: ignore[no-untyped-call]
    learner.step()
    return float(loss.detach())


def _sample_step(network: States, learner: torch.optim.Optimizer, batch: _Batch) -> float:
    """One epoch in parts: a number of edges at a time, with the neighbourhoods drawn around their ends."""
    rules, edges = batch.rules, batch.edges
    order = batch.random.permutation(len(edges.left))
    losses = []
    for start in range(0, min(len(order), rules.links), rules.batch):
        chosen = order[start : start + rules.batch]
        other = batch.random.integers(0, len(batch.graph), len(chosen))
        learner.zero_grad()
        loss = _part_loss(network, batch, edges.left[chosen], edges.right[chosen], other)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        losses.append(float(loss.detach()))
    if batch.choices is not None:
        learner.zero_grad()
        loss = rules.choice * _sample_choices(network, batch, batch.choices)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
    return float(np.mean(losses))


def _part_loss(network: States, batch: _Batch, left: Longs, right: Longs, other: Longs) -> torch.Tensor:
    import torch

    asked, place = np.unique(np.concatenate([left, right, other]), return_inverse=True)
    states = _part_states(network, batch, asked)
    ends = torch.from_numpy(place.reshape(3, -1)).to(batch.rules.device)
    return network.link_loss(states, ends[0], ends[1], ends[2])


def _part_states(network: States, batch: _Batch, asked: Longs) -> torch.Tensor:
    """States of some nodes from the neighbourhoods drawn around them."""
    import torch

    rules = batch.rules
    part = batch.sampler().sample(asked, rules.fanouts, batch.random)
    features = batch.features()[torch.from_numpy(part.nodes).to(rules.device)]
    edges = edge_list(torch.from_numpy(part.source), torch.from_numpy(part.target)).to(rules.device)
    return network.nodes(features, edges, rules.dropout)[: len(asked)]


def _sample_choices(network: States, batch: _Batch, choices: _PaddedChoices) -> torch.Tensor:
    import torch

    asked, place = np.unique(choices.nodes.cpu().numpy(), return_inverse=True)
    states = _part_states(network, batch, asked)
    nodes = torch.from_numpy(place.reshape(choices.nodes.shape)).to(batch.rules.device)
    own = _PaddedChoices(choices.vectors, nodes, choices.wanted, choices.there)
    return _choice_loss(network, states, own)


def _choice_loss(network: States, states: torch.Tensor, choices: _PaddedChoices) -> torch.Tensor:
    asked = network.questions(choices.vectors)
    return network.choice_loss(asked, states[choices.nodes], choices.wanted, choices.there)


def _hold_loss(network: States, batch: _Batch) -> float:
    """The link loss of the edges that were held out."""
    import torch

    edges, rules = batch.edges, batch.rules
    network.eval()
    with torch.no_grad():
        if not len(edges.held_left):
            return 0.0
        if len(batch.graph) > rules.full_batch:
            first = slice(0, rules.batch)
            ends = edges.held_left[first], edges.held_right[first], edges.held_other[first]
            return float(_part_loss(network, batch, *ends))
        states = network.nodes(*batch.whole())
        pairs = (torch.from_numpy(one) for one in (edges.held_left, edges.held_right, edges.held_other))
        return float(network.link_loss(states, *(one.to(rules.device) for one in pairs)))


# Two rankings of the same questions: how much better one is, how sure that is; resampling is seeded.


Floats = NDArray[np.float64]
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
    gain = ours - theirs
    groups = [np.flatnonzero(np.array(sets) == name) for name in dict.fromkeys(sets)]
    if not groups or not gain.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    random = np.random.default_rng(SEED)
    seen = float(np.mean([gain[rows].mean() for rows in groups]))
    means, flipped = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for rows in groups:
        own = gain[rows]
        means += own[random.integers(0, len(own), (RESAMPLES, len(own)))].mean(axis=1) / len(groups)
        signs = random.integers(0, 2, (RESAMPLES, len(own))) * 2 - 1
        flipped += (signs * own).mean(axis=1) / len(groups)
    low, high = np.quantile(means, [0.025, 0.975])
    p = (float((np.abs(flipped) >= abs(seen) - 1e-12).sum()) + 1) / (RESAMPLES + 1)
    return Difference(seen, float(low), float(high), p)


def reciprocal_rank(ranking: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next((1.0 / place for place, one in enumerate(ranking, 1) if one in gold), 0.0)


def recall_at(ranking: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranking[:k])) / len(gold)


# What a new ranker would have earned, told from what an old one showed: importance weighting, with an interval. The
# value of a ranker is how many of the results it shows are found good, per question. What the old ranker showed is
# weighted by how much likelier, or less likely, the new one is to show the same result at the same rank (Horvitz
# and Thompson, 1952; for rankings Li, Kim and Zitouni, 2015: what a result earns depends on it and its rank alone).
# That needs chances above 0, so either the old ranker explored (`propensity` in `query_logs`), or a model of how
# ranks are looked at stands in for them (`by_examination`, after Joachims, Swaminathan and Schnabel, 2017). Weights
# above `clip` are cut to it. Nothing is negative here, so cutting can only lower the estimate by inverse
# propensity: it errs on the side of what serves already. `clipped` says how many rows were cut.


Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class LoggedResults:
    """What was shown, a row a result, (n,) each.

    `question` numbers the question from 0, `reward` is what the result earned, `propensity` the chance that the old
    ranker put it at its rank, above 0, `target` the chance that the new one would.
    """

    question: Longs
    reward: Doubles
    propensity: Doubles
    target: Doubles

    def __post_init__(self) -> None:
        if len(self.propensity) and not self.propensity.min() > 0.0:
            raise ValueError("a propensity is 0: what cannot have been shown cannot be weighted; leave it out")

    @property
    def questions(self) -> int:
        """How many there are."""
        return int(self.question.max(initial=-1)) + 1


@dataclass(frozen=True)
class Estimate:
    """The value of a ranker per question, between `low` and `high` at the level asked for.

    `effective` is how many rows of equal weight would say as much; far fewer than there are means the rankers differ
    more than the log can tell.
    """

    value: float
    low: float
    high: float
    questions: int
    effective: float
    clipped: float


def inverse_propensity(logged: LoggedResults, *, clip: float = np.inf, level: float = 0.95) -> Estimate:
    """Unbiased where nothing is cut, whatever the rewards; its spread grows with the weights."""
    weights = _weights(logged, clip)
    earned = _by_question(logged, weights * logged.reward)
    return _estimate(logged, weights, earned, float(earned.mean()) if len(earned) else 0.0, clip, level)


def self_normalised(logged: LoggedResults, *, clip: float = np.inf, level: float = 0.95) -> Estimate:
    """Divided by the weights that came up instead of those expected: a little biased, much steadier.

    The interval is that of the ratio, to first order (Swaminathan and Joachims, 2015).
    """
    weights = _weights(logged, clip)
    total = weights.sum()
    if not total > 0.0:
        return Estimate(0.0, -np.inf, np.inf, logged.questions, 0.0, 0.0)
    rows = len(weights) / logged.questions
    each = float((weights * logged.reward).sum() / total)
    residual = _by_question(logged, weights * (logged.reward - each)) * len(weights) / total
    return _estimate(logged, weights, each * rows + residual, each * rows, clip, level)


def doubly_robust(
    logged: LoggedResults, predicted: Doubles, expected: Doubles, *, clip: float = np.inf, level: float = 0.95
) -> Estimate:
    """A model's guess, corrected by what it got wrong: unbiased when the propensities are right or the model is.

    `predicted` (n,) is what the model thought each shown result would earn at its rank, `expected` (n_questions,) what
    it thinks the new ranker's list earns. (Dudik, Langford and Li, 2011.)
    """
    weights = _weights(logged, clip)
    earned = expected + _by_question(logged, weights * (logged.reward - predicted))
    return _estimate(logged, weights, earned, float(earned.mean()) if len(earned) else 0.0, clip, level)


def by_examination(question: Longs, reward: Doubles, rank: Longs, new_rank: Longs, power: float) -> LoggedResults:
    """The rows of a log without exploration: a rank is looked at with the chance rank ** -power.

    `rank` is where the result stood, from 1, `new_rank` where the new ranker puts it, 0 where it leaves it out.
    """
    chances = rank.astype(np.float64) ** -power
    target = np.where(new_rank > 0, np.maximum(new_rank, 1).astype(np.float64) ** -power, 0.0)
    return LoggedResults(question, reward, chances, target)


def _weights(logged: LoggedResults, clip: float) -> Doubles:
    weights: Doubles = np.minimum(logged.target / logged.propensity, clip)
    return weights


def _by_question(logged: LoggedResults, values: Doubles) -> Doubles:
    return np.bincount(logged.question, weights=values, minlength=logged.questions).astype(np.float64)


def _estimate(
    logged: LoggedResults, weights: Doubles, earned: Doubles, value: float, clip: float, level: float
) -> Estimate:
    """The value with Student's interval over questions: results of one question are not independent."""
    questions, reach = len(earned), np.inf
    if questions > 1:
        reach = float(stdtrit(questions - 1, 0.5 + level / 2.0) * earned.std(ddof=1) / np.sqrt(questions))
    squares = float((weights**2).sum())
    effective = float(weights.sum() ** 2 / squares) if squares else 0.0
    cut = float(np.mean(logged.target / logged.propensity > clip)) if len(weights) else 0.0
    return Estimate(value, value - reach, value + reach, questions, effective, cut)
