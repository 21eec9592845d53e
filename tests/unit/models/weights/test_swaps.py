"""Swapped lists: what was said to be the chance of a place is how often it comes up."""

import numpy as np
import pytest

from models.weights import propensities, swap_places


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_the_propensity_of_a_place_is_how_often_it_comes_up(length: int) -> None:
    place = swap_places(40_000, length, 0.3, np.random.default_rng(1))
    said = propensities(place, 0.3)
    for rank in range(length):
        for origin in range(length):
            here = place[:, rank] == origin
            if here.any():
                assert here.mean() == pytest.approx(said[here, rank][0], abs=0.01)


def test_only_neighbours_change_places_and_nothing_is_lost() -> None:
    place = swap_places(500, 7, 0.5, np.random.default_rng(2))
    assert (np.sort(place, axis=1) == np.arange(7)).all()
    assert np.abs(place - np.arange(7)).max() == 1
