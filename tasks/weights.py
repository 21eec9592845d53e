"""Weights as a task."""

from __future__ import annotations

from typing import Any

from hades.stages.stage_calls import weigh
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("weigh edges", policies.HEAVY)
def weights(night: Night) -> dict[str, Any]:
    """Weight and cost of every relation, weight of every mention."""
    with opened_site("weights") as site:
        report = weigh(site, night.as_of)
    rows = [{"type": kind, **figures} for kind, figures in report["types"].items()]
    artifacts.table("weights", rows, report["why"] or f"weights by relation type; bias {report['bias']:.3f}")
    return report
