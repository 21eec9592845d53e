"""The model in numpy: what it computes, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.ranker.infer import N_EXTRA, BadModel, Head, node_states, pack, unpack
from tests.unit.models.ranker.rankers import STATE, random_model, ring


def test_a_packed_model_is_the_same_model() -> None:
    model = random_model("toy@1/3", 3)
    again = unpack(*pack(model))
    assert again.signature == model.signature
    assert all(np.array_equal(again.arrays[name], one) for name, one in model.arrays.items())
    assert pack(again)[0] == pack(model)[0]


def test_a_head_is_a_line_and_a_small_network() -> None:
    head = Head(*(np.array(one, np.float32) for one in ([1.0], [2.0], [3.0], [[1.0]], [0.0], [10.0])))
    assert head.score(np.array([[1.0], [1.5], [0.5]], np.float32)).tolist() == [0.0, 13.0, -3.0]


def test_a_state_is_the_mean_of_the_neighbours_and_the_node_itself() -> None:
    model, graph = random_model("toy@1/3", 3), ring(5, 3 + N_EXTRA)
    layers = {name: one.astype(np.float64) for name, one in model.arrays.items()}
    hidden = graph.features.astype(np.float64)
    for layer in ("first", "second"):
        near = (np.roll(hidden, 1, axis=0) + np.roll(hidden, -1, axis=0)) / 2
        hidden = hidden @ layers[f"{layer}.own"] + near @ layers[f"{layer}.neighbours"] + layers[f"{layer}.bias"]
        if layer == "first":
            hidden = np.maximum(hidden, 0)
    expected = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    found = node_states(model, graph.features, graph.starts, graph.targets)
    assert found.shape == (5, STATE)
    assert np.allclose(found.astype(np.float64), expected, atol=2e-3)


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
        ({"features": 0}, "features of version 0"),
        ({"columns": {"read": ["cosine"]}}, "head 'read'"),
        ({"layout": [["tower", [1, 1]]]}, "its layout speaks of 1"),
    ],
)
def test_a_model_of_another_kind_is_refused_with_the_reason(change: dict[str, object], told: str) -> None:
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
