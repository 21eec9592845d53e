"""Bridges as a task."""

from __future__ import annotations

from typing import Any

from hades.stages.build_context import deadline_in
from hades.stages.stage_calls import bridge
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("build bridges", policies.HEAVY)
def bridges(night: Night) -> dict[str, Any]:
    """Edges between topics and the hot paths along them, as many as the time box allows."""
    with opened_site("bridges") as site:
        report = bridge(site, night.as_of, deadline_in(night.seconds_left()))
    counts = {name: report[name] for name in ("labelled", "pairs", "pairs_searched", "pairs_reused", "bridges", "work")}
    artifacts.table("bridges", [counts], report["stopped"] or "paths between topics, computed ahead")
    return report
