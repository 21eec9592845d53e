"""Publishing as a task."""

from __future__ import annotations

from typing import Any

from prefect import task

from hades.snapshot.pointer import prune
from hades.wiring import open_hades
from tasks import policies


@task(name="publish snapshot", **policies.LOCAL)
def publish_snapshot(keep: int) -> dict[str, Any]:
    """Write the read index, move the pointer, keep the newest few."""
    with open_hades() as hades:
        published = hades.publish()
        removed = prune(hades.home, keep=keep)
    return {"snapshot": published.snapshot, "manifest": published.manifest_hash, "removed": removed}
