"""The report of a build: one page for people, one JSON file for `hades status`, one run in the
registry; exam pages.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from hades import stage_ledger
from hades.files import hold_lock, write_whole
from hades.ingest.forget import remove_documents
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import derive_digest, forget_derived
from hades.night.context import BuildContext, derivation, describe_datasets
from hades.night.contracts.check import rules_accepted, write_page
from hades.night.contracts.rule import ContractResult
from hades.night.exam.stage import taken_exam
from hades.night.model_versions import RANKER_MODEL, version_of
from hades.night.night_log import REPORTS, SECOND_CHARACTERS, write_stopped
from hades.night.release.publish import MODELS, warn_not_registered
from hades.night.retention import NIGHTS, trim_nights
from hades.night.stage import TEXTS, Night, Report, Rows
from hades.night.stages import NIGHT, STAGE_NAMES, STAGES, run_here
from hades.night.standing import standing_rows
from hades.ports.services import (
    DATA_HASH,
    Dataset,
    RunRecord,
    RunStatus,
    TrackingError,
    utc_now,
)
from hades.ports.store import GraphStore, RowStore, Term, scan_rows, scan_values
from hades.reports import page
from hades.reports.page import Bar
from hades.snapshot.pointer import PAST_NIGHT, root_of, snapshots
from hades.snapshot.publish import adopt
from schemas.ids import iso
from schemas.record import JsonObject

_PATTERN = "nightly-*.json"
_MOVES = 14  # that are shown
_GONE = "a topic that is gone"


def build(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
) -> JsonObject:
    """A whole night in this process and its report; what each stage reported and how long it
    took.
    """
    if (past := build_if_past(context, night)) is not None:
        return past

    report = run_here(
        context,
        ingest,
        night,
        partial(log_stopped_night, context, night),
    )
    return {
        **report,
        "report": str(write_reports(context, night, report)),
    }


# A past night: built from nothing beside the graph, of the documents as they were, and kept as a
# snapshot that does not serve. Rows of documents are copied, so that only texts that have changed
# since are embedded again.
_COPIED = (*TEXTS, "ingest_manifest", "sources", "extractions", "weight_config")
_COPIED_UNTIL = ("entity_edits", "query_logs")  # rows of what people did, with the time they did it


def build_if_past(context: BuildContext, night: Night) -> JsonObject | None:
    """The night of a moment before the newest graph, its snapshot pinned; None for any other
    night.
    """
    newest = max((snapshot.created_at or "" for snapshot in snapshots(context.home)), default="")
    if context.open_past is None or not night.is_dated or iso(night.as_of) >= newest:
        return None

    folder = context.home / "cache" / "past"
    with hold_lock(folder.with_suffix(".lock")):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with context.open_past(folder) as (past, ingest):
                copy_past_rows(
                    context.store,
                    past.store,
                    night.as_of,
                )
                report = build(
                    past,
                    ingest,
                    replace(
                        night,
                        from_stage="sources",
                        is_past=True,
                    ),
                )

            name = f"{PAST_NIGHT}{night.as_of.astimezone(UTC):%Y%m%dT%H%M%S}"
            page = context.home / REPORTS / f"{name}.html"
            page.parent.mkdir(exist_ok=True)
            shutil.move(report["report"], page)
            adopt(
                context.home,
                Path(report["released"]["path"]),
                name,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    snapshot_folder = root_of(context.home) / report["released"]["snapshot"]
    return {
        **report,
        "released": {
            **report["released"],
            "path": str(snapshot_folder),
            "kept_as": name,
        },
        "report": str(page),
    }


def copy_past_rows(
    store: GraphStore,
    past: GraphStore,
    as_of: datetime,
) -> None:
    """Copy what is read, not derived: documents, what was read of them, and what people corrected
    and asked by then.
    """
    for name in _COPIED:
        past.upsert(name, store.scan(name))

    for name in _COPIED_UNTIL:
        past.upsert(name, store.scan(name, where=[Term("at", "<=", as_of)]))

    later = [Term("created", ">", as_of)]
    remove_documents(
        past,
        list(scan_values(past, "documents", "_key", where=later)),
    )
    forget_derived(past)


def write_reports(
    context: BuildContext,
    night: Night,
    report: Report,
) -> Path:
    """Write the page and the JSON file of one build and log its run; where the page is.

    The graph is published by now. A registry that fails here costs the night its run there: the
    JSON file, the log and an alert say so, and the night is a good one.
    """
    previous = newest_report(context.home)
    checked = TypeAdapter(list[ContractResult]).validate_python(_results(report))
    body = _summarise(
        context,
        night,
        report,
        checked,
        previous,
    )
    folder = context.home / REPORTS
    write_page(checked, folder)
    moves: list[Move] = []

    if "topics" in report:
        moves = _moved(
            context.store,
            report["topics"],
            previous.get("topic_names", {}),
        )

    page = write_build_page(
        folder / f"{night.name}.html",
        body,
        previous,
        moves,
        standing_rows(body["standing"]),
    )
    body["not_registered"] = report["released"]["not_registered"]
    written = _write_body(folder, night, body)

    try:
        _log_night(context, night, report, [page, written])
        trim_nights(context)
    except TrackingError as error:
        body["not_registered"] = warn_not_registered(
            context,
            f"the run of {night.name}",
            error,
        )
        _write_body(folder, night, body)

    return page


def _results(report: Report) -> Rows:
    """The result of every contract that was checked, in order."""
    return list(chain.from_iterable(outcome["contracts"] for outcome in report["contracts"]))


def _write_body(folder: Path, night: Night, body: Report) -> Path:
    text = json.dumps(body, indent=1, sort_keys=True) + "\n"
    return write_whole(folder / f"{night.name}.json", text)


def _summarise(
    context: BuildContext,
    night: Night,
    report: Report,
    checked: Sequence[ContractResult],
    previous: Report,
) -> JsonObject:
    """What a build says of itself: to its page, to `hades status` and to the next build.

    A stage that the build left out still stands as the build before said.
    """
    topics = previous.get("topics", {})
    histograms = previous.get("histograms", {})
    built = report.get("topics", {})
    released = report["released"]

    if built:
        topics = {}
        for topic in built["biggest"]:
            topics[topic["name"]] = topic["size"]

    if "weights" in report:
        histograms = report["weights"]["histograms"]

    seconds: dict[str, float] = {}
    skipped: list[str] = []

    log: dict[str, str] = {}
    for name in STAGE_NAMES:
        stage_report = report.get(name, {})
        if "took" in stage_report:
            seconds[name] = float(stage_report["took"])
            log[name] = STAGES[name].describe(stage_report)
            if stage_report.get("skipped") or stage_report.get("mode") == "skipped":
                skipped.append(name)

    seconds["contracts"] = round(sum(check["took"] for check in report["contracts"]), 3)
    exam_kinds = report.get("exam", {}).get("kinds", {})
    return {
        "build": night.name,
        "began": iso(datetime.fromtimestamp(night.began, UTC)),
        "as_of": night.as_of.isoformat(),
        "snapshot": released["snapshot"],
        "derived_from": derivation(context),
        "seconds": seconds,
        "skipped": skipped,
        "log": log,
        "contracts": list(map(_summarise_contract, checked)),
        "accepted": released["accepted"],
        "model_calls": int(built.get("summaries_written", 0)),
        "embedded": report.get("embeddings", {}).get("embedded", 0),
        "counts": {name: rows for name, rows in context.store.counts().items() if rows},
        "topics": topics,
        "topic_names": topic_names(context.store),
        "histograms": histograms,
        "standing": released["standing"],
        "exam": {
            "kinds": exam_kinds,
            "taken": taken_exam(context.home),
        },
    }


def _summarise_contract(result: ContractResult) -> JsonObject:
    return {
        "contract": result.contract,
        "rules": result.rules,
        "broken": [finding.rule for finding in result.findings],
        "note": "; ".join(result.notes),
        "rows": result.rows,
        "seconds": result.seconds,
        "engine": result.engine,
    }


def _log_night(
    context: BuildContext,
    night: Night,
    report: Report,
    artifacts: Sequence[Path],
) -> None:
    """The run of the whole night in the registry with one for each stage; what was registered are
    its children.
    """
    tracker = context.open_tracker()
    snapshot = report["released"]["snapshot"]

    registered = {}
    for model in MODELS:
        registered[model] = version_of(tracker, snapshot, model)

    registered[RANKER_MODEL] = report.get("ranker", {}).get("version")
    served_versions = {}
    for model, version in registered.items():
        if version:
            served_versions[model] = version

    digest = derivation(context)
    record = _night_record(night, _stage_records(context, report, digest))

    corpora = []
    for corpus in report.get("sources", {}).get("sources", ()):
        read = corpus["documents"]["read"]
        corpora.append(
            Dataset(
                corpus["source"],
                digest,
                corpus["path"],
                read,
            )
        )

    versions = []
    for model, version in served_versions.items():
        versions.append(tracker.known(model, version))

    complete = replace(
        record,
        params={
            **record.params,
            "snapshot": snapshot,
            **served_versions,
        },
        tags={DATA_HASH: f"{night.name} {snapshot}"},
        artifacts=artifacts,
        inputs=corpora,
        children=[version.run for version in versions],
    )
    tracker.log_run(NIGHTS, complete)


def log_stopped_night(
    context: BuildContext,
    night: Night,
    report: Report,
    error: BaseException,
) -> None:
    """The run of a night that an error or a person ended: when it worked, and the stages that
    completed; `hades log` shows it.
    """
    write_stopped(context.home, night, report, error)
    if isinstance(error, Exception):
        status: RunStatus = "FAILED"
    else:
        status = "KILLED"

    now = utc_now()
    stages = _stage_records(
        context,
        report,
        derive_digest(context.store) or "",
    )
    for name, began in report["began"].items():
        if name not in report:
            moment = datetime.fromtimestamp(began, UTC)
            stages.append(
                RunRecord(
                    name,
                    began=moment,
                    ended=now,
                    status=status,
                )
            )

    reason = f"{type(error).__name__}: {error}"
    record = replace(
        _night_record(night, stages),
        tags={
            DATA_HASH: f"{night.name} {status}",
            "stopped": reason,
        },
        ended=now,
        status=status,
    )
    context.open_tracker().log_run(NIGHTS, record)


def _stage_records(
    context: BuildContext,
    report: Report,
    digest: str,
) -> list[RunRecord]:
    """A run for each stage that completed: its times, its figures and what it read."""
    counts = context.store.counts()

    records = []
    for name, began in report["began"].items():
        if name not in report:  # it was stopped
            continue

        stage = STAGES[name]
        ended = began + report[name]["took"]
        if stage.ledger:
            done = stage_ledger.last_completion(context.store, stage.ledger)
        else:
            done = None

        if done is not None and done.digest:
            stage_digest = done.digest
        else:
            stage_digest = digest

        record = RunRecord(
            name,
            metrics=stage.metrics(report[name]),
            inputs=describe_datasets(
                context,
                stage.reads,
                stage_digest,
                counts,
            ),
            began=datetime.fromtimestamp(began, UTC),
            ended=datetime.fromtimestamp(ended, UTC),
        )
        records.append(record)

    return records


def _night_record(night: Night, stages: Sequence[RunRecord]) -> RunRecord:
    """The run of a night as far as its parameters and its stages go."""
    figures: dict[str, float] = {}
    for stage in stages:
        for figure, number in stage.metrics.items():
            figures[f"{stage.name}.{figure}"] = number

    params = {
        "as_of": night.as_of.isoformat(),
        "mode": night.mode,
        "keep": night.keep,
        "first": night.from_stage,
    }
    began = datetime.fromtimestamp(night.began, UTC)
    return RunRecord(
        night.name,
        params,
        figures,
        began=began,
        parts=stages,
    )


def summary_lines(report: Report) -> list[str]:
    """One line per stage, for the terminal."""
    lines = []
    for stage in NIGHT:
        if stage.name in report:
            took = report[stage.name]["took"]
            log = stage.describe(report[stage.name])
            lines.append(f"{stage.name:<11} {took:7.1f} s  {log}")

    results = _results(report)
    rows = sum(result["rows"] for result in results)
    rules = set(chain.from_iterable(result["rule_ids"] for result in results))
    broken = set(rules_accepted({"contracts": results}))
    engines = ", ".join(sorted({str(result["engine"]) for result in results}))
    seconds = sum(outcome["took"] for outcome in report["contracts"])
    verdict = f"{len(rules) - len(broken)} rules hold"

    if broken:
        verdict += f", {len(broken)} broken and accepted by a person"

    checked = f"{'contracts':<11} {seconds:7.1f} s  {verdict}, {rows:,} rows checked by {engines}"
    lines.insert(-1, checked)
    return lines


def topic_names(store: RowStore) -> dict[str, str]:
    """The name of every topic by its key; the next build needs it for those that are gone by
    then.
    """
    rows = scan_rows(
        store,
        "clusters",
        columns=["_key", "name"],
    )
    return {row["_key"]: row["name"] for row in rows}


def _moved(
    store: RowStore,
    topics: Report,
    names_before: Mapping[str, str],
) -> list[Move]:
    """Who went where in a build, summed by pair of topics, the largest first."""
    if topics["mode"] == "skipped":
        return []

    names = {**names_before, **topic_names(store)}
    where = [
        Term("build", "==", topics["build"]),
        Term("prev_cluster_id", "not_null"),
        Term("cluster_id", "not_null"),
    ]
    columns = ["prev_cluster_id", "cluster_id"]
    rows = scan_rows(
        store,
        "cluster_membership_journal",
        where=where,
        columns=columns,
    )
    pairs = Counter((row["prev_cluster_id"], row["cluster_id"]) for row in rows)

    moves = []
    for old, new in sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:_MOVES]:
        moves.append((names.get(old, _GONE), names.get(new, new), pairs[old, new]))

    return moves


# What `hades status` shows of a build, with what stands for a part that its report does not have.
_STATUS: Report = {
    "build": "",
    "as_of": "",
    "snapshot": "",
    "seconds": {},
    "skipped": (),
    "embedded": None,
    "log": {},
    "contracts": (),
    "model_calls": 0,
    "not_registered": "",
}


def last_runs(home: Path, limit: int = 5) -> Rows:
    """The newest builds first; a report that cannot be read is passed over."""
    paths = sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit]
    return [_status(body) for body in map(_body, paths) if body]


def snapshot_of_night(home: Path, name: str) -> str:
    """The snapshot of a night by its name, or its name to the second (`nightly-20260131T020000`);
    empty where no report has it.
    """
    paths = sorted((home / REPORTS).glob(_PATTERN))

    named = []
    for path in paths:
        if name in (path.stem, path.stem[:SECOND_CHARACTERS]):
            named.append(path)

    if named:
        return str(_status(_body(named[-1]))["snapshot"])

    return ""


def _status(body: Report) -> JsonObject:
    status = {}
    for name, missing in _STATUS.items():
        status[name] = body.get(name, missing)

    return status


def newest_report(home: Path) -> JsonObject:
    """Everything the last build wrote about itself; empty when there was none."""
    paths = sorted((home / REPORTS).glob(_PATTERN))
    return _body(paths[-1]) if paths else {}


def _body(path: Path) -> JsonObject:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}

    return body if isinstance(body, dict) else {}


Move = tuple[str, str, int]  # from a topic, to a topic, how many entities


def write_build_page(
    path: Path,
    build: Report,
    previous: Report,
    moves: Sequence[Move],
    standing: Sequence[Report] = (),
) -> Path:
    """Write the page of a build and say where it is; `previous` is the report of the build before,
    or empty.

    `standing` are the answers of standing questions that changed.
    """
    stages = []
    for name, log in build["log"].items():
        idle = "nothing to do: " if name in build["skipped"] else ""
        stages.append(Bar(name, build["seconds"][name], idle + log))

    topics = []
    sizes = previous.get("topics", {})
    for name, size in sorted(
        build["topics"].items(),
        key=lambda topic: (-topic[1], topic[0]),
    ):
        topics.append(Bar(name, size, _change(size, sizes.get(name))))

    counts = []
    former_counts = previous.get("counts", {})
    for name, count in build["counts"].items():
        counts.append((name, count, _change(count, former_counts.get(name))))

    histograms = build["histograms"].items()
    return page.write(
        path,
        "build.html",
        f"Build {build['build']}",
        build=build,
        before=previous,
        moves=moves,
        standing=standing,
        stages=stages,
        supplied=[Bar(kind, count) for kind, count in build["exam"]["kinds"].items()],
        exam_bars=_kinds(build["exam"]["taken"] or {}),
        topics=topics,
        weights=sorted(histograms, key=lambda entry: (-sum(entry[1]), entry[0])),
        counts=counts,
    )


def write_exam_page(path: Path, exam: Report) -> Path:
    """Write the page of an exam that was asked and say where it is."""
    return page.write(
        path,
        "exam.html",
        "Exam",
        exam=exam,
        bars=_kinds(exam),
    )


def _kinds(exam: Report) -> list[Bar]:
    bars = []
    for kind, row in exam.get("kinds", {}).items():
        bars.append(
            Bar(
                kind,
                row["recall@5"],
                f"of {row['questions']:,}",
            )
        )

    return bars


def _change(now: int, previous: int | None) -> str:
    if previous is None:
        return "new"
    return f"{now - previous:+,}" if now != previous else ""
