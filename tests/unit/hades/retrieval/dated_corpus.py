"""Painters whose relations were true for a time, were learned on a day, and belong to domains;
published for real.

Ada Holm studied under Jan Brod in the first ten days of January 2026 and under Lea Moor ever since;
that Jan Brod taught Ivo Kern was learned on the 15th. Ada Holm lives at Lake Orin, which is no part
of the arts.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from hades.retrieval.answers import Answers
from hades.snapshot.publish import publish
from hades.wiring import open_answers
from schemas.ids import edge_key
from tests.contract.examples import day, entity, put, relation
from tests.homes import empty_store, settings_of
from tests.unit.hades.snapshot.homes import chunk, document

PEOPLE = {
    "holm": ("Ada Holm", "art", "Ada Holm painted ships."),
    "brod": ("Jan Brod", "art", "Drawing was what Jan Brod gave lessons in."),
    "moor": ("Lea Moor", "art", "Etching was what Lea Moor gave lessons in."),
    "kern": ("Ivo Kern", "art", "Wood was what Ivo Kern carved."),
    "orin": ("Lake Orin", "places", "Cold water fills Lake Orin."),
}


def published(home: Path) -> str:
    """A home with the corpus published, and which snapshot it became. It is built once in a
    process, then copied.
    """
    built, snapshot = _build()
    shutil.copytree(built, home, dirs_exist_ok=True)
    return snapshot


@cache
def _build() -> tuple[Path, str]:
    home = Path(mkdtemp(prefix="hades-dated-"))
    store = empty_store(home / "graph.db")
    for key, (name, domain, text) in PEOPLE.items():
        put(store, "documents", {**document(key, text), "title": name})
        put(store, "doc_chunks", chunk(f"c_{key}", key, text, 0, len(text), title=name))
        put(store, "entities", entity(key, name=name, domain=domain))
        put(store, "mentions", mention(f"c_{key}", key))
    put(
        store,
        "relations",
        relation("holm", "brod", weight=0.9, valid_until=day(11), recorded_at=day(1)),
        relation("holm", "moor", weight=0.8, valid_from=day(11), recorded_at=day(11)),
        relation("brod", "kern", weight=0.9, recorded_at=day(15)),
        relation("holm", "orin", weight=0.7, recorded_at=day(1)),
    )
    snapshot = publish(store, home).snapshot
    store.close()
    return home, snapshot


def published_later(home: Path) -> str:
    """The same with one relation more, as the next night publishes it."""
    store = empty_store(home / "graph.db")
    put(store, "relations", relation("moor", "kern", weight=0.9, recorded_at=day(20)))
    snapshot = publish(store, home).snapshot
    store.close()
    return snapshot


def mention(chunk_key: str, entity_key: str) -> dict[str, object]:
    """A row of `mentions`."""
    tail, head = f"doc_chunks/{chunk_key}", f"entities/{entity_key}"
    return {"_key": edge_key(tail, "mentions", head), "_from": tail, "_to": head, "weight": 1.0}


def answering(home: Path) -> Answers:
    """What answers questions of it, by words alone."""
    return open_answers(settings_of(home))
