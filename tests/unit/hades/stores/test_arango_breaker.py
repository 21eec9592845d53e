"""The circuit breaker opens after failures in a row and lets one trial through per cool-down."""

import pytest

from hades.stores.arango.errors import CircuitBreaker, CircuitOpen


class Bench:
    """A breaker that opens after three failures and cools down for ten seconds of a clock that a test moves."""

    def __init__(self, failures: int = 0) -> None:
        self.now = 100.0
        self.breaker = CircuitBreaker(failures=3, cool_down_s=10, clock=lambda: self.now)
        for _ in range(failures):
            self.fail()

    def fail(self) -> None:
        self.breaker.before_request()
        self.breaker.failed()

    def passes(self, after: float = 0.0) -> bool:
        """Whether a request may be sent, so many seconds later."""
        self.now += after
        try:
            self.breaker.before_request()
        except CircuitOpen:
            return False
        return True


def test_requests_pass_until_enough_failures_come_in_a_row() -> None:
    bench = Bench(failures=2)
    assert bench.passes()
    bench.breaker.succeeded()
    for _ in range(2):
        bench.fail()
    assert bench.passes()
    bench.breaker.failed()
    assert not bench.passes()


def test_an_open_breaker_refuses_and_says_when_it_will_try() -> None:
    bench = Bench(failures=3)
    bench.now += 4
    with pytest.raises(CircuitOpen, match=r"3 times in a row; next try in 6\.0 s"):
        bench.breaker.before_request()


def test_after_the_cool_down_one_request_is_tried_and_its_outcome_decides() -> None:
    good, bad = Bench(failures=3), Bench(failures=3)
    assert (good.passes(after=10), good.passes()) == (True, False)
    good.breaker.succeeded()
    assert (good.passes(), good.passes()) == (True, True)
    assert bad.passes(after=10)
    bad.breaker.failed()
    assert (bad.passes(after=9), bad.passes(after=1)) == (False, True)


def test_a_trial_that_is_never_heard_of_again_does_not_block_for_ever() -> None:
    bench = Bench(failures=3)
    assert [bench.passes(after) for after in (10, 0, 10)] == [True, False, True]
