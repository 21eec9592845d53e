"""Fit the states of nodes with torch and torch-geometric: GraphSAGE over the graph, beside the
choices of questions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import k_hop_subgraph, to_torch_csr_tensor

from models.arrays import Singles
from models.ranker.infer import AskedNodes, Graph, StateRules

Progress = Callable[[str, int, int], None]  # what, done, of how many
HELD_EDGES = 0.05  # kept out of messages and losses, to know when to stop
HOPS = 2  # as many as there are layers


def _silent(task: str, done: int, of: int) -> None: ...


class States(nn.Module):
    """Where nodes and questions lie: rows of length 1, near where an edge or a preference says
    so.
    """

    def __init__(
        self,
        n_features: int,
        dimension: int,
        rules: StateRules,
    ) -> None:
        super().__init__()
        self.first = SAGEConv(n_features, rules.hidden)
        self.second = SAGEConv(rules.hidden, rules.state)
        self.tower = nn.Linear(dimension, rules.state, bias=False)
        self.dropout = nn.Dropout(rules.dropout)
        self.link_scale = nn.Parameter(torch.tensor(4.0))
        self.link_bias = nn.Parameter(torch.tensor(-1.0))
        self.asked_scale = nn.Parameter(torch.tensor(4.0))

    def nodes(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """(n, state), rows of length 1, from (n, features) and an edge list (2, e) or a sparse
        adjacency (n, n).
        """
        hidden = self.dropout(functional.relu(self.first(features, adjacency)))
        return functional.normalize(self.second(hidden, adjacency), dim=1)

    def link_loss(
        self,
        states: Tensor,
        edges: Tensor,
        drawn: Tensor,
    ) -> Tensor:
        """The ends of edges (2, e) lie nearer to each other than to nodes (e,) drawn at random."""
        tails = states[edges[0]]
        right = states[edges[1]]
        near = self.link_scale * (tails * right).sum(dim=1) + self.link_bias
        far = self.link_scale * (tails * states[drawn]).sum(dim=1) + self.link_bias
        return functional.softplus(-near).mean() + functional.softplus(far).mean()

    def choice_loss(
        self,
        states: Tensor,
        vectors: Tensor,
        nodes: Tensor,
        is_wanted: Tensor,
        is_candidate: Tensor,
    ) -> Tensor:
        """What was wanted lies nearer to the question than the other candidates."""
        questions = functional.normalize(self.tower(vectors), dim=1)
        scores = self.asked_scale * torch.einsum("qs,qns->qn", questions, states[nodes])
        logs = torch.log_softmax(
            scores.masked_fill(~is_candidate, -1e9),
            dim=-1,
        ).masked_fill(
            ~is_candidate,
            0.0,
        )
        return (-(logs * is_wanted).sum(-1) / is_wanted.sum(-1).clamp(min=1.0)).mean()

    def exported(self) -> dict[str, Singles]:
        """The arrays that serving needs, by name, rows in and columns out."""
        arrays = {"tower": self.tower.weight.T}
        for name, layer in (("first", self.first), ("second", self.second)):
            arrays[f"{name}.own"] = layer.lin_r.weight.T
            arrays[f"{name}.neighbours"] = layer.lin_l.weight.T
            arrays[f"{name}.bias"] = layer.lin_l.bias

        return {
            name: array.detach().cpu().contiguous().numpy().copy() for name, array in arrays.items()
        }


def fit_states(
    graph: Graph,
    choices: Sequence[AskedNodes],
    rules: StateRules,
    progress: Progress = _silent,
) -> tuple[dict[str, Singles], list[tuple[float, float]]]:
    """The arrays of the network and of the tower; every epoch is one pass over the whole graph.

    With them the losses by epoch: of what is fitted, and of what is held out to know when to stop.

    Of a graph above `full_batch` nodes only what lies within two hops of the candidates is seen.
    """
    warnings.filterwarnings(
        "ignore",
        message="Sparse",
        category=UserWarning,
    )
    has_gpu = rules.device != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    torch.manual_seed(rules.seed)
    target = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    edges = torch.from_numpy(np.stack([graph.targets.astype(np.int64), target]))
    features = torch.from_numpy(graph.features)
    padded = _pad(choices) if choices else {}

    if padded and len(graph) > rules.full_batch:
        candidates = padded["nodes"].unique()  # type: ignore[no-untyped-call]
        near_nodes, edges, _, _ = k_hop_subgraph(
            candidates,
            HOPS,
            edges,
            relabel_nodes=True,
            num_nodes=len(graph),
        )
        features, padded["nodes"] = (
            features[near_nodes],
            torch.searchsorted(near_nodes, padded["nodes"]),
        )

    split = RandomLinkSplit(
        HELD_EDGES,
        0.0,
        is_undirected=True,
        add_negative_train_samples=False,
        neg_sampling_ratio=0,
    )
    fitted, held_out, _ = split(Data(x=features, edge_index=edges))
    size = (len(features), len(features))
    adjacency = to_torch_csr_tensor(fitted.edge_index, size=size).to(device)
    features = features.to(device)
    fitted_edges = fitted.edge_label_index.to(device)
    held_edges = held_out.edge_label_index.to(device)
    held_other = torch.randint(len(features), (held_edges.shape[1],)).to(device)
    padded = {name: tensor.to(device) for name, tensor in padded.items()}

    network = States(
        features.shape[1],
        padded["vectors"].shape[1] if padded else 1,
        rules,
    ).to(device)
    learner = torch.optim.AdamW(
        network.parameters(),
        lr=rules.rate,
        weight_decay=rules.decay,
    )
    best = np.inf
    arrays = network.exported()
    waited = 0

    curve: list[tuple[float, float]] = []
    for epoch in range(rules.epochs):
        network.train()
        learner.zero_grad()
        states = network.nodes(features, adjacency)
        drawn = torch.randint(
            fitted_edges.shape[1],
            (min(rules.links, fitted_edges.shape[1]),),
        )
        far_nodes = torch.randint(len(features), (len(drawn),)).to(device)
        loss = network.link_loss(
            states,
            fitted_edges[:, drawn.to(device)],
            far_nodes,
        )

        if padded:
            loss = loss + rules.choice * network.choice_loss(states, **padded)

        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        fitted_loss = float(loss.detach())
        network.eval()

        with torch.no_grad():
            states = network.nodes(features, adjacency)
            if held_edges.shape[1]:
                loss = network.link_loss(states, held_edges, held_other)
            else:
                loss = torch.zeros(())

        curve.append((fitted_loss, float(loss)))
        progress("states", epoch + 1, rules.epochs)
        if float(loss) < best - rules.gain:
            best = float(loss)
            arrays = network.exported()
            waited = 0
        else:
            waited += 1
            if waited >= rules.patience:
                break

    return arrays, curve


def _pad(choices: Sequence[AskedNodes]) -> dict[str, Tensor]:
    """Vectors (q, dim), and as rectangles (q, most) nodes, what was wanted, and which places hold a
    candidate.
    """
    vectors, nodes, is_wanted = zip(*choices, strict=True)
    lists = {
        "nodes": nodes,
        "is_wanted": is_wanted,
        "is_candidate": [np.ones(len(candidates), np.bool_) for candidates in nodes],
    }
    padded = {"vectors": torch.from_numpy(np.stack(vectors))}

    for name, rows in lists.items():
        tensors = []
        for row in rows:
            tensors.append(torch.from_numpy(np.ascontiguousarray(row)))

        padded[name] = pad_sequence(tensors, batch_first=True)

    return padded
