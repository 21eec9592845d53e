"""The networks in torch: two layers of GraphSAGE over the graph, a tower for questions, small heads over candidates.

The same layers take a full batch (a sparse adjacency) and a sampled part of a graph (an edge list), on any device.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional


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
