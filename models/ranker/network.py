"""GraphSAGE and heads in torch; fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.kernels import compile_loop
from models.ranker.infer import Lists, Singles

# The networks in torch: two layers of GraphSAGE over the graph, a tower for questions, small heads over candidates.
# The same layers take a full batch (a sparse adjacency) and a sampled part of a graph (an edge list), on any
# device.


class SageLayer(nn.Module):
    """A layer of GraphSAGE: what a node is, and the mean of what its neighbours are, each projected.

    Projecting before averaging gives the same numbers, and fewer of them move along edges.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(n_in, n_out)
        self.own = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """(n, out) from (n, in) and an edge list (2, e) or a sparse adjacency (n, n) of targets by sources."""
        projected = functional.linear(x, self.neighbours.weight)
        if edges.layout == torch.strided:
            near = _mean_of_sources(projected, edges)
        else:
            near = torch.sparse.mm(edges, projected)  # rows of the adjacency add up to 1: this is the mean
        own: Tensor = self.own(x)
        return near + self.neighbours.bias + own


def _mean_of_sources(values: Tensor, edges: Tensor) -> Tensor:
    """For each node the mean of the rows that edges bring to it; zeros where none does."""
    source, target = edges
    total = torch.zeros_like(values).index_add(0, target, values[source])
    count = values.new_zeros(len(values)).index_add(0, target, values.new_ones(len(target)))
    return total / count.clamp(min=1).unsqueeze(1)


class States(nn.Module):
    """Where nodes and questions lie: rows of length 1, near where an edge or a preference says so."""

    def __init__(self, n_features: int, dimension: int, hidden: int, state: int) -> None:
        super().__init__()
        self.first = SageLayer(n_features, hidden)
        self.second = SageLayer(hidden, state)
        self.tower = nn.Linear(dimension, state, bias=False)
        self.link_scale = nn.Parameter(torch.tensor(4.0))
        self.link_bias = nn.Parameter(torch.tensor(-1.0))
        self.asked_scale = nn.Parameter(torch.tensor(4.0))

    def nodes(self, features: Tensor, edges: Tensor, dropout: float = 0.0) -> Tensor:
        """(n, state), rows of length 1."""
        hidden = functional.relu(self.first(features, edges))
        hidden = functional.dropout(hidden, dropout, self.training)
        return functional.normalize(self.second(hidden, edges), dim=1)

    def questions(self, vectors: Tensor) -> Tensor:
        """(q, state), rows of length 1."""
        return functional.normalize(self.tower(vectors), dim=1)

    def link_loss(self, states: Tensor, left: Tensor, right: Tensor, other: Tensor) -> Tensor:
        """Neighbours lie nearer to each other than to nodes drawn at random."""
        near = self.link_scale * (states[left] * states[right]).sum(dim=1) + self.link_bias
        far = self.link_scale * (states[left] * states[other]).sum(dim=1) + self.link_bias
        return functional.softplus(-near).mean() + functional.softplus(far).mean()

    def choice_loss(self, asked: Tensor, candidates: Tensor, wanted: Tensor, there: Tensor) -> Tensor:
        """What was wanted lies nearer to the question than the other candidates; (q, n, state), (q, n), (q, n)."""
        scores = self.asked_scale * torch.einsum("qs,qns->qn", asked, candidates)
        return listwise(scores, wanted, there, 0.0).mean()

    def exported(self) -> dict[str, Tensor]:
        """The arrays that serving needs, by name, rows in and columns out."""
        arrays = {"tower": self.tower.weight.T}
        for name, layer in (("first", self.first), ("second", self.second)):
            arrays[f"{name}.own"] = layer.own.weight.T
            arrays[f"{name}.neighbours"] = layer.neighbours.weight.T
            arrays[f"{name}.bias"] = layer.neighbours.bias
        return {name: one.detach().cpu().contiguous() for name, one in arrays.items()}


class Scores(nn.Module):
    """A line through the columns, and beside it a small network that begins by saying nothing."""

    def __init__(self, n_columns: int, hidden: int) -> None:
        super().__init__()
        self.line = nn.Parameter(torch.zeros(n_columns))
        self.inner = nn.Linear(n_columns, hidden)
        self.outer = nn.Parameter(torch.zeros(hidden))

    def forward(self, columns: Tensor, dropout: float = 0.0) -> Tensor:
        """(..., ) from (..., columns)."""
        hidden = functional.relu(self.inner(columns))
        hidden = functional.dropout(hidden, dropout, self.training)
        return columns @ self.line + hidden @ self.outer


def listwise(scores: Tensor, wanted: Tensor, there: Tensor, first: float) -> Tensor:
    """(q,) the softmax's share of what was wanted, all of it together and `first` times any of it (for the top place).

    `there` marks candidates; the rest of a row is padding.
    """
    logs = torch.log_softmax(scores.masked_fill(~there, -1e9), dim=-1)
    each = -(logs.masked_fill(~there, 0.0) * wanted).sum(-1) / wanted.sum(-1).clamp(min=1.0)
    any_of = -torch.logsumexp(logs.masked_fill(wanted == 0, -1e9), dim=-1)
    return each + first * any_of


def edge_list(source: Tensor, target: Tensor) -> Tensor:
    """(2, e) as the layers take it: from neighbours to the nodes that average them."""
    return torch.stack([source, target])


def adjacency(starts: Tensor, targets: Tensor) -> Tensor:
    """(n, n) sparse CSR whose rows add up to 1."""
    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    counts = starts.diff()
    values = (1.0 / counts.clamp(min=1)).repeat_interleave(counts)
    n = len(starts) - 1
    return torch.sparse_csr_tensor(starts, targets, values.to(torch.float32), size=(n, n))


