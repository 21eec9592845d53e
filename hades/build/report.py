"""The report of a build: one page for people, one JSON file for `hades status`, one run in the registry; exam pages."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hades import build_state
from hades.build.context import BuildContext, derivation, describe_datasets
from hades.build.contracts.check import write_page
from hades.build.contracts.rule import ContractResult
from hades.build.exam.stage import taken_exam
from hades.build.night import NIGHT, STAGE_NAMES, STAGES, run_here
from hades.build.registry import RANKER_MODEL, version_of
from hades.build.release.publish import MODELS
from hades.build.stage import TEXTS, Night, Report
from hades.build.standing import standing_rows
from hades.files import hold_lock, write_whole
from hades.ingest.forget import remove_documents
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import forget_derived
from hades.ports.services import DATA_HASH, Dataset, RunRecord
from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from hades.reports import page
from hades.reports.page import Bar
from hades.snapshot.manifest import root_of
from hades.snapshot.open import snapshots
from hades.snapshot.publish import adopt
from schemas.ids import iso

REPORTS = "reports"
_PATTERN = "nightly-*.json"
_MOVES = 14  # that are shown
_GONE = "a topic that is gone"
EXPERIMENT = "hades-nightly"


def build(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """A whole night in this process and its report; what each stage reported and how long it took."""
    if (past := build_if_past(context, night)) is not None:
        return past
    report = run_here(context, ingest, night)
    return {**report, "report": str(write_reports(context, night, report))}


# A past night: built from nothing beside the graph, of the documents as they were, and kept as a snapshot that does
# not serve. Rows of documents are copied, so that only texts that have changed since are embedded again.
_COPIED = (*TEXTS, "ingest_manifest", "sources", "extractions", "weight_config")
_COPIED_UNTIL = ("entity_edits", "query_logs")  # rows of what people did, with the time they did it


def build_if_past(context: BuildContext, night: Night) -> dict[str, Any] | None:
    """The night of a moment before the newest graph, its snapshot pinned; None for any other night."""
    newest = max((one.created_at for one in snapshots(context.home) if one.created_at), default=None)
    if context.open_past is None or not night.is_dated or newest is None or iso(night.as_of) >= newest:
        return None
    folder = context.home / "cache" / "past"
    with hold_lock(folder.with_suffix(".lock")):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with context.open_past(folder) as (past, ingest):
                copy_past_rows(context.store, past.store, night.as_of)
                report = build(past, ingest, replace(night, from_stage="sources", is_past=True))
            name = f"as-of-{night.as_of.astimezone(UTC):%Y%m%dT%H%M%S}"
            page = context.home / REPORTS / f"{name}.html"
            page.parent.mkdir(exist_ok=True)
            shutil.move(report["report"], page)
            adopt(context.home, Path(report["released"]["path"]), name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    kept = root_of(context.home) / report["released"]["snapshot"]
    return {**report, "released": {**report["released"], "path": str(kept), "kept_as": name}, "report": str(page)}


def copy_past_rows(store: GraphStore, past: GraphStore, as_of: datetime) -> None:
    """Copy what is read, not derived: documents, what was read of them, and what people corrected and asked by then."""
    for name in (*_COPIED, *_COPIED_UNTIL):
        past.upsert(name, store.scan(name, where=[Term("at", "<=", as_of)] if name in _COPIED_UNTIL else []))
    later = [batch.column("_key").to_pylist() for batch in past.scan("documents", where=[Term("created", ">", as_of)])]
    remove_documents(past, [key for keys in later for key in keys])
    forget_derived(past)


def write_reports(context: BuildContext, night: Night, report: Mapping[str, Any]) -> Path:
    """Write the page and the JSON file of one build and log its run; where the page is."""
    before = newest_report(context.home)
    told = [one for outcome in report["contracts"] for one in outcome["contracts"]]
    checked = TypeAdapter(list[ContractResult]).validate_python(told)
    body = _summarise(context, night, report, checked)
    folder = context.home / REPORTS
    write_page(checked, folder)
    moved = _moved(context.store, report["topics"], before.get("topic_names", {}))
    page = write_build_page(folder / f"{night.name}.html", body, before, moved, standing_rows(body["standing"]))
    written = write_whole(folder / f"{night.name}.json", json.dumps(body, indent=1, sort_keys=True) + "\n")
    _log_night(context, night, report, [page, written])
    return page


def _summarise(
    context: BuildContext, night: Night, report: Mapping[str, Any], checked: Sequence[ContractResult]
) -> dict[str, Any]:
    """What a build says of itself: to its page, to `hades status` and to the next build."""
    stages = {name: report[name] for name in STAGE_NAMES if "took" in report.get(name, {})}
    seconds = {name: float(one["took"]) for name, one in stages.items()}
    seconds["contracts"] = round(sum(one["took"] for one in report["contracts"]), 3)
    return {
        "build": night.name,
        "as_of": night.as_of.isoformat(),
        "snapshot": report["released"]["snapshot"],
        "derived_from": derivation(context),
        "seconds": seconds,
        "skipped": [name for name, one in stages.items() if one.get("skipped") or one.get("mode") == "skipped"],
        "log": {name: STAGES[name].describe(one) for name, one in stages.items()},
        "contracts": [
            {"contract": one.contract, "rules": one.rules, "broken": [finding.rule for finding in one.findings]}
            | {"note": "; ".join(one.notes), "rows": one.rows, "seconds": one.seconds, "engine": one.engine}
            for one in checked
        ],
        "accepted": report["released"]["accepted"],
        "model_calls": int(report["topics"].get("summaries_written", 0)),
        "embedded": report.get("embeddings", {}).get("embedded", 0),
        "counts": {name: rows for name, rows in context.store.counts().items() if rows},
        "topics": {one["name"]: one["size"] for one in report["topics"]["biggest"]},
        "topic_names": topic_names(context.store),
        "histograms": report["weights"]["histograms"],
        "standing": report["released"]["standing"],
        "exam": {"kinds": report.get("exam", {}).get("kinds", {}), "taken": taken_exam(context.home)},
    }


def _log_night(context: BuildContext, night: Night, report: Mapping[str, Any], artifacts: Sequence[Path]) -> None:
    """The run of the whole night in the registry with one for each stage; what was registered are its children."""
    tracker, snapshot, name = context.open_tracker(), report["released"]["snapshot"], night.name
    registered = {model: version_of(tracker, snapshot, model) for model in MODELS}
    registered[RANKER_MODEL] = report.get("ranker", {}).get("version")
    counts, digest = context.store.counts(), derivation(context)
    parts = []
    for stage, began in ((STAGES[name], began) for name, began in report["began"].items()):
        done = build_state.complete(context.store, stage.ledger) if stage.ledger else None
        read = describe_datasets(context, stage.reads, (done.digest if done is not None else "") or digest, counts)
        figures = stage.metrics(report[stage.name])
        times = [datetime.fromtimestamp(at, UTC) for at in (began, began + float(report[stage.name]["took"]))]
        parts.append(RunRecord(stage.name, metrics=figures, inputs=read, began=times[0], ended=times[1]))
    record = RunRecord(
        name,
        params={"as_of": night.as_of.isoformat(), "mode": night.mode, "keep": night.keep, "first": night.from_stage}
        | {"snapshot": snapshot}
        | {model: version for model, version in registered.items() if version is not None},
        metrics={f"{part.name}.{figure}": number for part in parts for figure, number in part.metrics.items()},
        artifacts=artifacts,
        tags={DATA_HASH: f"{name} {snapshot}"},
        began=datetime.fromtimestamp(night.began, UTC),
        inputs=[
            Dataset(one["source"], digest, one["path"], one["documents"]["read"])
            for one in report.get("sources", {}).get("sources", ())
        ],
        children=[
            one.run
            for model, version in registered.items()
            for one in tracker.versions(model)
            if one.version == version
        ],
        parts=parts,
    )
    tracker.log_run(EXPERIMENT, record)


def summary_lines(report: Mapping[str, Any]) -> list[str]:
    """One line per stage, for the terminal."""
    lines = [
        f"{stage.name:<11} {report[stage.name]['took']:7.1f} s  {stage.describe(report[stage.name])}"
        for stage in NIGHT
        if stage.name in report
    ]
    checked = [one for outcome in report["contracts"] for one in outcome["contracts"]]
    rules, rows = (sum(one[name] for one in checked) for name in ("rules", "rows"))
    engines = ", ".join(sorted({str(one["engine"]) for one in checked}))
    seconds = sum(one["took"] for one in report["contracts"])
    broken = sum(len(one["findings"]) for one in checked)
    held = f"{rules - broken} rules hold" + (f", {broken} broken and accepted by a person" if broken else "")
    lines.insert(-1, f"{'contracts':<11} {seconds:7.1f} s  {held}, {rows:,} rows checked by {engines}")
    return lines


def topic_names(store: RowStore) -> dict[str, str]:
    """The name of every topic by its key; the next build needs it for those that are gone by then."""
    return {row["_key"]: row["name"] for row in scan_rows(store, "clusters", columns=["_key", "name"])}


def _moved(store: RowStore, topics: Mapping[str, Any], names_before: Mapping[str, str]) -> list[Move]:
    """Who went where in a build, summed by pair of topics, the largest first."""
    if topics["mode"] == "skipped":
        return []
    names = {**names_before, **topic_names(store)}
    where = [Term("build", "==", topics["build"]), Term("prev_cluster_id", "not_null"), Term("cluster_id", "not_null")]
    columns = ["prev_cluster_id", "cluster_id"]
    pairs = Counter(
        (row["prev_cluster_id"], row["cluster_id"])
        for row in scan_rows(store, "cluster_membership_journal", where=where, columns=columns)
    )
    heaviest = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:_MOVES]
    return [(names.get(old, _GONE), names.get(new, new), count) for (old, new), count in heaviest]


# What `hades status` tells of a build, with what stands for a part that its report does not have.
_TOLD: Mapping[str, Any] = {
    "build": "", "as_of": "", "snapshot": "", "seconds": {}, "skipped": (), "embedded": None, "log": {},
    "contracts": (), "model_calls": 0,
}  # fmt: skip


def last_runs(home: Path, limit: int = 5) -> list[dict[str, Any]]:
    """The newest builds first; a report that cannot be read is passed over."""
    bodies = (_body(path) for path in sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit])
    return [{name: body.get(name, missing) for name, missing in _TOLD.items()} for body in bodies if body]


def newest_report(home: Path) -> dict[str, Any]:
    """Everything the last build wrote about itself; empty when there was none."""
    paths = sorted((home / REPORTS).glob(_PATTERN))
    return _body(paths[-1]) if paths else {}


def _body(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}
    return body if isinstance(body, dict) else {}


Move = tuple[str, str, int]  # from a topic, to a topic, how many entities


def write_build_page(
    path: Path, build: Report, before: Report, moves: Sequence[Move], standing: Sequence[Report] = ()
) -> Path:
    """Write the page of a build and say where it is; `before` is the report of the build before, or empty.

    `standing` are the answers of standing questions that changed.
    """
    idle = dict.fromkeys(build["skipped"], "nothing to do: ")
    ran = [(name, took, build["log"][name]) for name, took in build["seconds"].items() if name in build["log"]]
    was, sizes = before.get("counts", {}), before.get("topics", {})
    ranked = sorted(build["topics"].items(), key=lambda topic: (-topic[1], topic[0]))
    return page.write(
        path,
        "build.html",
        f"Build {build['build']}",
        build=build,
        before=before,
        moves=moves,
        standing=standing,
        stages=[Bar(name, took, idle.get(name, "") + told) for name, took, told in ran],
        supplied=[Bar(kind, count) for kind, count in build["exam"]["kinds"].items()],
        asked=_kinds(build["exam"]["taken"] or {}),
        topics=[Bar(name, size, _change(size, sizes.get(name))) for name, size in ranked],
        weights=sorted(build["histograms"].items(), key=lambda one: (-sum(one[1]), one[0])),
        counts=[(name, count, _change(count, was.get(name))) for name, count in build["counts"].items()],
    )


def write_exam_page(path: Path, taken: Report) -> Path:
    """Write the page of an exam that was asked and say where it is."""
    return page.write(path, "exam.html", "Exam", taken=taken, asked=_kinds(taken))


def _kinds(taken: Report) -> list[Bar]:
    return [Bar(kind, row["recall@5"], f"of {row['questions']:,}") for kind, row in taken.get("kinds", {}).items()]


def _change(now: int, before: int | None) -> str:
    return "new" if before is None else f"{now - before:+,}" if now != before else ""
