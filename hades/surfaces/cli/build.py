"""Build, run, repair, watch, backup, export."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError
from rich.text import Text

from hades.build.forecast import forecast_build
from hades.build.night import NIGHT, STAGE_NAMES
from hades.build.release.backup import (
    BackupError,
    back_up,
    export_one_state,
    export_rows,
    import_rows,
    restore,
    retain,
    unknown_collections,
)
from hades.build.release.backup import dated as dated_folder
from hades.build.release.export import export_text, import_text, seal_export
from hades.build.repair import repair
from hades.build.report import build, summary_lines
from hades.build.stage import FirstStage, NightParameters, begin
from hades.build.watch import Refresh, source_kind_of, watch_folder
from hades.errors import ContractBroken, HadesError, SettingsError
from hades.ingest.sources.files import SourceError
from hades.ports.services import ProgressReport, silent, utc_now
from hades.ports.store import Mode
from hades.settings.load import keep_libraries_quiet, load_settings
from hades.settings.tree import Settings
from hades.stores.sqlite.connection import copy_as_of_now, copy_database, rows_of
from hades.surfaces.cli.output import Answer, show_progress
from hades.surfaces.cli.serve import cost_sentence, forecast_table
from hades.telemetry.logs import span
from hades.wiring import observe, open_hades, open_store, open_written_store, paid_models

if TYPE_CHECKING:
    from rich.table import Table


# `hades build`: the nightly build on this machine, for one day or for each day of a range.


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


# `hades run` and `hades repair`, and how snapshots and a rollback are shown.


def run_flow_here(flow: str, parameters: dict[str, str]) -> Answer:
    """Run a flow in this process and show its report."""
    keep_libraries_quiet()
    began = time.perf_counter()
    with show_progress() as progress:
        run = _flow_runner() if find_spec("prefect") else _run_without_prefect
        report = run(flow, parameters, progress or _log_progress)
    seconds = time.perf_counter() - began
    document = {"flow": flow, "seconds": round(seconds, 3), "report": report}
    return Answer(document, (*_lines(report), f"{flow} done in {seconds:.1f} s"))


def _flow_runner() -> Callable[[str, dict[str, str], ProgressReport], Any]:
    """The runner of the ring above, which no module here may import; a wheel has it under the one name `hades`."""
    module = import_module("hades.flows.local" if find_spec("hades.flows") else "flows.local")
    runner: Callable[[str, dict[str, str], ProgressReport], Any] = module.run
    return runner


def _run_without_prefect(flow: str, given: dict[str, str], progress: ProgressReport) -> dict[str, Any]:
    """The stages of the night in this process, for an installation without the extra `flows`."""
    if flow != "nightly":
        raise SettingsError(f"{flow} runs with Prefect, which is not installed; install hades-graphrag[flows]")
    sys.stderr.write("Prefect is not installed (extra `flows`): the stages run without it\n")
    settings = load_settings()
    observe(settings)
    try:
        night = NightParameters.model_validate({key: _value(text) for key, text in given.items()}).begin()
    except ValidationError as error:
        raise SettingsError(f"nightly cannot run with these parameters: {error}") from error
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


# `hades watch`: one line an update.


_SHOWN = 3


def run_watch(path: Path, kind: str, quiet_seconds: float, *, once: bool) -> Answer:
    """Update the graph now and after each change; ends with Ctrl-C or, with `once`, after the first update."""
    if not path.is_dir():
        raise SourceError(f"{path} is not a folder; expected one to watch")
    chosen = source_kind_of(path) if kind == "auto" else kind
    updates = failed = 0
    with open_hades() as hades:

        def refresh() -> dict[str, Any]:
            read = hades.ingest.workspace if chosen == "workspace" else hades.ingest.documents
            report = read(path).as_dict()
            return {**report, "snapshot": hades.build()["released"]["snapshot"]}

        with suppress(KeyboardInterrupt):
            for update in watch_folder(path, refresh, quiet_seconds=quiet_seconds, ignored=hades.home):
                updates, failed = updates + 1, failed + bool(update.problem)
                sys.stderr.write(_line(update) + "\n")
                if once:
                    if update.problem:
                        raise HadesError(update.problem)
                    break
    told = f"watched {path} as {chosen}: {updates} updates, {failed} failed"
    return Answer({"path": str(path), "kind": chosen, "updates": updates, "failed": failed}, (Text(told),))


def _line(update: Refresh) -> str:
    named = ", ".join(update.changed[:_SHOWN]) + (" ..." if len(update.changed) > _SHOWN else "")
    after = f" after {named}" if named else ""
    if update.report is None:
        return f"not updated{after}: {update.problem}"
    documents = update.report["documents"]
    counts = ", ".join(f"{documents[part]} {part}" for part in ("new", "changed", "removed") if documents[part])
    return f"updated in {update.seconds:.1f} s{after}: {counts or 'nothing new'}; snapshot {update.report['snapshot']}"


# `hades backup` and `hades restore`.


DATABASE = "graph.db"
FILE, ROWS = "sqlite", "rows"


def run_backup(target: Path, *, rows: bool, logs: bool, dated: bool, keep: int | None) -> Answer:
    """Write a backup of this home and of its store."""
    settings, at = load_settings(), utc_now()
    folder = dated_folder(target, at) if dated else target
    folder.parent.mkdir(parents=True, exist_ok=True)
    save = _rows_saver(settings) if rows or settings.store == "arango" else _file_saver(settings)
    backup = back_up(settings.home, folder, save, copy_as_of_now, at=at, hades=version("hades-graphrag"), logs=logs)
    removed = retain(target, keep) if dated and keep is not None else []
    document = {"path": str(folder), **backup.as_dict(), "removed": removed}
    told = f"{folder}: {sum(backup.rows.values()):,} rows, {len(backup.snapshots)} snapshots, {_size(backup.bytes)}"
    return Answer(document, (Text(told), Text(f"bring it back with: hades restore {folder}")))


def run_restore(source: Path, *, force: bool) -> Answer:
    """Make this home and its store what they were."""
    settings = load_settings()
    restored = restore(source, settings.home, StoreLoader(settings, force), at=utc_now(), force=force)
    lines = [f"{settings.home} is as it was at {restored.backup.at}; {restored.backup.snapshot or 'nothing'} serves"]
    if restored.set_aside is not None:
        lines.append(f"what stood there is in {restored.set_aside}; delete it when you need it no more")
    lines.append("next: hades doctor --deep")
    return Answer(restored.as_dict(), (Text("\n".join(lines)),))


def _file_saver(settings: Settings) -> Callable[[Path], tuple[str, Mapping[str, int]]]:
    """The embedded store as its file, of one moment; counted in the copy, so that the count is the copy's."""

    def save(folder: Path) -> tuple[str, Mapping[str, int]]:
        if not (settings.home / DATABASE).is_file():
            return FILE, {}
        copy_database(settings.home / DATABASE, folder / DATABASE)
        return FILE, rows_of(folder / DATABASE)

    return save


