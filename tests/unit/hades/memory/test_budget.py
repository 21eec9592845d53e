"""A context for a question: what holds now always, the rest in shares, never more than was
allowed.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from hades.memory.history.rows import MemoryRefused
from hades.memory.history.states import NewState
from hades.memory.recall.agent import needs_by, retrieve_in_passes
from hades.memory.recall.context import strategy_for
from hades.ports.services import Completion
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from schemas.ids import Mask
from tests.homes import empty_store
from tests.unit.hades.memory.kept import Clock, memory_on
from tests.unit.hades.memory.scenario import tell

DAY = timedelta(days=1)
START = datetime(2024, 3, 4, 9, tzinfo=UTC)


@pytest.fixture
def asked(memory):
    memory.embedder, memory.tokenizer = HashingEmbedder(), MiniLmTokenizer()
    return memory


@pytest.fixture(scope="module")
def forty_days(tmp_path_factory):
    """The store of a memory of forty days, with its summaries."""
    path, clock = tmp_path_factory.mktemp("lived") / "graph.db", Clock(START)
    memory = memory_on(empty_store(path), clock, HashingEmbedder())
    memory.add_many(
        NewState(
            "project/alpha",
            f"Alpha reached milestone {number} of the plan.",
            valid_from=START + number * DAY,
        )
        for number in range(40)
    )
    clock.at = START + 45 * DAY
    memory.consolidate(3)
    memory.store.close()
    return path


@pytest.fixture
def lived(forty_days, tmp_path, clock):
    shutil.copyfile(forty_days, tmp_path / "lived.db")
    clock.at = START + 46 * DAY
    memory = memory_on(empty_store(tmp_path / "lived.db"), clock, HashingEmbedder())
    memory.tokenizer = MiniLmTokenizer()
    yield memory
    memory.store.close()


@pytest.mark.parametrize(
    ("query", "intent", "level"),
    [
        ("What's current status?", "status", 0),
        ("What happened last week?", "recent", 1),
        ("Summarize the entire project", "overview", 3),
        ("What happened last month?", "overview", 3),
        ("Why did character X do Y?", "why", 0),
        ("Which colour does the door have?", "general", 2),
        ("When did approach X become viable?", "change", 0),
        ("How does nowhere know snow?", "general", 2),
    ],
)
def test_a_question_says_which_summaries_it_wants(query, intent, level):
    assert strategy_for(query).level == level
    assert str(strategy_for(query).intent) == intent


def test_a_status_gets_what_holds_now_and_no_history(lived):
    context = lived.retrieve_within_budget("What is the current status of alpha?")
    assert [entry.text for entry in context.latest] == [
        "[project/alpha, v40, since 2024-04-12 09:00] Alpha reached milestone 39 of the plan."
    ]
    assert (context.summaries, context.details) == ([], [])


def test_a_level_that_was_never_made_gives_way_to_the_one_below(asked, clock):
    clock.at = START
    asked.add("project/alpha", "Alpha began.")
    clock.at = START + 2 * DAY
    asked.consolidate(1)
    context = asked.retrieve_within_budget("Summarize the whole alpha project")
    assert (context.level, len(context.summaries)) == (1, 1)


def test_a_question_that_names_a_time_gets_the_summaries_of_that_time(lived):
    context = lived.retrieve_within_budget("What is new with alpha on March 6, 2024?")
    assert [entry.text.split(",")[0] for entry in context.summaries] == [
        "[summary/daily/project/2024-03-06"
    ]


def test_details_are_the_last_ten_within_thirty_days(lived, clock):
    context = lived.retrieve_within_budget("What happened recently to alpha?")
    assert [entry.text.split(",")[1] for entry in context.details] == [
        f" v{number}" for number in range(39, 30, -1)
    ]
    clock.at += 60 * DAY
    assert lived.retrieve_within_budget("What happened recently to alpha?").details == []


def test_why_goes_back_as_far_as_it_takes_and_a_named_time_is_the_time_looked_at(lived, clock):
    lived.link(
        "project/alpha",
        lived.add("plan/alpha", "The plan of alpha has forty milestones.").id,
        "relates_to",
    )
    clock.at += 400 * DAY
    context = lived.retrieve_within_budget("Why did alpha reach milestone 39?")
    assert [entry.text.split(",")[1] for entry in context.details] == [
        f" v{number}" for number in range(39, 30, -1)
    ]
    context = lived.retrieve_within_budget(
        "What did alpha reach between March 6, 2024 and March 8, 2024?"
    )
    assert [entry.text.split(",")[1] for entry in context.details] == [" v5", " v4", " v3"]


def test_a_context_of_then_holds_nothing_of_later(asked, clock):
    tell(asked, clock)
    then = Mask(as_of=datetime(2024, 1, 11, tzinfo=UTC), known_at=datetime(2024, 1, 11, tzinfo=UTC))
    text = asked.retrieve_within_budget("Why was approach X rejected?", mask=then).text
    assert "rejected_because" in text
    assert "viable" not in text


def test_what_holds_now_is_cut_before_it_is_left_out(asked):
    asked.add("essay/long", "A long text about the whale. " * 2_000)
    context = asked.retrieve_within_budget("tell me about the whale", max_tokens=1_000)
    assert context.latest[0].cut
    assert 150 <= context.latest[0].tokens <= 200
    assert context.tokens <= 900


def test_a_budget_without_room_is_empty_and_one_below_one_is_refused(lived):
    assert lived.retrieve_within_budget("alpha", max_tokens=1).tokens <= 1
    with pytest.raises(MemoryRefused, match="max_tokens"):
        lived.retrieve_within_budget("alpha", max_tokens=0)


@pytest.mark.parametrize(
    "query", ["alpha", "Why alpha?", "Summarize the whole alpha project", "alpha lately"]
)
def test_no_budget_is_ever_exceeded(lived, query):
    for max_tokens in (1, 2, 9, 33, 100, 250, 777, 3_000, 50_000):
        context = lived.retrieve_within_budget(query, max_tokens)
        assert context.tokens == lived.tokenizer.count(context.text) <= max_tokens - context.buffer
        assert context.buffer == min(10_000, max_tokens // 10)


def test_without_a_tokenizer_nothing_is_guessed(memory):
    with pytest.raises(MemoryRefused, match="tokenizer"):
        memory.retrieve_within_budget("alpha")


def test_passes_go_deeper_and_end(lived):
    asked_for = []

    def needs(context):
        asked_for.append(context.max_tokens)
        return context.summaries[0].id if context.summaries else None

    contexts = retrieve_in_passes(lived, "Summarize the whole alpha project", needs)
    assert [context.max_tokens for context in contexts] == [100_000, 40_000]
    assert (
        contexts[1].details[0].text.startswith("[summary/weekly/project/2024-W10, weekly summary")
    )
    assert len(asked_for) == 2  # the same wish again ends it
    endless = iter(lived.topics("summary/daily/"))
    assert len(retrieve_in_passes(lived, "alpha", lambda _: next(endless), max_passes=4)) == 4
    assert len(retrieve_in_passes(lived, "alpha", lambda _: "no/such")) == 1


def test_a_language_model_asks_for_more(lived):
    class Reader:
        model = "reader"

        def __init__(self):
            self.said = ["MORE: [summary/monthly/project/2024-03, monthly summary]", "DONE"]

        def complete(self, prompt, *, max_tokens):
            return Completion(self.said.pop(0), 1, 1)

    contexts = retrieve_in_passes(lived, "Summarize the whole alpha project", needs_by(Reader()))
    assert len(contexts) == 2
    assert "weekly summary" in contexts[1].details[0].text
