"""The listwise fit finds the column that tells the wanted candidate."""

import numpy as np

from benchmarks.linear_fit import fit_gold_apart, fit_listwise


def test_the_column_that_tells_gets_the_weight():
    random = np.random.default_rng(0)
    lists = [random.normal(size=(8, 2)) for _ in range(100)]
    wanted = [(one[:, 0] == one[:, 0].max()).astype(float) for one in lists]
    telling, noise = fit_listwise(lists, wanted, [0.01] * 100, penalty=1e-2)
    assert telling > 10 * abs(noise)
    picked = [int(np.argmax(one @ np.array([telling, noise]))) for one in lists]
    assert np.mean([one[place] for one, place in zip(wanted, picked, strict=True)]) > 0.9


def test_gold_rows_do_not_compete_with_each_other():
    random = np.random.default_rng(3)
    tables, wanted = [], []
    for _ in range(60):
        table = random.normal(size=(6, 2))
        table[0] = (3.0, 3.0)  # one gold row is easy, the other is told by the first column alone
        table[1] = (1.5, 0.0)
        tables.append(table)
        wanted.append(np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    apart = fit_gold_apart(tables, wanted, [1.0 / 60] * 60, 1e-3)
    shared = fit_listwise(tables, wanted, [1.0 / 60] * 60, 1e-3)
    assert apart[0] > shared[0] > 0.0
    worth = [table @ apart for table in tables]
    assert np.mean([one[1] > np.sort(one[2:])[-1] for one in worth]) > 0.7


def test_a_list_with_one_gold_row_is_fitted_alike_by_both():
    random = np.random.default_rng(4)
    tables = [random.normal(size=(5, 3)) for _ in range(30)]
    wanted = [np.eye(5)[int(np.argmax(table[:, 0]))] for table in tables]
    both = [fit(tables, wanted, [1.0 / 30] * 30, 0.05) for fit in (fit_gold_apart, fit_listwise)]
    assert np.allclose(both[0], both[1], atol=1e-3)
