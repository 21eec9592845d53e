"""A small site: pages about people, ingested by the hashing embedder, in a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hades.api import Hades
from hades.settings.tree import Settings
from hades.wiring import open_hades

MONDAY = datetime(2026, 2, 2, tzinfo=UTC)
PEOPLE = [
    "Ada Lovelace",
    "Charles Babbage",
    "Grace Hopper",
    "Alan Turing",
    "Mary Somerville",
    "Kurt Goedel",
]
PLACES = ["London", "New York", "Manchester", "Vienna", "Analytical Engine", "Difference Engine"]


def write_pages(folder: Path, count: int = 24) -> Path:
    """Pages that name people and places again and again, so that they become entities with
    relations.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        first, second = PEOPLE[number % 6], PEOPLE[(number * 5 + 1) % 6]
        place = PLACES[(number * 7) % 6]
        text = (
            f"# Page {number}\n\n{first} worked with {second} in {place}. {second} wrote "
            "letter "
            f"{number} to {first}.\n"
        )
        (folder / f"page{number}.md").write_text(text)
    return folder


@contextmanager
def opened(home: Path) -> Iterator[Hades]:
    """The graph of a home, with the hashing embedder whatever the environment says."""
    with open_hades(Settings(home=home, embedder="hashing")) as hades:
        yield hades


@contextmanager
def ingested(folder: Path) -> Iterator[Hades]:
    """A home that has read the pages."""
    with opened(folder / "home") as hades:
        hades.ingest.documents(write_pages(folder / "pages"))
        yield hades
