"""Fitting: states of nodes by links and choices, heads by lists of candidates; seeded, stopped early, cross-fitted.

Every head is fitted once for each fold of the questions, without it; what serves is the mean of these, which is again
one small network, and what the folds say of the questions they have not seen is an honest score for all of them. When
to stop is decided for each fold by the others, so not even that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.ranker.dataset import Choices, Graph, Lists, Longs
from models.ranker.features import Singles
from models.ranker.sampler import sample

if TYPE_CHECKING:
    import torch

    from models.ranker.network import States

Told = Callable[[str, int, int], None]  # what, done, of how many


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


def fit_states(
    graph: Graph, choices: Choices | None, rules: StateRules, told: Told = lambda what, done, of: None
) -> tuple[dict[str, Singles], Curve]:
    """The arrays of the network and of the tower, and their curve. A twentieth of the edges says when to stop."""
    import torch

    from models.ranker.network import States

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


@dataclass(frozen=True)
class FittedHead:
    """A head's arrays; those of the heads that were fitted without a fold; and how each fold went."""

    arrays: dict[str, Singles]
    without: dict[int, dict[str, Singles]]
    curve: Curve

    def unseen(self, fold: int) -> dict[str, Singles]:
        """The arrays of a head that has seen no question of this fold."""
        return self.without.get(fold, self.arrays)


def fit_head(
    lists: Lists,
    fold: Longs,
    rules: HeadRules,
    prior: Singles | None = None,
    *,
    each: bool = False,
    told: Told = lambda what, done, of: None,
) -> FittedHead:
    """Fit a head. `fold` is a question's fold; `each`: candidates are judged one by one, not against each other.

    `prior` (columns,) is added to what was learned: a voice for columns that rank well where nothing was learned.
    """
    mean = lists.columns.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = (1.0 / np.maximum(lists.columns.std(axis=0, dtype=np.float64), 1e-4)).astype(np.float32)
    scaled = Lists(np.clip((lists.columns - mean) * scale, -5.0, 5.0), lists.starts, lists.wanted, lists.weight)
    numbers = np.unique(fold).tolist()
    tries = []
    with _one_thread():
        for place, one in enumerate(numbers):
            inside = np.flatnonzero(fold != one) if len(numbers) > 1 else np.arange(len(lists))
            outside = np.flatnonzero(fold == one)
            tries.append(_fit_fold(scaled.subset(inside), scaled.subset(outside), rules, place, each))
            told("heads", place + 1, len(numbers))
    held = np.array([curve.held for _, curve in tries])
    voice = np.zeros_like(mean) if prior is None else prior / scale

    def head(arrays: dict[str, Singles]) -> dict[str, Singles]:
        return {"mean": mean, "scale": scale, **arrays, "line": arrays["line"] + voice}

    without: dict[int, dict[str, Singles]] = {}
    for place, one in enumerate(numbers):
        others = np.delete(held, place, axis=0) if len(numbers) > 1 else held
        without[one] = head(tries[place][0][int(np.argmin(others.mean(axis=0)))])
    best = int(np.argmin(held.mean(axis=0)))
    served = [head(kept[best]) for kept, _ in tries]
    curve = Curve(np.mean([one.fitted for _, one in tries], axis=0).tolist(), held.mean(axis=0).tolist())
    return FittedHead(_mean_head(served), without, curve)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products as small as a head's are slower on several threads, and much slower on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mean_head(parts: list[dict[str, Singles]]) -> dict[str, Singles]:
    """The mean of several heads as one: their hidden units side by side."""
    return {
        "mean": parts[0]["mean"],
        "scale": parts[0]["scale"],
        "line": np.mean([one["line"] for one in parts], axis=0, dtype=np.float32),
        "inner": np.hstack([one["inner"] for one in parts]),
        "inner_bias": np.concatenate([one["inner_bias"] for one in parts]),
        "outer": (np.concatenate([one["outer"] for one in parts]) / len(parts)).astype(np.float32),
    }


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

        nodes, there = _rectangle(choices.nodes, choices.starts)
        wanted, _ = _rectangle(choices.wanted, choices.starts)
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

    def features(self) -> torch.Tensor:
        """What is known of every node, put on the device once."""
        import torch

        if "features" not in self.kept:
            self.kept["features"] = torch.from_numpy(self.graph.features).to(self.rules.device)
        return self.kept["features"]

    def whole(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and adjacency of the full batch."""
        import torch

        from models.ranker.network import adjacency

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

    from models.ranker.network import edge_list

    rules = batch.rules
    part = sample(batch.edges.starts, batch.edges.targets, asked, rules.fanouts, batch.random)
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


def _fit_fold(
    inside: Lists, outside: Lists, rules: HeadRules, place: int, each: bool
) -> tuple[list[dict[str, Singles]], Curve]:
    """The head of a fold after every few steps, with its losses; the other folds say which of them is taken."""
    import torch

    from models.ranker.network import Scores

    torch.manual_seed(rules.seed + place)
    network = Scores(inside.columns.shape[1], rules.hidden)
    learner = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.decay)
    fitted, held = _Tensors.of(inside), _Tensors.of(outside if len(outside) else inside)
    curve, kept = Curve(), []
    for step in range(1, rules.steps + 1):
        network.train()
        learner.zero_grad()
        loss = fitted.loss(network(fitted.columns, rules.dropout), each, rules.first)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        if step % rules.every == 0:
            network.eval()
            with torch.no_grad():
                curve.held.append(float(held.loss(network(held.columns), each, rules.first)))
            curve.fitted.append(float(loss.detach()))
            kept.append(_head_arrays(network))
    return kept, curve


@dataclass(frozen=True)
class _Tensors:
    """Lists as rectangles: (q, most, columns), (q, most) wanted and there, (q,) weight."""

    columns: torch.Tensor
    wanted: torch.Tensor
    there: torch.Tensor
    weight: torch.Tensor

    @classmethod
    def of(cls, lists: Lists) -> _Tensors:
        import torch

        columns, there = _rectangle(lists.columns, lists.starts)
        wanted, _ = _rectangle(lists.wanted, lists.starts)
        return cls(*(torch.from_numpy(one) for one in (columns, wanted, there, lists.weight)))

    def loss(self, scores: torch.Tensor, each: bool, first: float) -> torch.Tensor:
        from torch.nn import functional

        from models.ranker.network import listwise

        if each:
            apart = functional.binary_cross_entropy_with_logits(scores, self.wanted, reduction="none")
            own = (apart * self.there).sum(-1) / self.there.sum(-1)
        else:
            own = listwise(scores, self.wanted, self.there, first)
        return (own * self.weight).sum() / self.weight.sum()


def _head_arrays(network: torch.nn.Module) -> dict[str, Singles]:
    held = {name: one.detach().numpy().copy() for name, one in network.named_parameters()}
    return {
        "line": held["line"],
        "inner": held["inner.weight"].T.copy(),
        "inner_bias": held["inner.bias"],
        "outer": held["outer"],
    }


def _rectangle(values: NDArray[np.generic], starts: Longs) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Rows of lists as (lists, longest, ...), and which places are filled."""
    counts = np.diff(starts)
    longest = int(counts.max(initial=1))
    there = np.arange(longest) < counts[:, None]
    filled = np.zeros((len(counts), longest, *values.shape[1:]), values.dtype)
    filled[there] = values
    return filled, there
