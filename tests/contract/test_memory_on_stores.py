"""Memory behaves the same on every store: the scenario, change, conflict, undo and erasure leave
equal rows.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from hades.errors import BadQuery
from hades.memory.history.facts import Fact
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from hades.ports.store import GraphStore, Term
from schemas.ids import Mask
from tests.contract.examples import everything
from tests.homes import empty_store
from tests.unit.hades.memory.kept import T1, T2, T3, Clock, memory_on
from tests.unit.hades.memory.scenario import REFACTORING, X, Y, tell

COLLECTIONS = ("memory_states", "memory_latest", "memory_traces", "memory_edges", "memory_audit")
PAGE = "\n".join(f"line {number} of a page that hardly changes" for number in range(20))


def test_a_whole_story_leaves_the_same_rows_everywhere(store: GraphStore, tmp_path: Path) -> None:
    embedded = empty_store(tmp_path / "embedded" / "graph.db")
    here, there = (
        story(memory_on(store, clock := Clock()), clock),
        story(memory_on(embedded, clock := Clock()), clock),
    )
    assert here == there
    for name in COLLECTIONS:
        assert rows_of(store, name) == rows_of(embedded, name), name
    embedded.close()


def test_as_of_answers_are_the_same_everywhere(store: GraphStore) -> None:
    clock = Clock()
    memory = memory_on(store, clock)
    told = tell(memory, clock)
    then = T1 + timedelta(hours=1)
    assert memory.at(X, then) == memory.state(told.x1.id)
    assert memory.at(X, T1 - timedelta(days=1)) is None
    assert [edge.id for edge in memory.edges(X)] == [told.viable.id]
    assert [edge.id for edge in memory.edges(X, mask=Mask(as_of=then))] == [told.rejection.id]
    assert [edge.id for edge in memory.edges(X, mask=Mask(as_of=T3, known_at=then))] == [
        told.rejection.id
    ]
    assert memory.find_edge_change(X, "rejected_because", "viable_after_fix")[0] == T2  # type: ignore[index]


def test_the_last_rows_of_a_value_come_last_first(store: GraphStore) -> None:
    memory = memory_on(store, Clock())
    memory.add_many(
        [NewState("a", f"a{day}", valid_from=T1 + timedelta(days=day % 5)) for day in range(12)]
        + [NewState("ab", "of another topic", valid_from=T1)]
    )
    same = Term("topic", "==", "a")
    found = store.last(
        "memory_states", same=same, by="valid_from", at_most=T1 + timedelta(days=3), limit=4
    )
    rows = [
        (row["topic"], (row["valid_from"] - T1).days, row["version"]) for row in found.to_pylist()
    ]
    assert rows == [("a", 3, 9), ("a", 3, 4), ("a", 2, 8), ("a", 2, 3)]
    none = store.last(
        "memory_states", same=same, by="valid_from", at_most=T1 - timedelta(days=1), limit=4
    )
    assert none.num_rows == 0
    everyone = store.last(
        "memory_states", same=same, by="valid_from", at_most=T3, limit=100, columns=["version"]
    )
    assert everyone.num_rows == 12
    assert everyone.column_names == ["_key", "version"]


def test_last_wants_an_index_that_answers_it(store: GraphStore) -> None:
    with pytest.raises(BadQuery, match="no index on"):
        store.last(
            "memory_states", same=Term("topic", "==", "a"), by="timestamp", at_most=T1, limit=1
        )
    with pytest.raises(BadQuery, match="at least 1"):
        store.last(
            "memory_states", same=Term("topic", "==", "a"), by="valid_from", at_most=T1, limit=0
        )
    with pytest.raises(BadQuery):
        store.last(
            "memory_states",
            same=Term("topic", "==", "a"),
            by="valid_from",
            at_most="yesterday",
            limit=1,
        )


def rows_of(store: GraphStore, name: str) -> list[dict[str, object]]:
    """All rows, objects read: one store may write 1 where another writes 1.0."""
    read = [{**row} for row in everything(store, name)]
    for row in read:
        for column in {"metadata", "detail"} & row.keys():
            row[column] = json.loads(row[column])
    return read


def story(memory: Memory, clock: Clock) -> list[object]:
    """Everything memory can do, once; what it said on the way."""
    tell(memory, clock)
    pages = memory.add_many(
        [NewState("page", PAGE.replace("line 3", f"line 3 ({number})")) for number in range(20)]
    )
    done = memory.change(
        X, "dropped after all", facts=[Fact("rejected_because", Y, replaces="viable_after_fix")]
    )
    memory.assert_fact("ana", "works_at", "north", valid_from=T1)
    clock.at += timedelta(days=1)
    met = memory.assert_fact("ana", "works_at", "south", valid_from=T2)
    undone = memory.undo(done.act, who="ana", why="too early")
    certificate = memory.erase([pages[4].id, REFACTORING], who="ben", why="asked for")
    return [
        memory.history("page"),
        memory.latest("page"),
        memory.why(X),
        done.reasons,
        met.conflicts,
        undone["edges"],
        certificate,
        memory.check(write_out=True),
        memory.conflicts(),
        memory.topics(),
    ]
