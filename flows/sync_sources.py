"""Bring remote sources in step, on a schedule of their own."""

from __future__ import annotations

from typing import Any

from hades.ingest.sources.remote.sync import require_synced
from tasks import policies
from tasks.build import sync_remotes
from tasks.unit import graph_flow


@graph_flow("sync_sources", policies.BUILD)
def sync_sources(names: list[str] | None = None, due: bool = True) -> dict[str, Any]:
    """List what changed, check each source's contract, read it; the next build publishes it.

    Args:
        names: the sources to sync; empty: all
        due: only those whose interval is over
    """
    reports = sync_remotes(names or [], due)
    return require_synced(reports)
