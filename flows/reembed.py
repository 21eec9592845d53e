"""Change the embedding model: embed everything again, swap, publish."""

from __future__ import annotations

from typing import Any

from prefect import flow

from tasks.ingest import embed_again
from tasks.snapshot import publish_snapshot


@flow(name="reembed")
def reembed(keep: int = 3) -> dict[str, Any]:
    """Every vector by the model that HADES_EMBEDDER names; readers see the old ones until all are new.

    Args:
        keep: how many of the newest snapshots to keep
    """
    report = embed_again()
    return {"report": report, "published": publish_snapshot(keep)}
