"""Small stores to publish from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hades.stores.sqlite.store import SqliteStore
from schemas.ids import sha256_text
from tests.contract.examples import entity, put, relation
from tests.homes import empty_store


def chain_store(path: Path, length: int = 4) -> SqliteStore:
    """Entities e0 -> e1 -> ..., and a document with one chunk."""
    store = empty_store(path)
    put(
        store,
        "entities",
        *(entity(f"e{number}", name=f"Thing {number}") for number in range(length)),
    )
    put(
        store,
        "relations",
        *(relation(f"e{tail}", f"e{tail + 1}", weight=0.5) for tail in range(length - 1)),
    )
    put(store, "documents", document("d", "about things"))
    put(store, "doc_chunks", chunk("c", "d", "about things", 0, 5))
    return store


def document(key: str, text: str) -> dict[str, Any]:
    """A row of `documents`."""
    return {
        "_key": key,
        "origin": f"origin of {key}",
        "source": "documents",
        "text": text,
        "sha256": sha256_text(text),
    }


def chunk(key: str, of: str, text: str, start: int, end: int, **fields: Any) -> dict[str, Any]:
    """A row of `doc_chunks` cut from a text."""
    return {
        "_key": key,
        "document": f"documents/{of}",
        "text": text[start:end],
        "span": [start, end],
        "chunk_index": start,
        "token_count": 1,
        "sha256": sha256_text(text[start:end]),
        **fields,
    }
