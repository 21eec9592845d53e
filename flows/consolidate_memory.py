"""Consolidate memory: summaries of days, weeks and months, then what its use teaches; run on a
schedule.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from tasks import policies
from tasks.artifacts import pay_or_ask
from tasks.memory import check_memory, consolidate, learn_from_use
from tasks.unit import graph_flow


@graph_flow("consolidate_memory", policies.BUILD)
def consolidate_memory(
    level: Annotated[int, Field(ge=1, le=3)] = 1,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """Summarise the periods that are over, learn from what was read, and check that memory is
    whole.

    Args:
        level: 1 days, 2 also weeks, 3 also months
        as_of: the moment that counts as now; empty: now
    """
    summaries = pay_or_ask(consolidate, level, as_of)
    learned = learn_from_use()
    return {
        "summaries": summaries,
        "learning": learned,
        "check": check_memory(write_out=True),
    }
