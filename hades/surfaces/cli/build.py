"""The commands `hades build`, `run`, `repair`, `contracts`, `watch`, `backup`, `restore`, `export`
and `import`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import TypeAdapter, ValidationError

from hades.errors import ContractBroken, HadesError, SettingsError, explain_problems
from hades.ingest.phases import Phase
from hades.ingest.sources.files import SourceError
from hades.night.contracts.check import export_project
from hades.night.contracts.own import try_rules
from hades.night.forecast import forecast_build
from hades.night.release import backup as backups
from hades.night.release.backup import BackupError
from hades.night.release.export import export_text, import_text, seal_export
from hades.night.repair import repair
from hades.night.report import build, summary_lines
from hades.night.stage import FirstStage, begin
from hades.night.stages import NIGHT, STAGE_NAMES
from hades.night.watch import FolderUpdate, source_kind_of, watch_folder
from hades.ports.services import ProgressReport, silent, utc_now
from hades.ports.store import Mode
from hades.settings.load import keep_libraries_quiet, load_settings
from hades.settings.tree import Settings
from hades.snapshot.pointer import read as read_pointer
from hades.snapshot.pointer import root_of, served
from hades.stores.sqlite.store import copy_as_of_now, copy_database, rows_of
from hades.surfaces.capabilities.capability import Moment, read_pairs
from hades.surfaces.cli.output import (
    Answer,
    argument,
    list_records,
    local_command,
    option,
    shorten,
    show_progress,
)
from hades.surfaces.cli.serve import cost_sentence, forecast_table
from hades.surfaces.cli.warm import keep_warm
from hades.telemetry.logs import span
from hades.wiring import (
    hold_build,
    observe,
    open_hades,
    open_store,
    open_written_store,
    paid_models,
    store_file,
)
from schemas.record import JsonObject

MAX_DAYS = 366
FLOWS = (
    "nightly",
    "ingest",
    "sync_sources",
    "embed",
    "build_hierarchy",
    "weigh_edges",
    "build_bridges",
    "train_ranker",
    "publish",
    "check_contracts",
    "consolidate_memory",
    "evaluate",
    "rollback",
    "reembed",
    "provision",
    "plan_then_apply",
)
FlowName = Literal[FLOWS]  # type: ignore[valid-type]


def read_moment(text: str) -> datetime:
    """A time of the command line, in UTC."""
    try:
        moment: datetime = TypeAdapter(Moment).validate_python(text)
        return moment
    except ValidationError:
        raise typer.BadParameter(
            "not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None


@local_command("build", "RW")
def run_build(
    from_stage: Annotated[
        FirstStage, option("First stage to run; earlier ones are left out.", "--from")
    ] = "sources",
    as_of: Annotated[
        datetime | None,
        option(
            "The moment the build stands at; a past one is built aside. By default the beginning "
            "of today.",
            parser=read_moment,
            metavar="TIME",
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        option(
            "Backfill: one build a day from --as-of to this day.",
            parser=read_moment,
        ),
    ] = None,
    mode: Annotated[
        Literal["auto", "full", "incremental"],
        option("Topics: auto builds them when their inputs changed, full always."),
    ] = "auto",
    keep: Annotated[int, option("Number of newest snapshots to keep.", min=1)] = 7,
    dry_run: Annotated[
        bool,
        option(
            "Only say which stages would run, and how long they took last time.",
            "--dry-run",
        ),
    ] = False,
) -> Answer:
    """Bring the graph up to date and publish it: the nightly build, here and now, without a server.

    Work that is done is not repeated: an unchanged stage is skipped. With --until one build is made
    for each day, each with its own snapshot. A moment before that of the newest graph is a past
    night: documents are read as they were, and its snapshot is kept without serving until `hades
    promote`. `hades run nightly` does the same, under the name that schedules use, and is recorded
    on the Prefect server of PREFECT_API_URL.
    """
    if until is not None and (as_of is None or until < as_of):
        raise typer.BadParameter(
            "--until needs an earlier --as-of, for example --as-of 2026-01-01 --until 2026-01-03"
        )

    days = list_days(as_of, until)
    if dry_run:
        return _forecast(from_stage, days)

    settings = load_settings()
    observe(settings)
    reports: list[JsonObject] = []

    with (
        show_progress() as progress,
        hold_build("hades build"),
        open_hades(settings, progress=progress) as hades,
    ):
        for number, day in enumerate(days):
            if progress is not None and len(days) > 1:
                progress("days", number, len(days))

            with span("hades.flow.nightly"):
                night = begin(
                    day,
                    mode=mode,
                    keep=keep,
                    from_stage=from_stage,
                )
                reports.append(build(hades.build_context, hades.ingest, night))

    lines: list[str] = []
    for report in reports:
        lines += [*summary_lines(report), f"report: {report['report']}"]

    return Answer({"builds": reports}, lines)


def list_days(as_of: datetime | None, until: datetime | None) -> list[datetime | None]:
    """The moments to build: one, or each day of the range, oldest first."""
    if as_of is None or until is None:
        return [as_of]

    days = (until - as_of).days + 1
    if days > MAX_DAYS:
        raise SettingsError(
            f"{days} days are to be built, at most {MAX_DAYS} at once; give a shorter range"
        )

    return [as_of + timedelta(days=number) for number in range(days)]


def _forecast(from_stage: str, days: list[datetime | None]) -> Answer:
    """The stages that would really work, with the time that each took last."""
    settings = load_settings()
    with closing(open_store(settings, Mode.READ_ONLY)) as store:
        night = forecast_build(
            store,
            settings.home,
            paid_models(settings),
        )

    left_out = set()
    for stage in NIGHT[: STAGE_NAMES.index(from_stage)]:
        left_out.add(stage.name)

    stages = {}
    for name, seconds in night["stages"].items():
        if name not in left_out:
            stages[name] = seconds

    document = {
        "dry_run": True,
        "builds": len(days),
        "stages": stages,
        "left_out": sorted(left_out),
        "cost": night["cost"],
    }
    head = f"{len(days)} build(s); nothing was changed"
    return Answer(document, (head, forecast_table(stages), cost_sentence(night["cost"])))


@local_command("run", "RW")
def run_flow_here(
    flow: Annotated[FlowName, argument(f"One of {', '.join(FLOWS)}.", "FLOW")],
    parameters: Annotated[
        list[str] | None,
        option(
            "A parameter of the flow, as JSON or plain text; may be repeated.",
            "-p",
            "--param",
            metavar="KEY=VALUE",
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        option(
            "Its parameter as_of; nightly rebuilds a past night aside.",
            parser=read_moment,
            metavar="TIME",
        ),
    ] = None,
) -> Answer:
    """Run a flow here: without a server, or recorded on the Prefect server of PREFECT_API_URL.

    `hades run nightly` does the same as `hades build`, under the name that schedules use.
    """
    try:
        arguments = read_pairs(parameters or ())
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="-p") from None

    if as_of is not None:
        arguments["as_of"] = as_of.isoformat()

    keep_libraries_quiet()
    began = time.perf_counter()
    with show_progress() as progress:
        run: Callable[[str, JsonObject, ProgressReport], Any] = _run_without_prefect
        if find_spec("prefect"):
            # No module here may import the ring above; a wheel has it under the one name `hades`.
            if find_spec("hades.flows"):
                flows = "hades.flows"
            else:
                flows = "flows"

            run = import_module(f"{flows}.local").run

        report = run(flow, arguments, progress or _log_progress)

    seconds = time.perf_counter() - began
    document = {
        "flow": flow,
        "seconds": round(seconds, 3),
        "report": report,
    }
    results = report if isinstance(report, dict) else {}
    lines = results.get("told") or [f"{name}: {shorten(value)}" for name, value in results.items()]
    return Answer(document, (*lines, f"{flow} done in {seconds:.1f} s"))


def _run_without_prefect(
    flow: str,
    arguments: JsonObject,
    progress: ProgressReport,
) -> JsonObject:
    """The stages of the night in this process, for an installation without the extra `flows`."""
    if flow != "nightly":
        raise SettingsError(
            f"{flow} runs with Prefect, which is not installed; run `pip install "
            "'hades-graphrag[flows]'`"
        )

    sys.stderr.write("Prefect is not installed (extra `flows`): the stages run without it\n")
    settings = load_settings()
    observe(settings)

    try:
        night = begin(**arguments)
    except ValidationError as error:
        problems = explain_problems(error.errors())
        raise SettingsError(f"nightly cannot run with these parameters: {problems}") from error

    with (
        hold_build("nightly"),
        open_hades(settings, progress=progress) as hades,
        span("hades.flow.nightly"),
    ):
        report = build(hades.build_context, hades.ingest, night)

    return {
        **report,
        "told": [*summary_lines(report), f"report: {report['report']}"],
    }


@local_command("repair", "RW")
def repair_contracts(
    names: Annotated[
        list[str] | None,
        argument("Contracts to repair; by default every contract.", "[CONTRACT]..."),
    ] = None,
) -> Answer:
    """Recompute what a contract names as damaged: broken rows are removed and rebuilt, then
    published.
    """
    with (
        show_progress() as bars,
        hold_build("hades repair"),
        open_hades(progress=bars or _log_progress) as hades,
    ):
        report = repair(
            hades.build_context,
            hades.ingest,
            begin(None),
            list(names or ()),
        )

    if not report["holds"]:
        raise ContractBroken("\n".join(report["notes"]))

    lines = []
    for name, rows in report["broken"].items():
        lines.append(f"{name}: {rows:,} broken rows were removed and recomputed")

    if report["stages"]:
        lines.append(f"stages that ran: {', '.join(report['stages'])}")

    lines += report["notes"]
    if report["snapshot"]:
        lines.append(f"{report['snapshot']} serves; every contract holds")

    return Answer(report, lines)


@local_command("contracts export", "RO")
def export_contracts(
    folder: Annotated[Path, argument("New folder for the project.", "DIR")],
) -> Answer:
    """Write the contracts as a project of Great Expectations: suites, a checkpoint and the rows as
    Parquet.
    """
    settings = load_settings()
    with open_hades(settings) as hades:
        root = root_of(settings.home)
        pointer = read_pointer(root)
        serving = root / pointer.snapshot if pointer else None
        suites = export_project(hades.build_context, folder, serving)

    rules = sum(suites.values())
    lines = (
        f"{rules} rules in {len(suites)} suites written to {folder}",
        f"run it: python {folder / 'check.py'}",
    )
    return Answer(
        {
            "folder": str(folder),
            "rules": rules,
            "suites": suites,
        },
        lines,
        is_report=True,
    )


@local_command("contracts try", "RO")
def try_contracts(
    file: Annotated[
        Path, argument("File of expectations, in the form of expectations.yaml.", "FILE")
    ],
    last: Annotated[
        int,
        option(
            "Number of newest snapshots to try them on.",
            min=1,
            max=100,
        ),
    ] = 10,
) -> Answer:
    """Try new expectations on the store and on the newest snapshots; they count when they stand in
    HADES_HOME.
    """
    settings = load_settings()
    with open_hades(settings) as hades:
        verdicts = try_rules(hades.store, settings.home, file, last)

    view = list_records(
        verdicts,
        "build created_at rule severity verdict broken rows observed",
    )
    return Answer({"verdicts": verdicts}, (view,))


def _log_progress(
    stage: str,
    done: int,
    total: int | None,
) -> None:
    logging.getLogger(__name__).debug(
        "%s: %s of %s",
        stage,
        done,
        total,
    )


_SHOWN = 3


@local_command("watch")
def run_watch(
    path: Annotated[Path, argument("Folder of documents or code.", "PATH")],
    kind: Annotated[
        Literal["auto", "documents", "workspace"],
        option("documents, workspace, or auto: workspace where there is code."),
    ] = "auto",
    quiet_seconds: Annotated[
        float,
        option(
            "Update when nothing has changed for this time.",
            min=0.1,
            max=600,
        ),
    ] = 1.0,
    once: Annotated[bool, option("Update once and stop.", "--once")] = False,
) -> Answer:
    """Keep a folder up to date: ingest, build and publish now and after each change, until Ctrl-C.

    A folder that was never read can be asked by its words within seconds; vectors and the graph
    follow.
    """
    if not path.is_dir():
        raise SourceError(f"{path} is not a folder; expected one to watch")

    if kind == "auto":
        source_kind = source_kind_of(path)
    else:
        source_kind = kind

    updates = 0
    failures = 0
    settings = load_settings()
    is_first = not served(settings.home)
    published_vectors = 0

    def publish_while_embedding(
        stage: str,
        done: int,
        total: int | None,
    ) -> None:
        """Of a folder that was never read, publish again each time twice as many vectors exist."""
        nonlocal published_vectors
        if bars is not None:
            bars(stage, done, total)

        is_first_update = is_first and not updates
        if not is_first_update or stage != Phase.EMBEDDINGS or done == total:
            return

        if done >= 2 * published_vectors:
            published_vectors = done
            hades.publish()

    def say_ready(seconds: float) -> None:
        is_by_words = is_first and not updates
        if is_by_words and not once:
            warm.enter_context(keep_warm(settings))

        if is_by_words:
            subject = "ready to be asked by words"
        else:
            subject = "what changed can be asked"

        if is_by_words:
            follows = "vectors and the graph follow"
        else:
            follows = "the graph follows"

        sys.stderr.write(f"{subject} after {seconds:.1f} s; {follows}\n")

    def update_graph() -> JsonObject:
        with hold_build("hades watch"):
            return hades.refresh_folder(path, source_kind, say_ready)

    with (
        show_progress() as bars,
        open_hades(settings, progress=publish_while_embedding) as hades,
        ExitStack() as warm,
        suppress(KeyboardInterrupt),
    ):
        if not (is_first or once):
            warm.enter_context(keep_warm(settings))

        for update in watch_folder(
            path,
            update_graph,
            quiet_seconds=quiet_seconds,
            ignored=hades.home,
        ):
            updates += 1
            failures += bool(update.problem)
            sys.stderr.write(_describe_update(update) + "\n")

            if once:
                if update.problem:
                    raise HadesError(update.problem)
                break

    plural = "" if updates == 1 else "s"
    summary = f"watched {path} as {source_kind}: {updates} update{plural}, {failures} failed"
    document = {
        "path": str(path),
        "kind": source_kind,
        "updates": updates,
        "failed": failures,
    }
    return Answer(document, (summary,))


def _describe_update(update: FolderUpdate) -> str:
    """What an update of a watched folder did, in a line."""
    changed = ", ".join(update.changed[:_SHOWN])
    if len(update.changed) > _SHOWN:
        changed += " ..."

    cause = f" after {changed}" if changed else ""
    if update.report is None:
        return f"not updated{cause}: {update.problem}"

    documents = update.report["documents"]
    counts = ", ".join(
        f"{documents[change]} {change}"
        for change in ("new", "changed", "removed")
        if documents[change]
    )
    outcome = counts or update.report.get("note", "nothing new")
    quarantined = ", ".join(
        f"{count} {reason}" for reason, count in update.report["quarantined"].items()
    )

    if quarantined:
        set_aside = f"; set aside: {quarantined} (`hades status` says why)"
    else:
        set_aside = ""

    return (
        f"updated in {update.seconds:.1f} s{cause}: {outcome}{set_aside}; snapshot "
        f"{update.report['snapshot']}"
    )


DATABASE = "graph.db"
FILE = "sqlite"
ROWS = "rows"


@local_command("backup", "RO")
def run_backup(
    target: Annotated[Path, argument("Folder to write; it must be empty.", "TARGET")],
    rows: Annotated[
        bool,
        option(
            "Write rows as Parquet, which any store can load; ArangoDB always does.",
            "--rows",
        ),
    ] = False,
    logs: Annotated[bool, option("Also the audit and alert logs.", "--logs")] = False,
    dated: Annotated[
        bool, option("Write to a folder inside TARGET named by the time.", "--dated")
    ] = False,
    keep: Annotated[
        int | None, option("With --dated: number of newest backups to keep.", min=1)
    ] = None,
) -> Answer:
    """Write the store, the snapshots, the registry and the reports to a folder, each file with its
    hash.

    Services may keep running. Caches are left out: they are rebuilt from content.
    """
    if keep is not None and not dated:
        raise typer.BadParameter("--keep counts dated backups; add --dated")

    settings = load_settings()
    at = utc_now()
    folder = backups.dated(target, at) if dated else target
    folder.parent.mkdir(parents=True, exist_ok=True)

    if rows or settings.store == "arango":
        write_store = _save_rows
    else:
        write_store = _save_file

    backup = backups.back_up(
        settings.home,
        folder,
        partial(write_store, settings),
        copy_as_of_now,
        at=at,
        hades=version("hades-graphrag"),
        logs=logs,
    )
    if dated and keep is not None:
        removed = backups.retain(target, keep)
    else:
        removed = []

    document = {
        "path": str(folder),
        **backup.as_dict(),
        "removed": removed,
    }
    size = backup.bytes / 1024**2
    if size < 1024:
        size_text = f"{size:,.1f} MiB"
    else:
        size_text = f"{size / 1024:,.1f} GiB"

    row_count = sum(backup.rows.values())
    snapshot_count = len(backup.snapshots)
    summary = f"{folder}: {row_count:,} rows, {snapshot_count} snapshots, {size_text}"
    return Answer(document, (summary, f"bring it back with: hades restore {folder}"))


@local_command("restore", "RW")
def run_restore(
    source: Annotated[Path, argument("Folder that `hades backup` wrote.", "SOURCE")],
    force: Annotated[
        bool,
        option(
            "Also where a graph exists: its parts are set aside, not deleted.",
            "--force",
        ),
    ] = False,
) -> Answer:
    """Restore HADES_HOME and the store from a backup; every file is checked before anything is
    changed.

    Stop the services of this home first.
    """
    settings = load_settings()
    backup = backups.verify(source)
    check = partial(_check_rows, settings, force)
    load = partial(_load_rows, settings)

    with hold_build("hades restore"):
        aside = backups.restore(
            source,
            backup,
            settings.home,
            check,
            load,
            at=utc_now(),
            force=force,
        )

    lines = [f"{settings.home} is as it was at {backup.at}; {backup.snapshot or 'nothing'} serves"]
    if aside is not None:
        lines.append(f"what stood there is in {aside}; delete it when you need it no more")

    lines.append("next: hades doctor --deep")
    document = {
        **backup.as_dict(),
        "home": str(settings.home),
        "set_aside": None if aside is None else str(aside),
    }
    return Answer(document, lines)


def _save_file(settings: Settings, folder: Path) -> tuple[str, Mapping[str, int]]:
    """The embedded store as its file, of one moment; counted in the copy, so that the count is the
    copy's.
    """
    if not store_file(settings).is_file():
        return FILE, {}

    copy_database(store_file(settings), folder / DATABASE)
    return FILE, rows_of(folder / DATABASE)


def _save_rows(settings: Settings, folder: Path) -> tuple[str, Mapping[str, int]]:
    """Any store as Parquet. The embedded one is copied first, so that all collections are of one
    moment.
    """
    if settings.store == "arango":
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            return ROWS, backups.export_one_state(store, folder)

    copy_database(store_file(settings), folder / DATABASE)
    with closing(open_store(settings.model_copy(update={"home": folder}), Mode.ADMIN)) as copy:
        copy.provision()
        counts = backups.export_rows(copy, folder)

    for file in folder.glob(f"{DATABASE}*"):
        file.unlink()

    return ROWS, counts


def _check_rows(
    settings: Settings,
    force: bool,
    kind: str,
    rows: Mapping[str, int],
) -> None:
    """Refuse what this version or this store cannot hold, and a store on a server that holds rows
    already.
    """
    if unknown := backups.unknown_collections(rows):
        raise BackupError(
            f"this version has no collections {', '.join(unknown)}; upgrade HADES, then try again"
        )

    if settings.store == "sqlite":
        return

    if kind == FILE:
        raise BackupError(
            "this backup holds the embedded store's file, which ArangoDB cannot read; restore it "
            "with HADES_STORE=sqlite, write `hades backup --rows`, and restore that one"
        )

    with closing(open_store(settings, Mode.ADMIN)) as store:
        store.provision()
        if not force and any(store.counts().values()):
            raise BackupError(
                "the store holds rows already; use --force to make it hold the backup's rows alone"
            )


def _load_rows(
    settings: Settings,
    kind: str,
    folder: Path,
    rows: Mapping[str, int],
) -> None:
    """Into the store of the settings: the file, brought to this version; or the rows, whatever
    store they came from.
    """
    if kind == FILE and rows:
        copy_database(folder / DATABASE, settings.home / DATABASE)

    with closing(open_store(settings, Mode.ADMIN)) as store:
        store.provision()
        if kind == ROWS:
            backups.import_rows(store, folder, rows)


@local_command("export", "RO")
def run_export(
    target: Annotated[Path, argument("Folder to write; it must be empty.", "TARGET")],
    form: Annotated[
        Literal["jsonl", "markdown"], option("JSON Lines for programs, Markdown for people.")
    ] = "jsonl",
    only: Annotated[Literal["all", "memory", "graph"], option("What is written.")] = "all",
) -> Answer:
    """Write memory and graph as text that other tools can read: one file for each collection,
    without loss.
    """
    settings = load_settings()
    with show_progress() as progress, closing(open_store(settings, Mode.READ_ONLY)) as store:
        document = export_text(
            store,
            target,
            form,
            only,
            at=utc_now(),
            hades=version("hades-graphrag"),
            progress=progress or silent,
        )

    collections = document["collections"]
    row_count = sum(collection["rows"] for collection in collections.values())
    summary = f"{target}: {row_count:,} rows of {len(collections)} collections as {form}"
    return Answer(
        {"path": str(target), **document},
        (summary, f"read it back with: hades import {target}"),
    )


@local_command("import", "RW")
def run_import(
    source: Annotated[Path, argument("Folder that `hades export` wrote.", "SOURCE")],
    seal: Annotated[
        bool,
        option(
            "Accept files that were edited: count and hash them again first.",
            "--seal",
        ),
    ] = False,
) -> Answer:
    """Write the rows of an export into the store; rows with the same key are replaced. Then run
    `hades publish`.

    Every file is checked against its hash before the first row is written.
    """
    if seal:
        seal_export(source)

    with (
        show_progress() as progress,
        hold_build("hades import"),
        closing(open_written_store(load_settings())) as store,
    ):
        counts = import_text(
            store,
            source,
            progress=progress or silent,
        )

    summary = f"{sum(counts.values()):,} rows of {len(counts)} collections are in the store"
    return Answer(
        {"source": str(source), "rows": counts},
        (summary, "next: hades publish"),
    )
