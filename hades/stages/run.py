"""The whole night in one call, for a notebook or a script: the same stages, contracts and release as the flow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from hades.errors import SettingsError
from hades.ingest.ingest_api import Ingest
from hades.stages.build_context import BuildContext
from hades.stages.build_report import build_name, write_reports
from hades.stages.contracts.check_contracts import check_contracts
from hades.stages.night import Night, NightParameters, stages_of
from hades.stages.run_stage import run_stage
from hades.telemetry.traces import span


def build(
    context: BuildContext, ingest: Ingest, night: Night, *, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Any]:
    """Run every stage in order, each followed by its contracts; what each stage reported and how long it took."""
    report: dict[str, Any] = {"as_of": night.as_of.isoformat(), "contracts": []}
    for stage in stages_of(night):
        with span(f"hades.build.{stage.name}"):
            report[stage.name] = _time(lambda: run_stage(stage, context, ingest, night), clock)  # noqa: B023  called at once
        if stage.contracts:
            with span("hades.build.contracts", contracts=stage.contracts):
                checked = _time(lambda: check_contracts(context, stage.contracts).require().as_dict(), clock)  # noqa: B023
            report["contracts"].append(checked)
    name = build_name(datetime.fromtimestamp(night.began, UTC))
    report["report"] = str(write_reports(context, night.as_of, name, report))
    return report


def parse_parameters(given: Mapping[str, Any]) -> NightParameters:
    """Parameters of a night as people give them; an error says which are wanted."""
    wanted = NightParameters.model_fields
    if unknown := sorted(set(given) - set(wanted)):
        raise SettingsError(f"nightly has no parameter {', '.join(unknown)}; it takes {', '.join(sorted(wanted))}")
    try:
        return NightParameters.model_validate(dict(given))
    except ValidationError as error:
        raise SettingsError(f"nightly cannot run with these parameters: {error}") from error


def _time(work: Callable[[], dict[str, Any]], clock: Callable[[], float]) -> dict[str, Any]:
    began = clock()
    report = work()
    return {**report, "took": round(clock() - began, 3)}
