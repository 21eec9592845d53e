"""A client may come so often, and no client fills the memory."""

from hypothesis import given
from hypothesis import strategies as st

from hades.surfaces.access.limits import Rates


def test_a_burst_passes_then_the_rate_holds():
    now = [0.0]
    rates = Rates(2.0, 3.0, lambda: now[0])
    assert [rates.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rates.wait("b") == 0.0
    now[0] = 0.5
    assert rates.wait("a") == 0.0
    assert rates.wait("a") == 0.5


def test_no_rate_means_no_limit():
    rates = Rates(0.0, 1.0)
    assert all(rates.wait("a") == 0.0 for _ in range(1000))


def test_a_flood_of_clients_is_forgotten_from_the_oldest():
    rates = Rates(1.0, 1.0, lambda: 0.0)
    for number in range(20_000):
        rates.wait(str(number))
    assert len(rates._buckets) == 10_000
    assert rates.wait("19999") == 1.0


@given(steps=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60))
def test_never_more_than_burst_and_rate_together(steps):
    now = [0.0]
    rates, passed = Rates(5.0, 4.0, lambda: now[0]), 0
    for step in steps:
        now[0] += step
        passed += rates.wait("a") == 0.0
    assert passed <= 4.0 + 5.0 * now[0] + 1e-6
