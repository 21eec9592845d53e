"""Answers are kept for their snapshot, within their bytes, unless they depended on the moment."""

from datetime import UTC, datetime

import pytest

from hades.surfaces.access.answer_cache import AnswerCache, CachedAnswer
from schemas.plan import Reason
from schemas.telemetry import QueryLog

AT = datetime(2026, 1, 1, tzinfo=UTC)


def kept(snapshot="g1", size=10, reasons=()):
    log = QueryLog(key="q", query="", recipe="vector", snapshot=snapshot, at=AT, reasons=reasons)
    return CachedAnswer(log, b"x" * size)


def test_an_answer_is_found_for_its_snapshot_only():
    answers = AnswerCache(1000)
    answers.keep("a", kept("g1"))
    assert answers.find("g1", "a") is not None
    assert answers.find("g2", "a") is None
    assert answers.find("g1", "b") is None


def test_a_new_snapshot_forgets_the_old_ones():
    answers = AnswerCache(1000)
    answers.keep("a", kept("g1"))
    answers.keep("b", kept("g2"))
    assert answers.find("g1", "a") is None
    assert answers.find("g2", "b") is not None
    assert answers.bytes == 10


def test_the_least_recently_asked_goes_first():
    answers = AnswerCache(100)
    for name in "abcd":
        answers.keep(name, kept(size=25))
    answers.find("g1", "a")
    answers.keep("e", kept(size=25))
    assert answers.find("g1", "b") is None
    assert answers.find("g1", "a") is not None
    assert answers.bytes == 100


def test_one_answer_never_takes_more_than_a_quarter():
    answers = AnswerCache(100)
    answers.keep("a", kept(size=26))
    assert answers.find("g1", "a") is None


@pytest.mark.parametrize("reason", [Reason.TIMEOUT, Reason.VIEW_DEGRADED])
def test_what_depended_on_the_moment_is_not_kept(reason):
    answers = AnswerCache(1000)
    answers.keep("a", kept(reasons=(reason,)))
    assert answers.find("g1", "a") is None
