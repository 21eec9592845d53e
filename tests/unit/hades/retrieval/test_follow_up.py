"""A question that follows another carries its words and filters, as far as it leans on them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hades.ports.graph import DocumentFilter
from hades.retrieval.necessity import follow_up
from schemas.telemetry import QueryLog, ShownResults


def logged(query: str, **filters: object) -> QueryLog:
    results = ShownResults(filters=filters).model_dump(mode="json")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return QueryLog(key="q_1", query=query, recipe="auto", snapshot="g", at=at, results=results)


TIMEOUT = logged(
    "How do I set a timeout in httpx.Client?", paths=["docs/*"], since="2026-01-01T00:00:00Z"
)


@pytest.mark.parametrize(
    "text",
    [
        "and for async clients?",
        "what is the default?",
        "How long does it take by itself?",
        "why?",
        "what happens when it fails?",
        "How do I use the transport with it?",
        "who wrote that?",
        "which ones are required?",
        "what are its limits?",
        "how many are allowed?",
    ],
)
def test_a_question_that_leans_on_the_last_carries_its_words(text: str) -> None:
    asked, _, carried = follow_up(text, TIMEOUT, None)
    assert carried.words == ("set", "timeout", "httpx.Client")
    assert asked == f"{text} set timeout httpx.Client"


@pytest.mark.parametrize(
    "text",
    [
        "what is a pool?",
        "what is the scheduler?",
        "how do pools work?",
        "Is there a pool?",
        "explain XCom",
        "Does the scheduler restart when it crashes?",
        "When does a pool free its slots?",
        "Which operators accept a callback that runs later?",
    ],
)
def test_a_question_that_names_its_own_subject_is_asked_as_it_is(text: str) -> None:
    asked, _, carried = follow_up(text, TIMEOUT, None)
    assert (asked, carried.words) == (text, ())


def test_a_question_that_stands_by_itself_carries_filters_only() -> None:
    asked, only, carried = follow_up("Which proxies support HTTP authentication?", TIMEOUT, None)
    assert (asked, carried.words) == ("Which proxies support HTTP authentication?", ())
    assert only == DocumentFilter(paths=("docs/*",), since=datetime(2026, 1, 1, tzinfo=UTC))
    assert carried.filters == {"path": ["docs/*"], "since": "2026-01-01T00:00:00.000000Z"}


def test_what_is_dropped_is_not_carried_and_a_new_filter_replaces_the_old() -> None:
    _, only, carried = follow_up("and there?", TIMEOUT, None, ["Timeout", "path"])
    assert carried.words == ("set", "httpx.Client")
    assert only == DocumentFilter(since=datetime(2026, 1, 1, tzinfo=UTC))
    _, only, carried = follow_up("and there?", TIMEOUT, DocumentFilter(paths=("src/*",)))
    assert only == DocumentFilter(paths=("src/*",), since=datetime(2026, 1, 1, tzinfo=UTC))
    assert set(carried.filters) == {"since"}
