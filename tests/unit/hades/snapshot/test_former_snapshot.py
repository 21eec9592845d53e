"""What the serving snapshot holds of rows that stay the same is copied; the result is that of a build from nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from hades.snapshot.publish import publish
from hades.snapshot.rows import node_rows, vector_rows
from hades.snapshot.rows.former_snapshot import FormerSnapshot
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, put
from tests.unit.hades.snapshot.homes import empty_store

TAGS = {"toy@1/4": 4, "toy@2/6": 6}


def vector(random: Random, tag: str) -> dict[str, Any]:
    numbers = [0.0 if random.random() < 0.2 else round(random.uniform(-1, 1), 3) for _ in range(TAGS[tag])]
    return {"embedding": numbers, "embedding_model": tag}


def store_of(folder: Path, n_entities: int) -> SqliteStore:
    folder.mkdir()
    store, random = empty_store(folder / "graph.db"), Random(n_entities)
    put(store, "entities", *(entity(f"e{number:02}", **vector(random, "toy@1/4")) for number in range(n_entities)))
    return store


def measured_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of vectors that were coded and of ids that were hashed, as they come."""
    counts: list[int] = []
    code, hash_texts = vector_rows.code_rows, node_rows.hash_texts
    monkeypatch.setattr(
        vector_rows, "code_rows", lambda values, norms: counts.append(len(values)) or code(values, norms)
    )
    monkeypatch.setattr(node_rows, "hash_texts", lambda texts: counts.append(len(texts)) or hash_texts(texts))
    return counts


@pytest.mark.parametrize("seed", range(6))
def test_any_history_of_vectors_gives_the_snapshot_of_a_build_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(vector_rows, "CODED_FROM", 5)
    monkeypatch.setattr(vector_rows, "_CACHED_ROWS", 3)
    monkeypatch.setattr(node_rows, "_BATCH_ROWS", 4)
    random, store = Random(seed), store_of(tmp_path / "store", 9)
    for night in range(5):
        grown, fresh = publish(store, tmp_path / "grown"), publish(store, tmp_path / f"fresh{night}")
        assert grown.manifest_hash == fresh.manifest_hash
        store.delete("entities", keys=[f"e{random.randrange(14):02}" for _ in range(2)])
        changed = {f"e{random.randrange(14):02}": random.choice([*TAGS, ""]) for _ in range(3)}
        put(store, "entities", *(entity(key, **(vector(random, tag) if tag else {})) for key, tag in changed.items()))


def test_only_vectors_and_keys_that_are_new_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "CODED_FROM", 5)
    store = store_of(tmp_path / "store", 8)
    publish(store, tmp_path / "home")
    put(store, "entities", entity("e03", embedding=[1.0, 0.0, 0.5, 0.0], embedding_model="toy@1/4"), entity("new"))
    counts = measured_rows(monkeypatch)
    publish(store, tmp_path / "home")
    assert sorted(count for count in counts if count) == [1, 1]


def test_a_snapshot_whose_file_was_touched_is_not_copied_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "CODED_FROM", 5)
    store = store_of(tmp_path / "store", 8)
    first = publish(store, tmp_path / "home")
    norms = first.path / "vector.entities.0.norm"
    norms.write_bytes(np.zeros(8, np.float32).tobytes())
    put(store, "entities", entity("new"))
    assert FormerSnapshot.load(first.path) is None
    assert publish(store, tmp_path / "home").manifest_hash == publish(store, tmp_path / "fresh").manifest_hash
