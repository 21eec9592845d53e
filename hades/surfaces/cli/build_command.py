"""`hades build`: the nightly build on this machine, for one day or for each day of a range."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

from rich.text import Text

from hades.errors import SettingsError
from hades.ports.store import Mode
from hades.settings import load_settings
from hades.stages.build_report import summary_lines
from hades.stages.forecast import forecast_build
from hades.stages.night import NIGHT, STAGE_NAMES, FirstStage, NightParameters
from hades.stages.run import build
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.surfaces.cli.status_views import cost_sentence, forecast_table
from hades.telemetry.traces import span
from hades.wiring import observe, open_hades, open_store, paid_models

MAX_DAYS = 366


def run_build(
    from_stage: FirstStage, as_of: datetime | None, until: datetime | None, mode: str, keep: int, dry_run: bool
) -> Answer:
    """Build, or say what a build would do."""
    days = list_days(as_of, until)
    parameters = [
        NightParameters.model_validate({"as_of": day, "mode": mode, "keep": keep, "from_stage": from_stage})
        for day in days
    ]
    if dry_run:
        return _forecast(from_stage, days)
    settings = load_settings()
    observe(settings)
    reports: list[dict[str, Any]] = []
    with show_progress() as progress, open_hades(settings, progress=progress) as hades:
        for number, one in enumerate(parameters, 1):
            if progress is not None and len(parameters) > 1:
                progress("days", number - 1, len(parameters))
            with span("hades.flow.nightly"):
                reports.append(build(hades.build_context, hades.ingest, one.begin()))
    lines = [line for report in reports for line in (*summary_lines(report), f"report: {report['report']}")]
    return Answer({"builds": reports}, tuple(Text(line) for line in lines))


def list_days(as_of: datetime | None, until: datetime | None) -> list[datetime | None]:
    """The moments to build: one, or each day of the range, oldest first."""
    if as_of is None or until is None:
        return [as_of]
    days = (until - as_of).days + 1
    if days > MAX_DAYS:
        raise SettingsError(f"{days} days are to be built, at most {MAX_DAYS} at once; give a shorter range")
    return [as_of + timedelta(days=number) for number in range(days)]


def _forecast(from_stage: str, days: list[datetime | None]) -> Answer:
    """The stages that would really work, with the time that each took last."""
    settings = load_settings()
    with closing(open_store(settings, Mode.READ_ONLY)) as store:
        night = forecast_build(store, settings.home, paid_models(settings)).as_dict()
    left_out = {stage.name for stage in NIGHT[: STAGE_NAMES.index(from_stage)]}
    stages = {name: seconds for name, seconds in night["stages"].items() if name not in left_out}
    document = {
        "dry_run": True,
        "builds": len(days),
        "stages": stages,
        "left_out": sorted(left_out),
        "cost": night["cost"],
    }
    head = Text(f"{len(days)} build(s); nothing was changed")
    return Answer(document, (head, forecast_table(stages), Text(cost_sentence(night["cost"]))))
