"""Neighbours: direction, types, fan-out, time."""

from __future__ import annotations

import pytest

from hades.errors import BadQuery
from hades.ports.store import NEIGHBOUR_SCHEMA, Direction, GraphStore
from schemas.ids import Mask
from tests.contract.examples import day, entity, put, relation


def star(store: GraphStore) -> None:
    """hub -> a (.9), hub -> b (.5), hub -> c (no weight), d -> hub (.7), hub -> hub (.1)."""
    put(store, "entities", *(entity(name) for name in ("hub", "a", "b", "c", "d")))
    put(
        store,
        "relations",
        relation("hub", "b", weight=0.5),
        relation("hub", "a", weight=0.9),
        relation("hub", "c", "extends"),
        relation("d", "hub", "cites", weight=0.7),
        relation("hub", "hub", weight=0.1),
    )


def names(found: object, column: str = "neighbour") -> list[str]:
    return [identifier.removeprefix("entities/") for identifier in found.column(column).to_pylist()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (Direction.OUT, ["a", "b", "hub", "c"]),
        (Direction.IN, ["d", "hub"]),
        (Direction.ANY, ["a", "d", "b", "hub", "c"]),
    ],
)
def test_neighbours_follow_the_direction_heaviest_first(
    store: GraphStore, direction: Direction, expected: list[str]
) -> None:
    star(store)
    found = store.neighbours(["entities/hub"], direction=direction, fanout=10)
    assert names(found) == expected
    assert found.schema == NEIGHBOUR_SCHEMA


def test_each_edge_says_which_way_it_points(store: GraphStore) -> None:
    star(store)
    found = store.neighbours(["entities/hub"], direction=Direction.ANY, fanout=2)
    assert found.column("outbound").to_pylist() == [True, False]
    assert found.column("type").to_pylist() == ["refers_to", "cites"]


def test_fanout_counts_for_each_node(store: GraphStore) -> None:
    star(store)
    put(store, "relations", relation("d", "a", weight=0.2), relation("d", "b", weight=0.3))
    found = store.neighbours(["entities/d", "entities/hub", "entities/d", "entities/nobody"], fanout=2)
    assert names(found, "node") == ["d", "d", "hub", "hub"]
    assert names(found) == ["hub", "b", "a", "b"]


def test_types_narrow_the_neighbours(store: GraphStore) -> None:
    star(store)
    found = store.neighbours(["entities/hub"], direction=Direction.ANY, types=["cites", "extends"], fanout=9)
    assert names(found) == ["d", "c"]


def test_ties_are_broken_by_edge_key(store: GraphStore) -> None:
    put(store, "entities", *(entity(name) for name in "abcde"))
    edges = [relation("a", name, weight=0.5) for name in "bcde"]
    put(store, "relations", *edges)
    found = store.neighbours(["entities/a"], fanout=9)
    assert found.column("edge").to_pylist() == sorted(edge["_key"] for edge in edges)


def test_a_weight_of_zero_is_a_weight(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"), entity("c"))
    put(store, "relations", relation("a", "b", weight=0.0), relation("a", "c"))
    assert store.neighbours(["entities/a"], fanout=9).column("weight").to_pylist() == [0.0, None]


def test_time_masks_edges_by_half_open_intervals(store: GraphStore) -> None:
    put(store, "entities", *(entity(name) for name in "abcd"))
    put(
        store,
        "relations",
        relation("a", "b", valid_from=day(1), valid_until=day(5), weight=0.9),
        relation("a", "c", valid_from=day(5), recorded_at=day(10), weight=0.8),
        relation("a", "d", weight=0.7),
    )

    def at(mask: Mask) -> list[str]:
        return names(store.neighbours(["entities/a"], fanout=9, mask=mask))

    assert at(Mask()) == ["b", "c", "d"]
    assert at(Mask(as_of=day(1))) == ["b", "d"]
    assert at(Mask(as_of=day(5))) == ["c", "d"]
    assert at(Mask(as_of=day(6), known_at=day(9))) == ["d"]
    assert at(Mask(as_of=day(6), known_at=day(10))) == ["c", "d"]


def test_memory_edges_answer_by_their_own_names(store: GraphStore) -> None:
    state = {"content": "x", "timestamp": day(1)}
    put(
        store,
        "memory_states",
        {"_key": "s1", "topic": "t", "version": 1, **state},
        {"_key": "s2", "topic": "t", "version": 2, **state},
    )
    put(
        store,
        "memory_edges",
        {
            "_key": "e",
            "_from": "memory_states/s1",
            "_to": "memory_states/s2",
            "relationship_type": "evolves_to",
            "kind": "temporal",
            "strength": 0.25,
            "timestamp": day(1),
        },
    )
    found = store.neighbours(["memory_states/s1"], edges="memory_edges", types=["evolves_to"], fanout=3).to_pylist()
    assert [(row["neighbour"], row["type"], row["weight"]) for row in found] == [
        ("memory_states/s2", "evolves_to", 0.25)
    ]


def test_neighbours_follow_updates_and_deletes(store: GraphStore) -> None:
    star(store)
    put(store, "relations", relation("hub", "b", weight=1.0))
    store.delete("relations", keys=[relation("hub", "a")["_key"]])
    assert names(store.neighbours(["entities/hub"], fanout=2)) == ["b", "hub"]


def test_a_hub_keeps_all_its_edges_through_growth_and_loss(store: GraphStore) -> None:
    count = 1_300
    put(store, "entities", entity("hub"), *(entity(f"n{number:04}") for number in range(count)))
    edges = [relation("hub", f"n{number:04}", weight=number / count) for number in range(count)]
    put(store, "relations", *edges[:700])
    put(store, "relations", *edges[700:])
    store.delete("relations", keys=[edge["_key"] for edge in edges[::2]])
    found = store.neighbours(["entities/hub"], fanout=count)
    assert names(found) == [f"n{number:04}" for number in range(count - 1, 0, -2)]
    assert names(store.neighbours(["entities/hub"], fanout=3)) == ["n1299", "n1297", "n1295"]


def test_neighbours_want_edges_and_a_fanout(store: GraphStore) -> None:
    with pytest.raises(BadQuery, match="no edges"):
        store.neighbours(["entities/a"], edges="entities", fanout=1)
    with pytest.raises(BadQuery, match="fanout"):
        store.neighbours(["entities/a"], fanout=0)
