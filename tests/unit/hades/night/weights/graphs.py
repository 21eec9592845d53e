"""Small stores to weigh, and a registry to log to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hades.night.model_versions import log_weights, promote
from hades.night.weights.stage import weigh as weigh_edges
from hades.ports.services import ProgressReport as Progress
from hades.ports.services import Tracker, silent
from hades.ports.store import GraphStore
from hades.providers.file_registry import FileTracker
from hades.providers.mlflow_registry import MlflowTracker
from hades.settings.tree import PathSettings
from hades.stores.sqlite.store import SqliteStore
from schemas.ids import edge_key, sha256_text
from tests.contract.examples import MODEL, entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.night.contexts import context_of

TODAY = datetime(2026, 2, 2, tzinfo=UTC)  # a Monday


def mention(chunk: str, target: str, count: int, positions: list[int]) -> dict[str, Any]:
    """A row of `mentions`."""
    tail, head = f"doc_chunks/{chunk}", f"entities/{target}"
    key = edge_key(tail, "mentions", head)
    return {
        "_key": key,
        "_from": tail,
        "_to": head,
        "type": "mentions",
        "count": count,
        "positions": positions,
    }


def small_store(path: Path) -> SqliteStore:
    """A store of its own with the small graph."""
    store = empty_store(path)
    put_small_graph(store)
    return store


def put_small_graph(store: GraphStore) -> None:
    """Four entities with vectors and one without, seven relations of five types, three mentions."""
    vectors = {
        "a": [1.0, 0.0, 0.0],
        "b": [0.6, 0.8, 0.0],
        "c": [0.0, 1.0, 0.0],
        "d": [0.8, 0.0, 0.6],
    }
    put(
        store,
        "entities",
        *(
            entity(key, type="paper", embedding=vector, embedding_model=MODEL)
            for key, vector in vectors.items()
        ),
        entity("bare", metadata='{"origin":["term"]}'),
    )
    put(
        store,
        "relations",
        relation("a", "b", "cites", created=datetime(2026, 1, 3, 23, tzinfo=UTC)),
        relation("a", "d", "cites", created=datetime(2020, 1, 1, tzinfo=UTC), evidence_count=7),
        relation("b", "c", "refers_to", created=datetime(2025, 2, 2, tzinfo=UTC), evidence_count=3),
        relation("a", "bare", "refers_to"),
        relation("c", "d", "similar_to", strength=0.9),
        relation("b", "d", "related_to", strength=0.4, evidence_count=3, co_occurrence_count=3),
        relation("c", "a", "derives_from", created=datetime(2027, 1, 1, tzinfo=UTC)),
    )
    text = "a paper about a"
    put(
        store,
        "documents",
        {
            "_key": "doc",
            "origin": "o",
            "source": "documents",
            "text": text,
            "sha256": sha256_text(text),
        },
    )
    put(
        store,
        "doc_chunks",
        {
            "_key": "c1",
            "document": "documents/doc",
            "text": text,
            "span": [0, len(text)],
            "chunk_index": 0,
            "token_count": 4,
            "sha256": sha256_text(text),
        },
    )
    put(
        store,
        "mentions",
        mention("c1", "a", 3, [0, 14]),
        mention("c1", "b", 1, [2]),
        mention("c1", "bare", 1, [8]),
    )


def weigh(
    store: GraphStore,
    path: PathSettings = PathSettings(),
    *,
    inputs: str = "in",
    as_of: datetime = TODAY,
    progress: Progress = silent,
) -> SimpleNamespace:
    """Weigh with the toy model."""
    return SimpleNamespace(
        **weigh_edges(context_of(store, MODEL, path, progress=progress), as_of, inputs)
    )


def weigh_and_log(
    store: GraphStore, tracker: Tracker, as_of: datetime = TODAY, snapshot: str | None = None
) -> str:
    """Weigh and register; with a snapshot the version serves at once."""
    weigh(store, as_of=as_of)
    version = log_weights(store, tracker, as_of=as_of)
    if snapshot is not None:
        promote(tracker, version, snapshot)
    return version


def registry(folder: Path) -> FileTracker:
    """A registry of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileTracker(folder / "registry.db", folder / "artifacts")


def mlflow_registry(folder: Path) -> MlflowTracker:
    """A registry of MLflow."""
    folder.mkdir(parents=True, exist_ok=True)
    return MlflowTracker(
        f"sqlite:///{folder / 'mlflow.db'}", folder / "mlflow.lock", folder / "artifacts"
    )
