"""What holds for any choices: the trust region, no gain without a preference, estimates that are
right on average.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.weights import Pairs, Results, learn_offsets
from tests.patience import examples

EDGES, RESULTS = 12, 8
seeds = st.integers(0, 2**32 - 1)


def made_up(chance: np.random.Generator, n_pairs: int) -> tuple[np.ndarray, Results, Pairs]:
    """Results of one to four edges, and choices among them."""
    sizes = chance.integers(1, 5, RESULTS)
    members = np.concatenate([np.sort(chance.choice(EDGES, size, replace=False)) for size in sizes])
    preferred = chance.integers(0, RESULTS, n_pairs)
    other = (preferred + chance.integers(1, RESULTS, n_pairs)) % RESULTS
    turn = np.sort(chance.integers(0, 1 + n_pairs // 2, n_pairs))
    pairs = Pairs(turn, preferred, other, chance.random(n_pairs) * 3.0, turn % 4 > 0)
    return (
        chance.normal(0.0, 3.0, EDGES),
        Results(np.concatenate([[0], np.cumsum(sizes)]), members),
        pairs,
    )


@settings(max_examples=examples(20), deadline=None)
@given(seeds, st.integers(0, 200), st.floats(0.01, 1.0), st.floats(1.0, 4.0))
def test_offsets_are_finite_and_stay_in_the_trust_region(
    seed: int, n_pairs: int, rate: float, radius: float
) -> None:
    prior, results, pairs = made_up(np.random.default_rng(seed), n_pairs)
    offsets = learn_offsets(prior, results, pairs, rate=rate, radius=radius)
    assert (np.abs(offsets) <= radius).all()
    assert np.isfinite(offsets).all()


@settings(max_examples=examples(20), deadline=None)
@given(seeds, st.integers(1, 200))
def test_an_edge_of_no_preferred_result_never_gains(seed: int, n_pairs: int) -> None:
    prior, results, pairs = made_up(np.random.default_rng(seed), n_pairs)
    offsets = learn_offsets(prior, results, pairs, rate=0.25, radius=1.5)
    lifted = {
        int(edge)
        for result in pairs.preferred[pairs.lifts]
        for edge in results.edges[results.starts[result] : results.starts[result + 1]]
    }
    assert all(offsets[edge] <= 0.0 for edge in range(EDGES) if edge not in lifted)


@settings(max_examples=examples(20), deadline=None)
@given(seeds, st.integers(1, 60))
def test_one_more_turn_moves_no_edge_by_more_than_the_rate(seed: int, n_pairs: int) -> None:
    prior, results, pairs = made_up(np.random.default_rng(seed), n_pairs)
    last = pairs.turn == pairs.turn.max()
    before = learn_offsets(prior, results, pairs.where(~last), rate=0.25, radius=1.5)
    after = learn_offsets(prior, results, pairs, rate=0.25, radius=1.5)
    assert (np.abs(after - before) < 0.25).all()
