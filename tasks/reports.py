"""The report of a build as a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hades.stages.build_report import STAGES, build_name, told, write_reports
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("write report", policies.LOCAL)
def write_report(night: Night, report: dict[str, Any]) -> dict[str, Any]:
    """One picture and one JSON file in HADES_HOME/reports, one page in the UI."""
    build = build_name(datetime.fromtimestamp(night.began, UTC))
    with opened_site("report") as site:
        page = write_reports(site, night.as_of, build, report)
    lines = [f"| {name} | {report[name]['took']:.1f} s |" for name in STAGES]
    table = "\n".join(["| stage | time |", "|---|---|", *lines])
    released = report["released"]
    artifacts.page("nightly", f"## {released['snapshot']} serves\n\n{table}\n\nreport: `{page}`\n", "the last nightly")
    return {**report, "report": str(page), "told": [*told(report), f"report: {page}"]}