# Neighbours drawn from a CSR adjacency: mini-batches for graphs that do not fit a full batch. Loaders of graph
# libraries need extension wheels that do not exist for every platform. This one is machine code by numba, which is
# a dependency anyway; the same seed draws the same neighbours on every machine.


Longs = NDArray[np.int64]


@dataclass(frozen=True)
class SampledGraph:
    """A part of a graph: `nodes` (the asked ones first), and edges by place in `nodes`, source to target."""

    nodes: Longs
    source: Longs
    target: Longs


class NeighbourSampler:
    """Draws neighbourhoods from one adjacency; it holds one number for each node of the graph between two draws."""

    def __init__(self, starts: NDArray[np.int64], targets: NDArray[np.int32]) -> None:

        self._draw = draw_neighbours
        self._starts, self._targets = starts, targets
        self._place = np.full(len(starts) - 1, -1, np.int64)  # where a node stands in the part that is being drawn

    def sample(self, asked: Longs, fanouts: tuple[int, ...], random: np.random.Generator) -> SampledGraph:
        """The asked nodes (each once) with at most `fanouts[i]` different neighbours of each that hop i reaches."""
        asked, limits = np.asarray(asked, np.int64), np.asarray(fanouts, np.int64)
        seed = int(random.integers(0, np.iinfo(np.int64).max))
        size = _most(len(asked), fanouts, len(self._place))
        nodes, source, target = self._draw(self._starts, self._targets, asked, limits, seed, self._place, size)
        return SampledGraph(nodes, source, target)


def _most(n_asked: int, fanouts: tuple[int, ...], n_nodes: int) -> int:
    """How many edges a draw may have."""
    edges, frontier = 0, n_asked
    for fanout in fanouts:
        edges += frontier * fanout
        frontier = min(frontier * fanout, n_nodes)
    return edges


# The compiled draw of `models/ranker/network.py`, apart so that only fitting by parts loads the compiler.


def _next_random(state):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Next state and output of SplitMix64 (Steele, Lea, Flood 2014)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = state
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))


_next = compile_loop(_next_random)


def _draw_neighbours(starts, targets, asked, fanouts, seed, place, most):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Nodes of the part, and the two ends of its edges by place in them. `place` is -1 everywhere before and after."""
    nodes = np.empty(len(asked) + most, np.int64)
    source, target = np.empty(most, np.int64), np.empty(most, np.int64)
    n_nodes, n_edges, state = 0, 0, np.uint64(seed)
    for node in asked:
        nodes[n_nodes] = node
        place[node] = n_nodes
        n_nodes += 1
    begin = 0
    for fanout in fanouts:
        end = n_nodes
        chosen = np.empty(fanout, np.int64)
        for at in range(begin, end):
            first = starts[nodes[at]]
            count = starts[nodes[at] + 1] - first
            n_chosen = min(count, fanout)
            for i in range(n_chosen):
                pick = np.int64(i)
                if (
                    count > fanout
                ):  # Floyd's draw without repetition: the i-th comes from the first count - fanout + i + 1
                    limit = count - fanout + i
                    state, drawn = _next(state)
                    pick = np.int64(drawn % np.uint64(limit + 1))
                    for j in range(i):
                        if chosen[j] == pick:
                            pick = limit
                            break
                chosen[i] = pick
                other = np.int64(targets[first + pick])
                if place[other] < 0:
                    place[other] = n_nodes
                    nodes[n_nodes] = other
                    n_nodes += 1
                source[n_edges] = place[other]
                target[n_edges] = at
                n_edges += 1
        begin = end
    for at in range(n_nodes):
        place[nodes[at]] = -1
    return nodes[:n_nodes].copy(), source[:n_edges].copy(), target[:n_edges].copy()


draw_neighbours = compile_loop(_draw_neighbours)
# What both fits share: the curve of losses, and lists as rectangles.
Told = Callable[[str, int, int], None]  # what, done, of how many


@dataclass
class Curve:
    """Losses by epoch: of what is fitted, and of what is held out to know when to stop."""

    fitted: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)


def rectangle(values: NDArray[np.generic], starts: Longs) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Rows of lists as (lists, longest, ...), and which places are filled."""
    counts = np.diff(starts)
    longest = int(counts.max(initial=1))
    there = np.arange(longest) < counts[:, None]
    filled = np.zeros((len(counts), longest, *values.shape[1:]), values.dtype)
    filled[there] = values
    return filled, there


# Fitting heads by lists of candidates; seeded, stopped early, cross-fitted. Every head is fitted once for each fold
# of the questions, without it; what serves is the mean of these, which is again one small network, and what the
# folds say of the questions they have not seen is an honest score for all of them. When to stop is decided for each
# fold by the others, so not even that was seen.


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


def _fit_fold(
    inside: Lists, outside: Lists, rules: HeadRules, place: int, each: bool
) -> tuple[list[dict[str, Singles]], Curve]:
    """The head of a fold after every few steps, with its losses; the other folds say which of them is taken."""
    import torch

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

        columns, there = rectangle(lists.columns, lists.starts)
        wanted, _ = rectangle(lists.wanted, lists.starts)
        return cls(*(torch.from_numpy(one) for one in (columns, wanted, there, lists.weight)))

    def loss(self, scores: torch.Tensor, each: bool, first: float) -> torch.Tensor:
        from torch.nn import functional

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
