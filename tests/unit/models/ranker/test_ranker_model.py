"""The ranker: fitted the same from the same data, what is planted is found, and serving computes what was fitted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.ranker.fit import States, fit_head, fit_states
from models.ranker.infer import (
    N_EXTRA,
    BadModel,
    Choices,
    Graph,
    Head,
    HeadRules,
    Lists,
    RankerModel,
    StateRules,
    doubt_threshold,
    expected_calibration_error,
    folds,
    hold_out,
    isotonic,
    node_states,
    pack,
    unpack,
)
from tests.unit.models.ranker.rankers import STATE, random_model, ring

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = StateRules(hidden=8, state=4, epochs=6, links=200)


def questions(n: int, seed: int = 0) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[str]]:
    """Lists of six in which the second column, less the third, says what was wanted."""
    random = np.random.default_rng(seed)
    blocks = []
    for _ in range(n):
        columns = random.normal(size=(6, 4)).astype(np.float32)
        wanted = np.zeros(6, np.float32)
        wanted[np.argmax(columns[:, 1] - columns[:, 2])] = 1.0
        blocks.append((columns, wanted))
    return blocks, [f"question {number}" for number in range(n)]


def lists_of(blocks: list[tuple[np.ndarray, np.ndarray]]) -> Lists:
    return Lists([one for one, _ in blocks], [one for _, one in blocks], np.ones(len(blocks), np.float32))


def two_towns() -> Graph:
    """Two rings that nothing joins; features say nothing about which is which."""
    one, two = ring(20, 6, 1), ring(20, 6, 2)
    return Graph(
        np.vstack([one.features, two.features]),
        np.concatenate([one.starts, two.starts[1:] + one.starts[-1]]),
        np.concatenate([one.targets, two.targets + 20]).astype(np.int32),
    )


def test_the_same_data_gives_the_same_states_and_heads() -> None:
    graph = two_towns()
    choices = Choices(np.eye(3, dtype=np.float32), [*np.arange(6).reshape(3, 2)], [np.array([1, 0], np.float32)] * 3)
    (one, _), (two, _) = (fit_states(graph, choices, SMALL) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    blocks, texts = questions(30)
    heads = [fit_head(lists_of(blocks), folds(texts, 3), HeadRules(steps=12)).arrays for _ in range(2)]
    assert all(np.array_equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_a_head_finds_what_was_planted_in_questions_it_has_not_seen() -> None:
    blocks, texts = questions(120)
    fitted = fit_head(lists_of(blocks), folds(texts, 4), HeadRules(first=0.0, decay=0.02, dropout=0.0))
    head = Head(**fitted.arrays)
    fresh, _ = questions(100, seed=9)
    right = [np.argmax(head.score(columns)) == np.argmax(wanted) for columns, wanted in fresh]
    assert np.mean(right) > 0.9
    unseen = [
        np.argmax(Head(**fitted.unseen(int(fold))).score(columns)) == np.argmax(wanted)
        for (columns, wanted), fold in zip(blocks, folds(texts, 4), strict=True)
    ]
    assert np.mean(unseen) > 0.85
    assert fitted.curve.held[-1] < fitted.curve.held[0]


def test_a_prior_speaks_beside_what_was_learned() -> None:
    blocks, texts = questions(30)
    lists, fold = lists_of(blocks), folds(texts, 3)
    plain, voiced = (
        fit_head(lists, fold, HeadRules(steps=12), prior) for prior in (None, np.array([0, 0, 0, 2.0], np.float32))
    )
    columns = blocks[0][0]
    for one, two in ((plain.arrays, voiced.arrays), (plain.unseen(1), voiced.unseen(1))):
        difference = Head(**two).score(columns) - Head(**one).score(columns)
        assert np.allclose(np.diff(difference), 2.0 * np.diff(columns[:, 3]), atol=1e-4)


def test_candidates_judged_one_by_one_get_the_chance_they_have() -> None:
    random = np.random.default_rng(3)
    columns = random.normal(size=(2_000, 1)).astype(np.float32)
    wanted = (random.random(2_000) < 1 / (1 + np.exp(-2 * columns[:, 0]))).astype(np.float32)
    lists = lists_of([(columns[start : start + 20], wanted[start : start + 20]) for start in range(0, 2_000, 20)])
    head = Head(**fit_head(lists, np.arange(100) % 4, HeadRules(steps=240, decay=0.02, dropout=0.0), each=True).arrays)
    asked = np.array([[-1.0], [0.0], [1.0]], np.float32)
    assert np.allclose(1 / (1 + np.exp(-head.score(asked))), 1 / (1 + np.exp(-2 * asked[:, 0])), atol=0.08)


@pytest.mark.parametrize("full_batch", [200_000, 10])
def test_neighbours_lie_nearer_than_strangers(full_batch: int) -> None:
    graph = two_towns()
    wanted = [np.eye(1, 20, dtype=np.float32)[0], np.zeros(20, np.float32)]
    asked = Choices(np.ones((2, 3), np.float32), [np.arange(20), np.arange(20, 40)], wanted)
    # Of 40 edges two are held out, which says too little to stop by: a gain below 0 keeps the last epoch.
    rules = StateRules(hidden=16, state=8, epochs=60, patience=60, links=400, dropout=0.0, gain=-10.0, choice=0.0)
    rules = replace(rules, full_batch=full_batch)
    arrays, curve = fit_states(graph, asked, rules)
    states = node_states(RankerModel({}, arrays), graph.features, graph.starts, graph.targets).astype(np.float32)
    near = np.mean([states[node] @ states[(node + 1) % 20] for node in range(20)])
    far = np.mean([states[node] @ states[20 + node] for node in range(20)])
    assert near > far + 0.2
    assert curve.fitted[-1] < curve.fitted[0]


def test_serving_computes_what_was_fitted() -> None:
    """The network in torch-geometric and the one in numpy give the same states."""
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


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=60))
def test_confidence_never_falls_as_the_score_rises(rows: list[tuple[float, bool]]) -> None:
    scores, right = np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows])
    knots, chances = isotonic(scores, right)
    assert (np.diff(chances) >= 0).all()
    assert (chances > 0).all()
    assert (chances < 1).all()
    asked = np.linspace(-6, 6, 50)
    assert (np.diff(np.interp(asked, knots, chances)) >= -1e-12).all()


def test_what_is_right_one_time_in_four_is_said_with_a_quarter() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=20_000)
    right = (random.random(20_000) < 1 / (1 + np.exp(-scores))).astype(float)
    half = np.arange(20_000) < 10_000
    chances = np.interp(scores[~half], *isotonic(scores[half], right[half]))
    assert expected_calibration_error(chances, right[~half]) < 0.02
    assert np.interp(-1.0986, *isotonic(scores, right)) == pytest.approx(0.25, abs=0.05)


def test_the_error_is_the_distance_between_what_was_said_and_what_came() -> None:
    chance, right = np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(chance, right) == pytest.approx((0.4 * 2 + 0.1 * 2) / 4)


def test_doubt_silences_no_more_than_it_may_of_what_can_be_answered() -> None:
    best = np.concatenate([np.linspace(0.5, 0.99, 50), np.linspace(0.01, 0.6, 50)])
    can = np.arange(100) < 50
    cut = doubt_threshold(best, can, most_lost=0.1)
    assert (best[can] < cut).sum() == 5
    assert (best[~can] < cut).sum() > 40
    assert doubt_threshold(best, np.zeros(100, np.bool_)) == 0.0


def test_the_newest_logged_questions_are_held_out_and_files_by_their_hash() -> None:
    texts = [f"q{number}" for number in range(10)]
    held = hold_out(texts, [float(9 - number) for number in range(10)], 0.2)
    assert np.flatnonzero(held).tolist() == [0, 1]  # the latest two
    by_hash = hold_out(texts, [None] * 10, 0.2)
    assert by_hash.tolist() == (folds(texts, 5) == 0).tolist()
    assert hold_out(texts[::-1], [None] * 10, 0.2).tolist() == by_hash.tolist()[::-1]
