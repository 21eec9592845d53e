"""Databases smaller than the whole: what one that is made for a single purpose holds (requirement C4).

A database says itself what it was made for: one with nothing but the collections of a part is that part's.
"""

from __future__ import annotations

from collections.abc import Collection as Held

from schemas.catalogue import COLLECTIONS, GRAPHS, NAMES, Collection, Graph

ALL = "all"
MEMORY = "memory"
PARTS: tuple[str, ...] = (ALL, MEMORY)
_MEMORY_PREFIX = "memory_"
_FOR_EVERY_PART = ("query_logs", "build_stages")  # what was asked, and which chore last ran


def names_in(part: str) -> tuple[str, ...]:
    """The collections of a part, in catalogue order: its own, the ends of its edges, and what every part needs."""
    if part == ALL:
        return NAMES
    if part != MEMORY:
        raise ValueError(f"no part is called {part!r}; use one of {', '.join(PARTS)}")
    own = [collection for collection in COLLECTIONS if collection.name.startswith(_MEMORY_PREFIX)]
    shapes = [collection.edge for collection in own if collection.edge]
    ends = {end for shape in shapes for end in (*shape.sources, *shape.targets)}
    wanted = {collection.name for collection in own} | ends | set(_FOR_EVERY_PART)
    return tuple(name for name in NAMES if name in wanted)


def collections_in(part: str) -> tuple[Collection, ...]:
    """The same with what the catalogue declares of them."""
    names = set(names_in(part))
    return tuple(collection for collection in COLLECTIONS if collection.name in names)


def graphs_in(part: str) -> tuple[Graph, ...]:
    """The named graphs whose edges all belong to a part."""
    names = set(names_in(part))
    return tuple(graph for graph in GRAPHS if names.issuperset(graph.edges))


def part_of(held: Held[str]) -> str:
    """What a database with these collections was made for; an empty one, and one with anything more, for everything."""
    known = set(held).intersection(NAMES)
    return MEMORY if known and known.issubset(names_in(MEMORY)) else ALL


def notes_on(part: str) -> tuple[str, ...]:
    """What a person should know who provisions a database that is made for a part."""
    if part == ALL:
        return ()
    return (f"this database is made for {part}; `hades provision --only all` makes the rest",)
