"""Tiny corpora and a context on a real store, for tests of ingestion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.material import Material, RejectedInput
from hades.ports.store import GraphStore
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from schemas.catalogue import COLLECTIONS
from schemas.sources import SourceKind
from tests.homes import empty_store

TOKENIZER = MiniLmTokenizer()


@dataclass
class Listed:
    """A source that reads what it is given."""

    items: Sequence[Material | RejectedInput]
    corpus: str = "tiny"
    place: str = ""
    mirrors: bool = False
    kind: SourceKind = SourceKind.PASSAGES
    reads: int = field(default=0)
    total: int | None = None

    def read(self) -> Iterator[Material | RejectedInput]:
        self.reads += 1
        yield from self.items


def passage(origin: str, title: str, text: str, **more: Any) -> Material:
    """A passage whose text begins with its title."""
    return Material(
        origin=origin, source=SourceKind.PASSAGES, title=title, text=f"{title}\n\n{text}", **more
    )


PEOPLE = [
    passage(
        "p1",
        "Ada Lovelace",
        "Ada Lovelace worked with Charles Babbage on the Analytical Engine in London.",
    ),
    passage(
        "p2",
        "Charles Babbage",
        "Charles Babbage designed the Analytical Engine. He was born in London.",
    ),
    passage(
        "p3",
        "Analytical Engine",
        "The Analytical Engine was a computer designed by Charles Babbage.",
    ),
    passage(
        "p4", "Grace Hopper", "Grace Hopper wrote the first compiler. She admired Ada Lovelace."
    ),
]


def new_context(folder: Path) -> IngestContext:
    """A provisioned store of its own, the hashing embedder, the real tokenizer."""
    return IngestContext(
        empty_store(folder / "graph.db"), HashingEmbedder(), TOKENIZER, folder / "cache"
    )


def people_context(folder: Path) -> IngestContext:
    """The same after it read `PEOPLE`; the store is a copy of one that was made once in the
    process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.db").write_bytes(_people())
    return new_context(folder)


@cache
def _people() -> bytes:
    with TemporaryDirectory() as folder:
        context = new_context(Path(folder))
        ingest(context, Listed(PEOPLE))
        context.store.close()
        return (Path(folder) / "graph.db").read_bytes()


def contents(store: GraphStore) -> dict[str, list[dict[str, Any]]]:
    """Everything in the store, by collection, in key order; empty collections are left out."""
    found = {
        collection.name: [row for batch in store.scan(collection.name) for row in batch.to_pylist()]
        for collection in COLLECTIONS
    }
    return {name: rows for name, rows in found.items() if rows}
