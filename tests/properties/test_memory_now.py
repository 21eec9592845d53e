"""Every way to ask memory gives the version that a plain oracle picks, at every moment on both axes
of time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.compat import functions
from hades.memory.memory import Memory
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from schemas.ids import Mask
from schemas.memory import MemoryState
from tests.properties.conftest import writing
from tests.unit.hades.memory.kept import T1, Clock

DAY = timedelta(days=1)
_numbers = count()

said = st.tuples(
    st.integers(-20, 40), st.none() | st.integers(1, 15)
)  # begins so many days from T1, lasts so many
asked = st.tuples(st.none() | st.integers(-25, 60), st.none() | st.integers(0, 12))


@pytest.fixture(scope="module", autouse=True)
def reads_words(memory: Memory) -> None:
    memory.embedder, memory.tokenizer = HashingEmbedder(dimension=64), MiniLmTokenizer()


@given(st.lists(said, min_size=1, max_size=8), st.lists(asked, min_size=1, max_size=3))
@writing(8)
def test_every_entry_point_agrees_with_the_oracle(
    memory: Memory,
    clock: Clock,
    history: list[tuple[int, int | None]],
    masks: list[tuple[int | None, int | None]],
) -> None:
    clock.at = T1
    word = f"zz{next(_numbers)}q"
    topic = f"case/{word}"
    written = []
    for number, (begins, lasts) in enumerate(history):
        clock.at = T1 + number * DAY
        start = T1 + begins * DAY
        until = start + lasts * DAY if lasts else None
        written.append(
            memory.add(
                topic, f"{word} was said {number} times", valid_from=start, valid_until=until
            )
        )
    clock.at = T1 + 20 * DAY
    for as_of, known in [(None, None), *masks]:
        mask = Mask(
            as_of=None if as_of is None else T1 + as_of * DAY,
            known_at=None if known is None else T1 + known * DAY + timedelta(hours=1),
        )
        expected = oracle(written, mask, clock.at)
        assert answers(memory, topic, word, mask) == dict.fromkeys(ENTRY_POINTS, expected), mask
    assert from_working_set(memory, topic) == oracle(written, Mask(), clock.at)


def oracle(versions: list[MemoryState], mask: Mask, now: datetime) -> str | None:
    """Of what was known and in force, what began last, then what was said last."""
    moment = mask.as_of or mask.known_at or now
    best = None
    for one in versions:
        is_known = mask.known_at is None or one.timestamp <= mask.known_at
        assert one.valid_from is not None
        is_true = one.valid_from <= moment and (one.valid_until is None or moment < one.valid_until)
        if (
            is_known
            and is_true
            and (best is None or best.valid_from is None or one.valid_from >= best.valid_from)
        ):
            best = one
    return best.key if best else None


ENTRY_POINTS = ("latest", "at", "search", "functions.search", "graph", "context", "why")


def answers(memory: Memory, topic: str, word: str, mask: Mask) -> dict[str, str | None]:
    """What each entry point shows for the topic."""
    moment = mask.as_of or mask.known_at or memory.now()
    latest, then = memory.latest(topic, mask=mask), memory.at(topic, moment, known_at=mask.known_at)
    found = [one.state.key for one in memory.search(word, mask=mask) if one.state.topic == topic]
    plain = [one["state"] for one in functions.search_memories(memory, word, mask=mask)["results"]]
    graph = memory.graph_enhanced_retrieval(word, 1, mask=mask, matches=100).matches
    context = memory.retrieve_within_budget(f"what is the current {word}?", 2_000, mask=mask)
    return {
        "latest": latest.key if latest else None,
        "at": then.key if then else None,
        "search": found[0] if found else None,
        "functions.search": next((one["id"] for one in plain if one["topic"] == topic), None),
        "graph": next((one.state.key for one in graph if one.state.topic == topic), None),
        "context": next((one.id for one in context.latest if topic in one.text), None),
        "why": why(memory, topic, mask),
    }


def why(memory: Memory, topic: str, mask: Mask) -> str | None:
    from hades.memory.history.rows import UnknownMemory

    try:
        return str(memory.why(topic, mask=mask)["state_id"])
    except UnknownMemory:
        return None


def from_working_set(memory: Memory, topic: str) -> str | None:
    working = memory.working(topic)
    state = working.latest(topic)
    shown = [one.state.key for one in working.query("said times") if one.state.topic == topic]
    assert shown == ([state.key] if state else [])
    return state.key if state else None
