"""Writes beside the work that prepares them: in order, one at a time, and an error ends them."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from hades.ingest.workers import WriteAhead


@pytest.mark.parametrize("in_thread", [False, True])
def test_writes_are_done_in_order_and_all_of_them(in_thread: bool) -> None:
    done: list[int] = []
    with WriteAhead(in_thread=in_thread) as writes:
        for number in range(50):
            writes.run(partial(done.append, number))
    assert done == list(range(50))


def test_a_write_goes_on_while_the_next_is_prepared() -> None:
    is_prepared = threading.Event()
    seen: list[bool] = []
    with WriteAhead(in_thread=True) as writes:
        writes.run(lambda: seen.append(is_prepared.wait(60)))
        is_prepared.set()
    assert seen == [True]  # False: the caller waited for the write until it gave up


@pytest.mark.parametrize("in_thread", [False, True])
def test_nothing_is_written_after_an_error(in_thread: bool) -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError("disk full")

    def write_both() -> None:
        with WriteAhead(in_thread=in_thread) as writes:
            writes.run(fail)
            writes.run(partial(done.append, 1))

    with pytest.raises(ValueError, match="disk full"):
        write_both()
    assert not done


def test_an_error_of_the_last_write_is_raised_at_the_end() -> None:
    def fail() -> None:
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"), WriteAhead(in_thread=True) as writes:
        writes.run(fail)
