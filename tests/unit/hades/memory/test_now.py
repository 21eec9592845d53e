"""Now means now: corrections of the past, versions that expired and versions yet to begin leave the present alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hades.memory.memory import Memory
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from tests.unit.hades.memory.kept import Clock

TOPIC = "company/ceo"


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


@pytest.fixture
def corrected(memory: Memory, clock: Clock) -> Memory:
    """Ann since 2024, Bob since 2025; later somebody corrects the name of the first."""
    memory.embedder, memory.tokenizer = HashingEmbedder(), MiniLmTokenizer()
    clock.at = year(2024)
    memory.add(TOPIC, "Ann is the CEO", valid_from=year(2024))
    clock.at = year(2025)
    memory.add(TOPIC, "Bob is the CEO", valid_from=year(2025))
    clock.at = year(2026)
    memory.add(TOPIC, "Anna is the CEO", valid_from=year(2024), valid_until=year(2025))
    return memory


def test_a_correction_of_the_past_does_not_replace_the_present(corrected: Memory) -> None:
    question = "who is the current CEO?"
    context = corrected.retrieve_within_budget(question, 1_000)
    assert "Bob" in context.latest[0].text
    assert [one.state.content for one in corrected.search(question)] == ["Bob is the CEO"]
    latest = corrected.latest(TOPIC)
    assert latest is not None
    assert latest.content == "Bob is the CEO"
    corrected_past = corrected.at(TOPIC, year(2024) + timedelta(days=1))
    assert corrected_past is not None
    assert corrected_past.content == "Anna is the CEO"
    assert corrected.link(TOPIC, TOPIC, "relates_to").source.endswith(latest.key)


def test_a_topic_whose_only_version_expired_is_not_shown_but_can_be_written(memory: Memory, clock: Clock) -> None:
    memory.add("offer", "Ten percent off", valid_from=clock.at, valid_until=clock.at + timedelta(days=3))
    clock.at += timedelta(days=4)
    assert memory.latest("offer") is None
    assert memory.search("percent off") == []
    memory.change("offer", "Five percent off")
    latest = memory.latest("offer")
    assert latest is not None
    assert latest.content == "Five percent off"


def test_a_writer_with_a_slow_clock_still_reads_what_it_wrote(memory: Memory, clock: Clock) -> None:
    clock.at = year(2026)
    memory.add("note", "written by a fast clock")
    clock.at = year(2025)
    memory.add("note", "written by a slow clock")
    latest = memory.latest("note")
    assert latest is not None
    assert latest.content == "written by a slow clock"
