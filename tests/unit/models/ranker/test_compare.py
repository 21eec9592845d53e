"""Two rankings compared."""

from __future__ import annotations

import numpy as np
import pytest

from models.ranker.infer import Difference, difference


def test_a_difference_is_the_mean_over_sets_with_an_interval_and_a_chance() -> None:
    random = np.random.default_rng(0)
    theirs = random.random(300)
    sets = ["large"] * 250 + ["small"] * 49 + ["one"]
    better = difference(theirs + 0.1 + 0.02 * random.standard_normal(300), theirs, sets)
    assert better.mean == pytest.approx(0.1, abs=0.02)
    assert better.low < better.mean < better.high
    assert better.low > 0.05
    assert better.p < 0.001
    assert difference(theirs, theirs, sets) == Difference(0.0, 0.0, 0.0, 1.0)
    noise = difference(theirs + 0.1 * random.standard_normal(300), theirs, [*sets[:299], "small"])
    assert noise.low < 0 < noise.high
    assert noise.p > 0.01
