"""The circuit breaker opens after failures in a row and lets one trial through per cool-down."""

import pytest

from hades.stores.arango.errors import CircuitBreaker, CircuitOpen


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def broken(clock: Clock, failures: int = 3) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=failures, cool_down_s=10, clock=clock)
    for _ in range(failures):
        breaker.before_request()
        breaker.failed()
    return breaker


def passes(breaker: CircuitBreaker) -> bool:
    """Whether a request may be sent now."""
    try:
        breaker.before_request()
    except CircuitOpen:
        return False
    return True


def test_requests_pass_until_enough_failures_come_in_a_row() -> None:
    breaker = CircuitBreaker(failures=3, cool_down_s=10, clock=Clock())
    for _ in range(2):
        breaker.before_request()
        breaker.failed()
    breaker.before_request()
    breaker.succeeded()
    for _ in range(2):
        breaker.before_request()
        breaker.failed()
    assert passes(breaker)
    breaker.failed()
    assert not passes(breaker)


def test_an_open_breaker_refuses_and_says_when_it_will_try() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 4
    with pytest.raises(CircuitOpen, match=r"3 times in a row; next try in 6\.0 s"):
        breaker.before_request()


def test_after_the_cool_down_one_request_is_tried_and_the_rest_wait() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 10
    breaker.before_request()
    with pytest.raises(CircuitOpen):
        breaker.before_request()


def test_a_good_trial_closes_it() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 10
    breaker.before_request()
    breaker.succeeded()
    assert passes(breaker)
    assert passes(breaker)


def test_a_bad_trial_opens_it_for_another_cool_down() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 10
    breaker.before_request()
    breaker.failed()
    clock.now += 9
    with pytest.raises(CircuitOpen):
        breaker.before_request()
    clock.now += 1
    breaker.before_request()


def test_a_trial_that_is_never_heard_of_again_does_not_block_for_ever() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 10
    assert passes(breaker)
    assert not passes(breaker)
    clock.now += 10
    assert passes(breaker)
