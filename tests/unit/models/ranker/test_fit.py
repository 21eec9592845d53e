"""Fitting: the same data gives the same weights, what is planted is found, and both ways to batch agree."""

from __future__ import annotations

import numpy as np
import pytest

from models.ranker.fit import StateRules, fit_states
from models.ranker.infer import Choices, Graph, Head, RankerModel, folds, node_states, stacked
from models.ranker.network import HeadRules, fit_head
from tests.unit.models.ranker.rankers import ring

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
    choices = Choices(
        np.eye(3, dtype=np.float32), np.array([0, 2, 4, 6]), np.arange(6), np.array([1, 0] * 3, np.float32)
    )
    (one, _), (two, _) = (fit_states(graph, choices, SMALL) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    blocks, texts = questions(30)
    heads = [fit_head(stacked(blocks, [1.0] * 30), folds(texts, 3), HeadRules(steps=12)).arrays for _ in range(2)]
    assert all(np.array_equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_a_head_finds_what_was_planted_in_questions_it_has_not_seen() -> None:
    blocks, texts = questions(120)
    fitted = fit_head(stacked(blocks, [1.0] * 120), folds(texts, 4), HeadRules(first=0.0, decay=0.02, dropout=0.0))
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
    lists, fold = stacked(blocks, [1.0] * 30), folds(texts, 3)
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
    lists = stacked(
        [(columns[start : start + 20], wanted[start : start + 20]) for start in range(0, 2_000, 20)], [1.0] * 100
    )
    head = Head(**fit_head(lists, np.arange(100) % 4, HeadRules(steps=240, decay=0.02, dropout=0.0), each=True).arrays)
    asked = np.array([[-1.0], [0.0], [1.0]], np.float32)
    assert np.allclose(1 / (1 + np.exp(-head.score(asked))), 1 / (1 + np.exp(-2 * asked[:, 0])), atol=0.08)


def test_neighbours_lie_nearer_than_strangers_full_batch_and_sampled() -> None:
    graph = two_towns()
    # Of 40 edges two are held out, which says too little to stop by: a gain below 0 keeps the last epoch.
    rules = StateRules(hidden=16, state=8, epochs=60, patience=60, links=400, dropout=0.0, gain=-10.0)
    sampled = StateRules(**{**vars(rules), "full_batch": 10, "batch": 64, "fanouts": (4, 4)})
    for one in (rules, sampled):
        arrays, curve = fit_states(graph, None, one)
        model = RankerModel({}, {**arrays, "tower": np.zeros((1, 8), np.float32)})
        states = node_states(model, graph.features, graph.starts, graph.targets).astype(np.float32)
        near = np.mean([states[node] @ states[(node + 1) % 20] for node in range(20)])
        far = np.mean([states[node] @ states[20 + node] for node in range(20)])
        assert near > far + 0.2
        assert curve.fitted[-1] < curve.fitted[0]
