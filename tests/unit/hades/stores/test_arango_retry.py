"""Retries repeat what repeating can mend, a fixed number of times, after fixed pauses."""

import pytest
from arango.exceptions import AQLQueryExecuteError
from arango.request import Request
from arango.response import Response

from hades.stores.arango.errors import REPEATABLE_CODES, CircuitOpen, RetryPolicy, TimedOut


def server_error(code: int, status: int = 409) -> AQLQueryExecuteError:
    response = Response("post", "http://localhost/_api/cursor", {}, status, "Conflict", "{}")
    response.error_code, response.error_message = code, "said the server"
    return AQLQueryExecuteError(response, Request("post", "/_api/cursor"))


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


@pytest.mark.parametrize("code", sorted(REPEATABLE_CODES))
def test_conflicts_and_their_friends_are_repeated(code: int) -> None:
    retry, slept = policy()
    assert retry.run(Flaky(server_error(code), server_error(code))) == 3
    assert slept == [0.05, 0.1]


@pytest.mark.parametrize(
    "error",
    [
        TimedOut("late"),
        CircuitOpen("open"),
        server_error(1500, 410),
        server_error(1501, 400),
        server_error(1210),
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
    work = Flaky(*[server_error(1200) for _ in range(9)])
    with pytest.raises(AQLQueryExecuteError):
        retry.run(work)
    assert work.calls == 3
    assert len(slept) == 2
