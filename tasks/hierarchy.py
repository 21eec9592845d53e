"""Topics as a task."""

from __future__ import annotations

from typing import Any

from hades.stages.build_context import Mode
from hades.stages.stage_calls import build_topics
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("build topics", policies.HEAVY)
def topics(night: Night, mode: Mode) -> dict[str, Any]:
    """Topics over all entities; once the time box is over only what changed is placed."""
    with opened_site("topics") as site:
        report = build_topics(site, night.as_of, "incremental" if night.is_over else mode)
    artifacts.table("topics", report["biggest"], f"the largest topics; {report['mode']}: {report['why']}")
    return report
