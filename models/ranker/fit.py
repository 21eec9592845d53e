"""Fit the ranker with torch and torch-geometric: states of nodes by GraphSAGE, then heads over lists of candidates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import k_hop_subgraph, to_torch_csr_tensor

from models.ranker.infer import Choices, Curve, Graph, HeadRules, Lists, Singles, StateRules

Longs = NDArray[np.int64]
Progress = Callable[[str, int, int], None]  # what, done, of how many
HELD_EDGES = 0.05  # kept out of messages and losses, to know when to stop
HOPS = 2  # as many as there are layers


def _silent(what: str, done: int, of: int) -> None: ...


class States(nn.Module):
    """Where nodes and questions lie: rows of length 1, near where an edge or a preference says so."""

    def __init__(self, n_features: int, dimension: int, rules: StateRules) -> None:
        super().__init__()
        self.first = SAGEConv(n_features, rules.hidden)
        self.second = SAGEConv(rules.hidden, rules.state)
        self.tower = nn.Linear(dimension, rules.state, bias=False)
        self.dropout = nn.Dropout(rules.dropout)
        self.link_scale = nn.Parameter(torch.tensor(4.0))
        self.link_bias = nn.Parameter(torch.tensor(-1.0))
        self.asked_scale = nn.Parameter(torch.tensor(4.0))

    def nodes(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """(n, state), rows of length 1, from (n, features) and an edge list (2, e) or a sparse adjacency (n, n)."""
        hidden = self.dropout(functional.relu(self.first(features, adjacency)))
        return functional.normalize(self.second(hidden, adjacency), dim=1)

    def link_loss(self, states: Tensor, edges: Tensor, other: Tensor) -> Tensor:
        """The ends of edges (2, e) lie nearer to each other than to nodes (e,) drawn at random."""
        left, right = states[edges[0]], states[edges[1]]
        near = self.link_scale * (left * right).sum(dim=1) + self.link_bias
        far = self.link_scale * (left * states[other]).sum(dim=1) + self.link_bias
        return functional.softplus(-near).mean() + functional.softplus(far).mean()

    def choice_loss(self, states: Tensor, choices: _PaddedChoices) -> Tensor:
        """What was wanted lies nearer to the question than the other candidates."""
        asked = functional.normalize(self.tower(choices.vectors), dim=1)
        scores = self.asked_scale * torch.einsum("qs,qns->qn", asked, states[choices.nodes])
        return listwise(scores, choices.wanted, choices.there, 0.0).mean()

    def exported(self) -> dict[str, Singles]:
        """The arrays that serving needs, by name, rows in and columns out."""
        arrays = {"tower": self.tower.weight.T}
        for name, layer in (("first", self.first), ("second", self.second)):
            arrays[f"{name}.own"] = layer.lin_r.weight.T
            arrays[f"{name}.neighbours"] = layer.lin_l.weight.T
            arrays[f"{name}.bias"] = layer.lin_l.bias
        return {name: one.detach().cpu().contiguous().numpy().copy() for name, one in arrays.items()}


def fit_states(
    graph: Graph, choices: Choices | None, rules: StateRules, progress: Progress = _silent
) -> tuple[dict[str, Singles], Curve]:
    """The arrays of the network and of the tower, and their curve; every epoch is one pass over the whole graph.

    Of a graph above `full_batch` nodes only what lies within two hops of the candidates is seen.
    """
    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    torch.manual_seed(rules.seed)
    target = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    edges = torch.from_numpy(np.stack([graph.targets.astype(np.int64), target]))
    features = torch.from_numpy(graph.features)
    padded = _PaddedChoices.of(choices) if choices is not None and len(choices) else None
    if padded is not None and len(graph) > rules.full_batch:
        asked = padded.nodes.unique()  # type: ignore[no-untyped-call]
        seen, edges, _, _ = k_hop_subgraph(asked, HOPS, edges, relabel_nodes=True, num_nodes=len(graph))
        features, padded.nodes = features[seen], torch.searchsorted(seen, padded.nodes)
    split = RandomLinkSplit(HELD_EDGES, 0.0, is_undirected=True, add_negative_train_samples=False, neg_sampling_ratio=0)
    fitted, held, _ = split(Data(x=features, edge_index=edges))
    adjacency = to_torch_csr_tensor(fitted.edge_index, size=(len(features), len(features))).to(rules.device)
    features = features.to(rules.device)
    fitted_edges, held_edges = (one.edge_label_index.to(rules.device) for one in (fitted, held))
    held_other = torch.randint(len(features), (held_edges.shape[1],)).to(rules.device)
    padded = padded.to(rules.device) if padded is not None else None

    network = States(features.shape[1], padded.vectors.shape[1] if padded else 1, rules).to(rules.device)
    learner = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.decay)
    curve, best, arrays, waited = Curve(), np.inf, network.exported(), 0
    for epoch in range(rules.epochs):
        network.train()
        learner.zero_grad()
        states = network.nodes(features, adjacency)
        drawn = torch.randint(fitted_edges.shape[1], (min(rules.links, fitted_edges.shape[1]),))
        other = torch.randint(len(features), (len(drawn),)).to(rules.device)
        loss = network.link_loss(states, fitted_edges[:, drawn.to(rules.device)], other)
        if padded is not None:
            loss = loss + rules.choice * network.choice_loss(states, padded)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        curve.fitted.append(float(loss.detach()))
        network.eval()
        with torch.no_grad():
            states = network.nodes(features, adjacency)
            loss = network.link_loss(states, held_edges, held_other) if held_edges.shape[1] else torch.zeros(())
        curve.held.append(float(loss))
        progress("states", epoch + 1, rules.epochs)
        if curve.held[-1] < best - rules.gain:
            best, arrays, waited = curve.held[-1], network.exported(), 0
        else:
            waited += 1
            if waited >= rules.patience:
                break
    return arrays, curve


@dataclass
class _PaddedChoices:
    """Choices as rectangles: (q, most) nodes, wanted, and which places hold a candidate."""

    vectors: Tensor
    nodes: Tensor
    wanted: Tensor
    there: Tensor

    @classmethod
    def of(cls, choices: Choices) -> _PaddedChoices:
        wanted, there = _pad(choices.wanted)
        return cls(torch.from_numpy(choices.vectors), _pad(choices.nodes)[0], wanted, there)

    def to(self, device: str) -> _PaddedChoices:
        return _PaddedChoices(*(one.to(device) for one in (self.vectors, self.nodes, self.wanted, self.there)))


def listwise(scores: Tensor, wanted: Tensor, there: Tensor, first: float) -> Tensor:
    """(q,) the softmax's share of what was wanted, all of it together and `first` times any of it (for the top place).

    `there` marks candidates; the rest of a row is padding.
    """
    logs = torch.log_softmax(scores.masked_fill(~there, -1e9), dim=-1)
    each = -(logs.masked_fill(~there, 0.0) * wanted).sum(-1) / wanted.sum(-1).clamp(min=1.0)
    any_of = -torch.logsumexp(logs.masked_fill(wanted == 0, -1e9), dim=-1)
    return each + first * any_of


def _pad(lists: Sequence[NDArray[np.generic]]) -> tuple[Tensor, Tensor]:
    """Lists of any length as (lists, longest, ...), and which places are filled."""
    rows = [torch.from_numpy(np.ascontiguousarray(one)) for one in lists]
    there = [torch.ones(len(one), dtype=torch.bool) for one in rows]
    return pad_sequence(rows, batch_first=True), pad_sequence(there, batch_first=True)


# Every head is fitted once for each fold of the questions, without it; what serves is the mean of these, which is again
# one small network, and what the folds say of the questions they have not seen is an honest score for all of them. When
# to stop is decided for each fold by the others, so not even that was seen.


class HeadNetwork(nn.Module):
    """A line through the columns, and beside it a small network that begins by saying nothing."""

    def __init__(self, n_columns: int, rules: HeadRules) -> None:
        super().__init__()
        self.line = nn.Parameter(torch.zeros(n_columns))
        self.inner = nn.Linear(n_columns, rules.hidden)
        self.outer = nn.Parameter(torch.zeros(rules.hidden))
        self.dropout = nn.Dropout(rules.dropout)

    def forward(self, columns: Tensor) -> Tensor:
        """(..., ) from (..., columns)."""
        worth: Tensor = columns @ self.line + self.dropout(functional.relu(self.inner(columns))) @ self.outer
        return worth

    def exported(self) -> dict[str, Singles]:
        """The arrays that serving needs."""
        arrays = {"line": self.line, "inner": self.inner.weight.T, "inner_bias": self.inner.bias, "outer": self.outer}
        return {name: one.detach().contiguous().numpy().copy() for name, one in arrays.items()}


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
    progress: Progress = _silent,
) -> FittedHead:
    """Fit a head. `fold` is a question's fold; `each`: candidates are judged one by one, not against each other.

    `prior` (columns,) is added to what was learned: a voice for columns that rank well where nothing was learned.
    """
    every = np.concatenate(lists.columns)
    mean = every.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = (1.0 / np.maximum(every.std(axis=0, dtype=np.float64), 1e-4)).astype(np.float32)
    scaled = replace(lists, columns=[np.clip((one - mean) * scale, -5.0, 5.0) for one in lists.columns])
    numbers = np.unique(fold).tolist()
    fits = []
    with _one_thread():
        for place, one in enumerate(numbers):
            inside = np.flatnonzero(fold != one) if len(numbers) > 1 else np.arange(len(lists))
            outside = np.flatnonzero(fold == one)
            fits.append(_fit_fold(scaled.subset(inside), scaled.subset(outside), rules, place, each))
            progress("heads", place + 1, len(numbers))
    held = np.array([curve.held for _, curve in fits])
    voice = np.zeros_like(mean) if prior is None else prior / scale

    def head(arrays: dict[str, Singles]) -> dict[str, Singles]:
        return {"mean": mean, "scale": scale, **arrays, "line": arrays["line"] + voice}

    without: dict[int, dict[str, Singles]] = {}
    for place, one in enumerate(numbers):
        others = np.delete(held, place, axis=0) if len(numbers) > 1 else held
        without[one] = head(fits[place][0][int(np.argmin(others.mean(axis=0)))])
    best = int(np.argmin(held.mean(axis=0)))
    served = [head(steps[best]) for steps, _ in fits]
    curve = Curve(np.mean([one.fitted for _, one in fits], axis=0).tolist(), held.mean(axis=0).tolist())
    return FittedHead(_mean_head(served), without, curve)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products as small as a head's are slower on several threads, and much slower on a busy machine."""
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
    torch.manual_seed(rules.seed + place)
    network = HeadNetwork(inside.columns[0].shape[1], rules)
    learner = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.decay)
    fitted, held = _PaddedLists.of(inside), _PaddedLists.of(outside if len(outside) else inside)
    curve, steps = Curve(), []
    for step in range(1, rules.steps + 1):
        network.train()
        learner.zero_grad()
        loss = fitted.loss(network(fitted.columns), each, rules.first)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        if step % rules.every == 0:
            network.eval()
            with torch.no_grad():
                curve.held.append(float(held.loss(network(held.columns), each, rules.first)))
            curve.fitted.append(float(loss.detach()))
            steps.append(network.exported())
    return steps, curve


@dataclass(frozen=True)
class _PaddedLists:
    """Lists as rectangles: (q, most, columns), (q, most) wanted and there, (q,) weight."""

    columns: Tensor
    wanted: Tensor
    there: Tensor
    weight: Tensor

    @classmethod
    def of(cls, lists: Lists) -> _PaddedLists:
        columns, there = _pad(lists.columns)
        return cls(columns, _pad(lists.wanted)[0], there, torch.from_numpy(lists.weight))

    def loss(self, scores: Tensor, each: bool, first: float) -> Tensor:
        if each:
            apart = functional.binary_cross_entropy_with_logits(scores, self.wanted, reduction="none")
            own = (apart * self.there).sum(-1) / self.there.sum(-1)
        else:
            own = listwise(scores, self.wanted, self.there, first)
        return (own * self.weight).sum() / self.weight.sum()