def _rows_saver(settings: Settings) -> Callable[[Path], tuple[str, Mapping[str, int]]]:
    """Any store as Parquet. The embedded one is copied first, so that all collections are of one moment."""

    def save(folder: Path) -> tuple[str, Mapping[str, int]]:
        if settings.store == "arango":
            with closing(open_store(settings, Mode.READ_ONLY)) as store:
                return ROWS, export_one_state(store, folder)
        copy_database(settings.home / DATABASE, folder / DATABASE)
        with closing(open_store(settings.model_copy(update={"home": folder}), Mode.ADMIN)) as copy:
            copy.provision()
            counts = export_rows(copy, folder)
        for left in folder.glob(f"{DATABASE}*"):
            left.unlink()
        return ROWS, counts

    return save


@dataclass(frozen=True)
class StoreLoader:
    """Into the store of the settings: a file takes its place, rows are written whatever store they came from."""

    settings: Settings
    force: bool

    def check(self, kind: str, rows: Mapping[str, int]) -> None:
        """Refuse what this version or this store cannot hold, and a store on a server that holds rows already."""
        if unknown := unknown_collections(rows):
            raise BackupError(f"this version has no collections {', '.join(unknown)}; upgrade HADES, then try again")
        if self.settings.store == "sqlite":
            return
        if kind == FILE:
            raise BackupError(
                "this backup holds the embedded store's file, which ArangoDB cannot read; restore it with "
                "HADES_STORE=sqlite, write `hades backup --rows`, and restore that one"
            )
        with closing(open_store(self.settings, Mode.ADMIN)) as store:
            store.provision()
            if not self.force and any(store.counts().values()):
                raise BackupError("the store holds rows already; use --force to make it hold the backup's rows alone")

    def load(self, kind: str, folder: Path, rows: Mapping[str, int]) -> None:
        """The file, brought to this version; or the rows."""
        if kind == FILE and rows:
            copy_database(folder / DATABASE, self.settings.home / DATABASE)
        with closing(open_store(self.settings, Mode.ADMIN)) as store:
            store.provision()
            if kind == ROWS:
                import_rows(store, folder, rows)


def _size(count: int) -> str:
    return f"{count / 1024**2:,.1f} MiB" if count < 1024**3 else f"{count / 1024**3:,.1f} GiB"


# `hades export` and `hades import`.


def run_export(target: Path, form: Literal["jsonl", "markdown"], only: str) -> Answer:
    """Write the rows of the store as text."""
    settings = load_settings()
    with show_progress() as progress, closing(open_store(settings, Mode.READ_ONLY)) as store:
        document = export_text(
            store, target, form, only, at=utc_now(), hades=version("hades-graphrag"), progress=progress or silent
        )
    held = document["collections"]
    told = f"{target}: {sum(one['rows'] for one in held.values()):,} rows of {len(held)} collections as {form}"
    return Answer({"path": str(target), **document}, (Text(told), Text(f"read it back with: hades import {target}")))


def run_import(source: Path, seal: bool) -> Answer:
    """Write the rows of an export into the store."""
    if seal:
        seal_export(source)
    with show_progress() as progress, closing(open_written_store(load_settings())) as store:
        counts = import_text(store, source, progress=progress or silent)
    told = f"{sum(counts.values()):,} rows of {len(counts)} collections are in the store"
    return Answer({"source": str(source), "rows": counts}, (Text(told), Text("next: hades publish")))
