"""Weights alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hades.night.stage import begin
from tasks.build import check, run_alone
from tasks.unit import build_flow


@build_flow("weigh_edges")
def weigh_edges(as_of: datetime | None = None) -> dict[str, Any]:
    """Weigh every relation and mention, and check the result; readers see it after `publish`.

    Args:
        as_of: the moment freshness is counted from; empty: today
    """
    report = run_alone("weights", begin(as_of))
    return {
        "weights": report,
        "contracts": check(["weights"]),
    }
