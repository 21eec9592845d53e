"""Vectors of another model: every state gets one of the embedder in use, in batches, safe to stop and to repeat."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hades.memory.history import rows as records
from hades.memory.history.delta_chains import WITHOUT_VECTOR, make_whole
from hades.memory.history.names import STATES
from hades.memory.history.states import is_erased
from hades.ports.store import RowStore, Term
from hades.ports.text import Embedder
from schemas.catalogue import collection_named
from schemas.memory import MemoryState

_BATCH = 1_000


def reembed_states(rows: RowStore, embedder: Embedder) -> int:
    """Embed again every state whose vector is missing or of another model; how many there were."""
    collection = collection_named(STATES)
    assert collection is not None
    schema = pa.schema([collection.schema.field(name) for name in ("_key", "embedding", "embedding_model")])
    tag, done = embedder.model.tag, 0
    for keys in _stale_keys(rows, tag):
        held = records.read(rows.get(STATES, keys, columns=WITHOUT_VECTOR), MemoryState)
        states = [state for state in make_whole(rows, held) if not is_erased(state)]
        if not states:
            continue
        vectors = embedder.embed([state.content for state in states])
        fresh = [
            {"_key": state.key, "embedding": vector.tolist(), "embedding_model": tag}
            for state, vector in zip(states, vectors, strict=True)
        ]
        rows.patch(STATES, pa.Table.from_pylist(fresh, schema=schema))
        done += len(fresh)
    return done


def _stale_keys(rows: RowStore, tag: str) -> Iterator[list[str]]:
    """Keys of the states without a vector of the model, some at a time; erased places have none and want none."""
    stale = [
        row["_key"]
        for batch in rows.scan(STATES, where=[Term("valid_from", "not_null")], columns=["embedding_model"])
        for row in batch.to_pylist()
        if row["embedding_model"] != tag
    ]
    for start in range(0, len(stale), _BATCH):
        yield stale[start : start + _BATCH]
