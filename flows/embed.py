"""Vectors for every chunk that has none, in shards; on a Dask cluster where HADES_TASK_RUNNER says
so.
"""

from __future__ import annotations

from typing import Any

from tasks.build import embed_shard, finish_embeddings, list_shards
from tasks.unit import build_flow, graph_flow, run_flow


@build_flow("embed")
def embed() -> dict[str, Any]:
    """Embed what has no vector of the model in use; each shard is kept as soon as it is done."""
    return run_flow(embed_shards)


@graph_flow("embed-shards", {})
def embed_shards() -> dict[str, Any]:
    """The shards side by side, on the task runner of the settings."""
    embedded = embed_shard.over(list_shards())
    return finish_embeddings(embedded)
