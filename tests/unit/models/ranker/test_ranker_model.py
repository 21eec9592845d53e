"""The ranker: fitted the same from the same data, what is planted is found, and serving computes
what was fitted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.evaluation.metrics import expected_calibration_error
from models.ranker.infer import (
    N_EXTRA,
    BadModel,
    Graph,
    RankerModel,
    StateRules,
    node_states,
    pack,
    unpack,
)
from tests.unit.models.ranker.rankers import random_model, ring

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = StateRules(hidden=8, state=4, epochs=6, links=200)


@pytest.fixture
def fit() -> Callable[..., Any]:
    """Imported here: each worker collects this file, and torch takes seconds and half a
    gigabyte.
    """
    from models.ranker.fit import fit_states

    return fit_states


def two_towns() -> Graph:
    """Two rings that nothing joins; features say nothing about which is which."""
    one, two = ring(20, 6, 1), ring(20, 6, 2)
    return Graph(
        np.vstack([one.features, two.features]),
        np.concatenate([one.starts, two.starts[1:] + one.starts[-1]]),
        np.concatenate([one.targets, two.targets + 20]).astype(np.int32),
    )


def test_the_same_data_gives_the_same_states(fit: Callable[..., Any]) -> None:
    graph = two_towns()
    wanted = np.array([1, 0], np.float32)
    choices = [
        (np.eye(3, dtype=np.float32)[row], np.arange(2) + 2 * row, wanted) for row in range(3)
    ]
    (one, _), (two, _) = (fit(graph, choices, SMALL) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("full_batch", [200_000, 10])
def test_neighbours_lie_nearer_than_strangers(fit: Callable[..., Any], full_batch: int) -> None:
    graph = two_towns()
    question = np.ones(3, np.float32)
    asked = [(question, np.arange(20), np.eye(1, 20, dtype=np.float32)[0])]
    asked.append((question, np.arange(20, 40), np.zeros(20, np.float32)))
    # Of 40 edges two are held out, which says too little to stop by: a gain below 0 keeps the last
    # epoch.
    rules = StateRules(
        hidden=16, state=8, epochs=60, patience=60, links=400, dropout=0.0, gain=-10.0, choice=0.0
    )
    rules = replace(rules, full_batch=full_batch)
    arrays, curve = fit(graph, asked, rules)
    states = node_states(
        RankerModel({}, arrays), graph.features, graph.starts, graph.targets
    ).astype(np.float32)
    near = np.mean([states[node] @ states[(node + 1) % 20] for node in range(20)])
    far = np.mean([states[node] @ states[20 + node] for node in range(20)])
    assert near > far + 0.2
    assert curve[-1][0] < curve[0][0]


def test_serving_computes_what_was_fitted() -> None:
    """The network in torch-geometric and the one in numpy give the same states."""
    import torch

    from models.ranker.fit import States

    graph = two_towns()
    torch.manual_seed(0)
    network = States(6, 1, SMALL).eval()
    target = np.repeat(np.arange(40), np.diff(graph.starts))
    edges = torch.from_numpy(np.stack([graph.targets.astype(np.int64), target]))
    fitted = network.nodes(torch.from_numpy(graph.features), edges).detach().numpy()
    model = RankerModel({}, network.exported())
    served = node_states(model, graph.features, graph.starts, graph.targets)
    np.testing.assert_allclose(served.astype(np.float32), fitted, atol=2e-3)


def test_a_packed_model_is_the_same_model() -> None:
    model = random_model("toy@1/3", 3)
    again = unpack(*pack(model))
    assert again.signature == model.signature
    assert all(np.array_equal(again.arrays[name], one) for name, one in model.arrays.items())
    assert pack(again)[0] == pack(model)[0]


def test_a_node_without_neighbours_has_a_state_of_its_own() -> None:
    model = random_model("toy@1/3", 3)
    features = np.ones((2, 3 + N_EXTRA), np.float32)
    lonely = node_states(model, features, np.zeros(3, np.int64), np.zeros(0, np.int32))
    assert np.array_equal(lonely[0], lonely[1])
    assert np.linalg.norm(lonely[0].astype(np.float32)) == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 99}, "format 99"),
        ({"columns": ["cosine"]}, "fitted to cosine, this version computes words"),
        ({"layout": [["tower", [1, 1]]]}, "its layout speaks of 1"),
    ],
)
def test_a_model_of_another_kind_is_refused_with_the_reason(
    change: dict[str, object], told: str
) -> None:
    signature, numbers = pack(random_model("toy@1/3", 3))
    body = {**json.loads(signature), **change}
    with pytest.raises(BadModel, match=told):
        unpack(json.dumps(body).encode(), numbers)


def test_a_model_that_is_not_a_number_is_refused() -> None:
    signature, numbers = pack(random_model("toy@1/3", 3))
    hurt = numbers.copy()
    hurt[3] = np.nan
    with pytest.raises(BadModel, match="not finite"):
        unpack(signature, hurt)
    with pytest.raises(BadModel, match="not JSON"):
        unpack(b"\xff\x00", numbers)


def test_the_error_is_the_distance_between_what_was_said_and_what_came() -> None:
    chance, right = np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(chance, right) == pytest.approx((0.4 * 2 + 0.1 * 2) / 4)
