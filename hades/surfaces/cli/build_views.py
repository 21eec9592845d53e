"""`hades run`, `hades snapshots` and `hades rollback`."""

from __future__ import annotations

import importlib
import json
import logging
import time
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.ports.progress import Progress
from hades.settings import load_settings
from hades.settings.quiet import keep_libraries_quiet
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import shown_progress
from hades.telemetry.traces import span
from hades.wiring import open_build_context


def run_flow_here(name: str, given: dict[str, str]) -> Answer:
    """Run a flow in this process and show what it said.

    Flows stand above this ring, so their door is looked up by name, as a worker does.
    """
    keep_libraries_quiet()
    began = time.perf_counter()
    with shown_progress() as progress:
        if name == "nightly" and load_settings().prefect_api_url is None:
            report = _run_nightly(given, progress or _logged)
        else:
            report = importlib.import_module("flows.local").run(name, given, progress or _logged)
    seconds = time.perf_counter() - began
    document = {"flow": name, "seconds": round(seconds, 3), "report": report}
    return Answer(document, (*_lines(report), Text(f"{name} done in {seconds:.1f} s")))


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


def list_snapshots() -> Answer:
    """Every published graph of this home."""
    from dataclasses import asdict

    from hades.snapshot.retention import snapshots

    held = snapshots(load_settings().home)
    table = Table(box=None, pad_edge=False)
    for heading in ("serves", "snapshot", "as of", "nodes", "edges", "pins", "problem"):
        table.add_column(heading)
    for one in held:
        serves = "*" if one.serves else ""
        sizes = (f"{one.nodes:,}", f"{one.edges:,}")
        table.add_row(serves, one.snapshot, one.created_at or "", *sizes, ", ".join(one.pins), one.problem or "")
    empty = Text("nothing has been published; run `hades run nightly`")
    return Answer({"snapshots": [asdict(one) for one in held]}, (table if held else empty,))


def repair_contracts(names: list[str]) -> Answer:
    """Recompute what is damaged; raises when a contract is still broken afterwards."""
    from hades.errors import ContractBroken
    from hades.stages.night import begin
    from hades.stages.repair import repair
    from hades.wiring import open_hades

    with shown_progress() as progress, open_hades(progress=progress or _logged) as hades:
        told = repair(hades.build_context, hades.ingest, begin(None), names)
    if not told.holds:
        raise ContractBroken("\n".join(told.notes))
    lines = [f"{name}: {rows:,} broken rows were removed and recomputed" for name, rows in told.broken.items()]
    lines += [f"stages that ran: {', '.join(told.stages)}"] if told.stages else []
    lines += [*told.notes, *([f"{told.snapshot} serves; every contract holds"] if told.snapshot else [])]
    return Answer(told.as_dict(), tuple(Text(line) for line in lines))


def go_back(what: str, to: str | None) -> Answer:
    """Move the pointer back, then restore what the store should say."""
    from hades.stages.release.rollback import roll_back

    with open_build_context(load_settings()) as context:
        went = roll_back(context, what, to).as_dict()
    told = f"{went['snapshot']} serves since {went['pointer_seconds'] * 1000:.0f} ms after the command"
    weights = f"the store has the weights of version {went['weights_version']} again ({went['restored']:,} rows)"
    return Answer(went, (Text(told), Text(went["note"] or weights)))


def _logged(stage: str, done: int, total: int | None) -> None:
    logging.getLogger(__name__).debug("%s: %s of %s", stage, done, total)


def _lines(report: object) -> tuple[Text, ...]:
    if not isinstance(report, dict):
        return ()
    told = report.get("told") or [f"{name}: {_short(value)}" for name, value in report.items()]
    return tuple(Text(line) for line in told)


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 160 else f"{text[:157]}..."
