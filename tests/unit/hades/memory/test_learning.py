"""Memory learns from use: ratings, judgements, readings, decided conflicts, and edges that nobody
drew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.api import Hades
from hades.memory.history.rows import MemoryRefused
from hades.memory.recall.agent import group_topics
from hades.memory.recall.search import BY_SIMILARITY
from hades.memory.upkeep.learn import (
    count_accesses,
    discover_edges,
    known_trust,
    learn_trust,
    rate_state,
    trust_source,
)
from hades.settings.tree import Settings
from hades.wiring import open_hades


@pytest.fixture
def hades(tmp_path: Path) -> Iterator[Hades]:
    with open_hades(Settings(home=tmp_path / "home", embedder="hashing")) as opened:
        yield opened


def test_importance_is_set_moved_and_restored(hades: Hades) -> None:
    memory = hades.memory
    state = memory.add("user/tea", "Ana drinks green tea.")
    rate_state(memory, "user/tea", importance=0.8, who="ana")
    assert memory.latest("user/tea").importance_score == 0.8
    assert rate_state(memory, state.id, is_useful=True).importance_score == pytest.approx(0.85)
    assert rate_state(memory, state.id, is_useful=False).importance_score == pytest.approx(0.6375)
    assert memory.add("user/tea", "Ana drinks black tea.").importance_score == pytest.approx(
        0.6375
    ), "kept by the next"
    last = [act for act in memory.audit(state.id) if act.action == "rate"][-1]
    memory.undo(last.key, who="ana")
    assert memory.state(state.id).importance_score == pytest.approx(0.85)


@pytest.mark.parametrize("given", [{}, {"importance": 0.5, "is_useful": True}, {"importance": 1.5}])
def test_a_rating_that_says_nothing_or_too_much_is_refused(
    hades: Hades, given: dict[str, float]
) -> None:
    hades.memory.add("a/b", "Something.")
    with pytest.raises(MemoryRefused):
        rate_state(hades.memory, "a/b", **given)


def test_the_important_one_of_two_that_are_as_near_comes_first(hades: Hades) -> None:
    memory = hades.memory
    memory.add("a/one", "The harbour crane needs oil.")
    memory.add("b/two", "The harbour crane needs oil.")
    rate_state(memory, "b/two", importance=0.9)
    rate_state(memory, "a/one", importance=0.1)
    old = memory.now
    memory.now = lambda: old().replace(year=old().year + 1)
    assert [one.state.topic for one in memory.search("harbour crane oil")] == ["b/two", "a/one"]
    near = memory.search("harbour crane oil", priority=BY_SIMILARITY)
    assert near[0].similarity == pytest.approx(near[1].similarity)


def test_readings_are_noted_and_counted_once(hades: Hades, tmp_path: Path) -> None:
    memory = hades.memory
    state = memory.add("ops/backup", "Backups run at two.")
    for _ in range(100):
        memory.log_accesses([state.id])
    report = count_accesses(memory)
    assert report == {"reads": 100, "states": 1}
    read = memory.state(state.id)
    assert (read.access_count, read.importance_score) == (100, state.importance_score), (
        "no ranking changes"
    )
    assert read.last_accessed is not None
    assert count_accesses(memory)["reads"] == 0, "counted once"
    assert "Backups" not in "".join(
        path.read_text() for path in (tmp_path / "home" / "logs").glob("*")
    )


def test_what_is_shown_while_accesses_are_counted_is_counted_the_next_time(
    hades: Hades, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, shown = hades.memory, 1
    state = memory.add("ops/backup", "Backups run at two.")
    memory.log_accesses([state.id])

    def read_and_show(reading: str) -> Callable[..., object]:
        read = getattr(Path, reading)

        def read_then_show(path: Path, **given: object) -> object:
            nonlocal shown
            text = read(path, **given)
            memory.log_accesses([state.id])
            shown += 1
            return text

        return read_then_show

    with monkeypatch.context() as changed:
        for reading in ("read_bytes", "read_text"):
            changed.setattr(Path, reading, read_and_show(reading))
        count_accesses(memory)
    count_accesses(memory)
    assert memory.state(state.id).access_count == shown > 1


def test_a_question_notes_which_states_it_showed(hades: Hades) -> None:
    hades.memory.add("decision/database", "We chose SQLite as the database.")
    hades.retrieve("which database did we choose?")
    assert count_accesses(hades.memory)["reads"] == 1


def test_trust_is_said_and_learned_and_decides_between_facts(hades: Hades) -> None:
    memory = hades.memory
    trust_source(memory, "wiki", 0.9, who="ana")
    assert known_trust(memory) == {"wiki": 0.9}
    for _ in range(3):
        learn_trust(memory, "blog", "wiki")
    learned = known_trust(memory)
    assert learned["blog"] > 0.5 > learned["wiki"] - 0.1
    assert memory.latest("source/wiki").metadata["decided"] == 3


def test_related_topics_are_joined_once_with_what_they_share_and_how_sure_it_is(
    hades: Hades,
) -> None:
    memory = hades.memory
    memory.add("design/parser", "We chose the Earley parser for the billing grammar.")
    memory.add("bugs/parser", "The Earley parser of the billing grammar fails on empty invoices.")
    memory.add("user/tea", "Ana drinks green tea.")
    drawn, topics, left = discover_edges(memory)
    assert (topics, left) == (3, 0)
    (edge,) = memory.edges("design/parser")
    assert [one.id for one in drawn] == [edge.id]
    assert edge.relationship_type == "relates_to"
    assert edge.strength == edge.metadata["confidence"] >= 0.55
    assert {"earley", "parser", "billing"} <= set(edge.metadata["shared_words"])
    assert edge.metadata["discovered_by"] == memory.embedder.model.tag
    assert memory.edges("user/tea") == []
    assert discover_edges(memory) == ([], 0, 0), "only what changed is looked at again"
    assert [group["topics"] for group in group_topics(memory)] == [["bugs/parser", "design/parser"]]


def test_an_edge_that_a_person_closed_is_not_discovered_again(hades: Hades) -> None:
    memory = hades.memory
    memory.add("design/parser", "We chose the Earley parser for the billing grammar.")
    memory.add("bugs/parser", "The Earley parser of the billing grammar fails on empty invoices.")
    discover_edges(memory)
    memory.close(memory.edges("design/parser")[0].id, who="ana", why="not related")
    memory.add("design/parser", "We chose the Earley parser for the billing grammar of invoices.")
    discover_edges(memory)
    assert [
        edge for edge in memory.edges("design/parser") if edge.relationship_type == "relates_to"
    ] == []


def test_a_topic_that_expired_belongs_to_no_group(hades: Hades) -> None:
    memory = hades.memory
    began = datetime(2024, 1, 1, tzinfo=UTC)
    memory.add("offer", "The offer holds.", valid_from=began, valid_until=began + timedelta(days=1))
    memory.add("plan", "The plan is to sell.")
    memory.link("offer", "plan", "relates_to", valid_from=began)
    assert group_topics(memory) == []
    memory.add("budget", "The budget pays for the plan.")
    memory.link("budget", "plan", "relates_to")
    assert [group["topics"] for group in group_topics(memory)] == [["budget", "plan"]]
