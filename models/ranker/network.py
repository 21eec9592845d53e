"""The networks in torch: two layers of GraphSAGE over the graph, a tower for questions, small heads over candidates.

The only module that imports torch_geometric. The same layers take a full batch (a sparse adjacency) and a sampled part
of a graph (an edge list), on any device.
"""

from __future__ import annotations

import warnings
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import SAGEConv


class ProjectedSage(SAGEConv):  # type: ignore[misc]  # the library is untyped
    """A SAGE layer that projects before it averages: the same numbers, and fewer of them move along edges."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """(n, out) from (n, in) and an edge list (2, e) or a sparse adjacency (n, n) of targets by sources."""
        projected = functional.linear(x, self.lin_l.weight)
        if edges.layout == torch.strided:
            near = self.propagate(edges, x=(projected, projected), size=(len(x), len(x)))
        else:
            near = torch.sparse.mm(edges, projected)  # rows of the adjacency add up to 1: this is the mean
        return cast(Tensor, near + self.lin_l.bias + self.lin_r(x))


class States(nn.Module):
    """Where nodes and questions lie: rows of length 1, near where an edge or a preference says so."""

    def __init__(self, n_features: int, dimension: int, hidden: int, state: int) -> None:
        super().__init__()
        self.first = ProjectedSage(n_features, hidden, aggr="mean")
        self.second = ProjectedSage(hidden, state, aggr="mean")
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
            arrays[f"{name}.own"] = layer.lin_r.weight.T
            arrays[f"{name}.neighbours"] = layer.lin_l.weight.T
            arrays[f"{name}.bias"] = layer.lin_l.bias
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
