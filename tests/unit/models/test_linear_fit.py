"""The listwise fit finds the column that tells the wanted candidate."""

import numpy as np

from models.linear_looks.fit import fit_listwise


def test_the_column_that_tells_gets_the_weight():
    random = np.random.default_rng(0)
    lists = [random.normal(size=(8, 2)) for _ in range(100)]
    wanted = [(one[:, 0] == one[:, 0].max()).astype(float) for one in lists]
    telling, noise = fit_listwise(lists, wanted, [0.01] * 100, penalty=1e-2)
    assert telling > 10 * abs(noise)
    picked = [int(np.argmax(one @ np.array([telling, noise]))) for one in lists]
    assert np.mean([one[place] for one, place in zip(wanted, picked, strict=True)]) > 0.9
