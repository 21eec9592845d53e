"""Bridges alone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from hades.night.stage import begin
from tasks.build import check, run_alone
from tasks.unit import build_flow


@build_flow("build_bridges")
def build_bridges(
    as_of: datetime | None = None,
    time_box_minutes: Annotated[float | None, Field(gt=0)] = None,
) -> dict[str, Any]:
    """Mark edges between topics and compute the hot paths along them; readers see them after
    `publish`.

    Args:
        as_of: the moment bridges are dated by; empty: today, UTC
        time_box_minutes: stop searching after this many minutes
    """
    report = run_alone("bridges", begin(as_of, time_box_minutes))
    return {
        "bridges": report,
        "contracts": check(["bridges"]),
    }
