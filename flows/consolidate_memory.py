"""Consolidate memory: summaries of days, weeks and months, then tiers; every night, every week, every month."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from prefect import flow
from pydantic import Field

from tasks import policies
from tasks.memory import check_memory, consolidate, place_in_tiers


@flow(name="consolidate_memory", **policies.BUILD)
def consolidate_memory(
    level: Annotated[int, Field(ge=1, le=3, description="1 days, 2 also weeks, 3 also months")] = 1,
    as_of: Annotated[datetime | None, Field(description="the moment that counts as now; empty: now")] = None,
) -> dict[str, Any]:
    """Summarise the periods that are over, say where each version is kept, and check that memory is whole.

    Args:
        level: 1 days, 2 also weeks, 3 also months
        as_of: the moment that counts as now; empty: now
    """
    summaries = consolidate(level, as_of)
    tiers = place_in_tiers(as_of)
    return {"summaries": summaries, "tiers": tiers, "check": check_memory(write_out=True)}
