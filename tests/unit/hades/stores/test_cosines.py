"""Cosines of stored rows: a row's length never matters, however small it is."""

import numpy as np

from hades.stores.row_checks import cosines


def test_a_row_so_short_that_its_squares_underflow_still_has_its_direction():
    asked = np.array([0.6, 0.8], np.float32)
    rows = np.array([[3.0, 4.0], [3e-25, 4e-25], [0.0, 0.0], [-3e-25, -4e-25]], np.float32)
    assert np.allclose(cosines(rows, asked), [1.0, 1.0, 0.0, -1.0], atol=1e-6)
