"""The server's errors in HADES's words and never with a credential; what is repeated, how often,
and what stops it.
"""

import pytest
from arango.exceptions import AQLQueryExecuteError
from arango.request import Request
from arango.response import Response

from hades.errors import (
    BadQuery,
    HadesError,
    NotProvisioned,
    QueryTimeout,
    ReadOnly,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from hades.stores.arango.errors import (
    REPEATABLE_CODES,
    CircuitBreaker,
    CircuitOpen,
    CursorLost,
    Lost,
    NotArango,
    NotSent,
    RetryPolicy,
    TimedOut,
    TooLarge,
    TransportError,
    in_our_words,
    may_wait,
)


def server_error(code: int | None, status: int) -> AQLQueryExecuteError:
    response = Response("post", "http://localhost/_api/cursor", {}, status, "Status", "{}")
    response.error_code, response.error_message = code, "said the server"
    return AQLQueryExecuteError(response, Request("post", "/_api/cursor"))


def raised(error: Exception, *, writes: bool) -> HadesError:
    with pytest.raises(HadesError) as caught, in_our_words("writing entities", writes=writes):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (1200, 409, StoreBusy),
        (18, 500, StoreBusy),
        (28, 500, StoreBusy),
        (29, 500, StoreBusy),
        (1653, 400, StoreBusy),
        (1654, 410, StoreBusy),
        (1655, 404, StoreBusy),
        (1478, 503, StoreUnavailable),
        (1465, 503, StoreUnavailable),
        (21003, 503, StoreUnavailable),
        (1600, 404, CursorLost),
        (1500, 410, QueryTimeout),
        (11, 403, ReadOnly),
        (1004, 403, ReadOnly),
        (None, 403, ReadOnly),
        (11, 401, SettingsError),
        (1203, 404, NotProvisioned),
        (1228, 404, NotProvisioned),
        (1924, 404, NotProvisioned),
        (32, 500, TooLarge),
        *[(code, 503, StoreUnavailable) for code in (30, 38, 1429, 1457, 1495, 1496, 21003)],
        (1601, 409, StoreBusy),
        (1501, 400, StoreError),
    ],
)
def test_each_error_number_has_its_meaning(
    code: int | None, status: int, expected: type[HadesError]
) -> None:
    error = raised(server_error(code, status), writes=True)
    assert type(error) is expected
    assert "writing entities" in str(error)


def test_a_forbidden_read_is_about_the_account_not_the_mode() -> None:
    error = raised(server_error(11, 403), writes=False)
    assert isinstance(error, SettingsError)
    assert "may not read" in str(error)


@pytest.mark.parametrize("kind", [NotSent, Lost, TimedOut, NotArango, CircuitOpen])
def test_no_answer_is_an_unavailable_store(kind: type[TransportError]) -> None:
    error = raised(kind("nothing listens at unix:/run/x.sock"), writes=False)
    assert isinstance(error, StoreUnavailable)
    assert "nothing listens at unix:/run/x.sock" in str(error)


def test_our_own_errors_pass_unchanged() -> None:
    refused = BadQuery("no such column")
    assert raised(refused, writes=True) is refused


class Flaky:
    """Fails with the given errors, one a call, then gives the number of calls."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


def policy(attempts: int = 6) -> tuple[RetryPolicy, list[float]]:
    slept: list[float] = []
    return RetryPolicy(attempts=attempts, sleep=slept.append), slept


def test_pauses_double_up_to_the_longest_and_are_the_same_every_time() -> None:
    wait = RetryPolicy(attempts=8, first_s=0.05, factor=2, longest_s=1.0)
    assert list(wait.pauses()) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert list(wait.pauses()) == list(wait.pauses())


@pytest.mark.parametrize(("error", "seconds"), [(TimedOut("late"), 30), (NotSent("away"), 0)])
def test_a_build_waits_two_minutes_for_a_server_that_is_slow_or_away(
    error: TransportError, seconds: float
) -> None:
    now = [0.0]

    def sleep(pause: float) -> None:
        now[0] += pause

    def fail() -> None:
        now[0] += seconds
        raise error

    with pytest.raises(type(error)):
        RetryPolicy(sleep=sleep, clock=lambda: now[0]).patient().run(fail, may_wait)
    assert 105 <= now[0] <= 150


@pytest.mark.parametrize("code", sorted(REPEATABLE_CODES))
def test_conflicts_and_their_friends_are_repeated(code: int) -> None:
    retry, slept = policy()
    assert retry.run(Flaky(server_error(code, 409), server_error(code, 409))) == 3
    assert slept == [0.05, 0.1]


@pytest.mark.parametrize(
    "error",
    [
        TimedOut("late"),
        CircuitOpen("open"),
        server_error(1500, 410),
        server_error(1501, 400),
        server_error(1210, 409),
        server_error(1203, 404),
    ],
)
def test_what_repeating_cannot_mend_is_raised_at_once(error: Exception) -> None:
    retry, slept = policy()
    work = Flaky(error)
    with pytest.raises(type(error)):
        retry.run(work)
    assert work.calls == 1
    assert slept == []


def test_the_last_failure_is_raised_when_attempts_are_spent() -> None:
    retry, slept = policy(attempts=3)
    work = Flaky(*[server_error(1200, 409) for _ in range(9)])
    with pytest.raises(AQLQueryExecuteError):
        retry.run(work)
    assert work.calls == 3
    assert len(slept) == 2


class Bench:
    """A breaker that opens after three failures and cools down for ten seconds of a clock that a
    test moves.
    """

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


def test_each_trial_in_vain_doubles_the_time_to_the_next_until_the_longest() -> None:
    now = 0.0
    breaker = CircuitBreaker(failures=1, cool_down_s=2, longest_s=6, clock=lambda: now)
    for seconds in (2, 4, 6, 6):
        breaker.before_request()
        breaker.failed()
        now += seconds - 1
        with pytest.raises(CircuitOpen):
            breaker.before_request()
        now += 1
    breaker.before_request()
    breaker.succeeded()
    breaker.failed()
    now += 2
    breaker.before_request()
