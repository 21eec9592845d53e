"""`hades run` and `hades repair`, and how snapshots and a rollback are shown."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hades.errors import SettingsError
from hades.ports.progress import Progress
from hades.settings import load_settings
from hades.settings.quiet import keep_libraries_quiet
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.telemetry.traces import span

if TYPE_CHECKING:
    from rich.table import Table


def run_flow_here(flow: str, parameters: dict[str, str]) -> Answer:
    """Run a flow in this process and show its report.

    Flows are above this ring and announce themselves: the entry point `hades.flows` of the package names their runner.
    """
    keep_libraries_quiet()
    began = time.perf_counter()
    with show_progress() as progress:
        if flow == "nightly" and load_settings().prefect_api_url is None:
            report = _run_nightly(parameters, progress or _log_progress)
        else:
            report = _flow_runner()(flow, parameters, progress or _log_progress)
    seconds = time.perf_counter() - began
    document = {"flow": flow, "seconds": round(seconds, 3), "report": report}
    return Answer(document, (*_lines(report), f"{flow} done in {seconds:.1f} s"))


def _flow_runner() -> Callable[[str, dict[str, str], Progress], Any]:
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group="hades.flows", name="run")), None)
    if found is None:
        raise SettingsError("no flow runner is installed (entry point hades.flows); install the package hades-graphrag")
    runner: Callable[[str, dict[str, str], Progress], Any] = found.load()
    return runner


def _run_nightly(given: dict[str, str], progress: Progress) -> dict[str, Any]:
    """The night without a server: the same list of stages as the flow, without loading Prefect."""
    from hades.stages.build_report import summary_lines
    from hades.stages.run import build, parse_parameters
    from hades.wiring import observe, open_hades

    settings = load_settings()
    observe(settings)
    night = parse_parameters({key: _value(text) for key, text in given.items()}).begin()
    with open_hades(settings, progress=progress) as hades, span("hades.flow.nightly"):
        report = build(hades.build_context, hades.ingest, night)
    return {**report, "told": [*summary_lines(report), f"report: {report['report']}"]}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def show_snapshots(document: Mapping[str, Any]) -> tuple[Table | str]:
    """The published graphs as a table."""
    from rich.table import Table

    held = document["snapshots"]
    if not held:
        return ("Nothing has been published; run `hades build`.",)
    table = Table(box=None, pad_edge=False)
    for heading in ("serves", "snapshot", "as of", "nodes", "edges", "pins", "problem"):
        table.add_column(heading)
    for one in held:
        serves, pins = "*" if one["serves"] else "", ", ".join(one["pins"])
        sizes = (f"{one['nodes']:,}", f"{one['edges']:,}")
        table.add_row(serves, one["snapshot"], one["created_at"] or "", *sizes, pins, one["problem"] or "")
    return (table,)


def show_rollback(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What serves now, and which weights the store has."""
    told = f"{document['snapshot']} is now serving; switched in {document['pointer_seconds'] * 1000:.0f} ms"
    weights = f"the store has weights version {document['weights_version']} again ({document['restored']:,} rows)"
    lines = (told, weights if document["weights_version"] else "", document["note"])
    return tuple(line for line in lines if line)


def repair_contracts(names: Sequence[str]) -> Answer:
    """Recompute what is damaged; raises when a contract is still broken afterwards."""
    from hades.errors import ContractBroken
    from hades.stages.night import begin
    from hades.stages.repair import repair
    from hades.wiring import open_hades

    with show_progress() as progress, open_hades(progress=progress or _log_progress) as hades:
        told = repair(hades.build_context, hades.ingest, begin(None), list(names))
    if not told.holds:
        raise ContractBroken("\n".join(told.notes))
    lines = [f"{name}: {rows:,} broken rows were removed and recomputed" for name, rows in told.broken.items()]
    lines += [f"stages that ran: {', '.join(told.stages)}"] if told.stages else []
    lines += [*told.notes, *([f"{told.snapshot} serves; every contract holds"] if told.snapshot else [])]
    return Answer(told.as_dict(), tuple(lines))


def _log_progress(stage: str, done: int, total: int | None) -> None:
    logging.getLogger(__name__).debug("%s: %s of %s", stage, done, total)


def _lines(report: object) -> tuple[str, ...]:
    if not isinstance(report, dict):
        return ()
    told = report.get("told") or [f"{name}: {_short(value)}" for name, value in report.items()]
    return tuple(told)


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 160 else f"{text[:157]}..."
