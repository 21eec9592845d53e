"""The report of a build as a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hades.stages.build_report import build_name, summary_lines, write_reports
from hades.stages.night import STAGE_NAMES, Night
from tasks import artifacts, policies
from tasks.context import build_context
from tasks.unit import unit


@unit("write report", policies.LOCAL)
def write_report(night: Night, report: dict[str, Any]) -> dict[str, Any]:
    """One page, one picture and one JSON file in HADES_HOME/reports, one page in the UI."""
    build = build_name(datetime.fromtimestamp(night.began, UTC))
    with build_context("report") as context:
        page = write_reports(context, night.as_of, build, report, with_picture=True)
    lines = [f"| {name} | {report[name]['took']:.1f} s |" for name in STAGE_NAMES]
    table = "\n".join(["| stage | time |", "|---|---|", *lines])
    released = report["released"]
    picture = artifacts.embed_picture(page.with_suffix(".png"), f"stages and topics of {build}")
    told = f"## {released['snapshot']} serves\n\n{picture}{table}\n\nreport: `{page}`\n"
    artifacts.page("nightly", told, "the last nightly")
    return {**report, "report": str(page), "told": [*summary_lines(report), f"report: {page}"]}
