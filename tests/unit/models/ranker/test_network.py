"""The layers of the ranker say the same as GraphSAGE written out node by node."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from models.ranker.network import SageLayer, adjacency, edge_list

STARTS = [0, 2, 3, 3, 6]
TARGETS = [1, 3, 0, 0, 1, 2]  # node 2 has no neighbours


def written_out(layer: SageLayer, features: np.ndarray) -> np.ndarray:
    own, near, bias = (
        one.detach().numpy() for one in (layer.own.weight, layer.neighbours.weight, layer.neighbours.bias)
    )
    rows = []
    for node, (begin, end) in enumerate(pairwise(STARTS)):
        around = features[TARGETS[begin:end]]
        mean = around.mean(axis=0) if len(around) else np.zeros(features.shape[1])
        rows.append(own @ features[node] + near @ mean + bias)
    return np.array(rows)


@pytest.mark.parametrize("form", ["adjacency", "edge list"])
def test_a_layer_joins_a_node_with_the_mean_of_its_neighbours(form: str) -> None:
    features = np.random.default_rng(3).normal(size=(4, 5)).astype(np.float32)
    torch.manual_seed(0)
    layer = SageLayer(5, 3)
    if form == "adjacency":
        edges = adjacency(torch.tensor(STARTS), torch.tensor(TARGETS))
    else:
        edges = edge_list(torch.tensor(TARGETS), torch.tensor(np.repeat(np.arange(4), np.diff(STARTS))))
    given = layer(torch.from_numpy(features), edges).detach().numpy()
    np.testing.assert_allclose(given, written_out(layer, features), rtol=1e-5, atol=1e-6)
