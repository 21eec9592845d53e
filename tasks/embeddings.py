"""Embedding as tasks: a shard is a range of keys, so that shards can run side by side on any task runner."""

from __future__ import annotations

from typing import Any

from hades.ingest.embeddings import embed_chunks, embed_range, pending_ranges
from hades.wiring import open_hades
from tasks import policies
from tasks.artifacts import progress_of
from tasks.unit import unit


@unit("list shards", policies.LOCAL)
def list_shards() -> list[tuple[str, str]]:
    """Ranges of chunks that have no vector yet."""
    with open_hades() as hades:
        return pending_ranges(hades.store, hades.embedder.model.tag)


@unit("embed shard", policies.HEAVY, task_run_name="embed {shard}")
def embed_shard(shard: tuple[str, str]) -> int:
    """Embed one range; how many chunks that were."""
    with open_hades() as hades:
        return embed_range(hades.store, hades.embedder, *shard, progress_of("embeddings"))


@unit("finish embeddings", policies.HEAVY)
def finish_embeddings(embedded: list[int]) -> dict[str, Any]:
    """Whatever no shard covered: after a change of model every vector, swapped in at once."""
    with open_hades() as hades:
        rest = embed_chunks(hades.store, hades.embedder, hades.home / "cache", progress_of("embeddings"))
    return {"embedded": sum(embedded) + rest, "shards": len(embedded)}
