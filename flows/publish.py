"""Let readers see what the store holds now."""

from __future__ import annotations

from typing import Annotated, Any

from prefect import flow
from pydantic import Field

from tasks.snapshot import publish_snapshot


@flow(name="publish")
def publish(
    keep: Annotated[int, Field(ge=1, description="how many of the newest snapshots to keep")] = 3,
) -> dict[str, Any]:
    """Write a snapshot beside the serving one and move the pointer.

    Args:
        keep: how many of the newest snapshots to keep
    """
    return publish_snapshot(keep)
