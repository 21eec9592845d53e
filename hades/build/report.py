"""The report of a build: one page for people, one JSON file for `hades status`, one run in the registry; exam pages."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

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
from hades.reports.page import WIDTH, Bar, bar_chart, escape, histogram, number, state_badge
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
    checked = [ContractResult.from_dict(one) for outcome in report["contracts"] for one in outcome["contracts"]]
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


class Run(BaseModel):
    """One nightly build as its report tells it. `skipped` are stages that had nothing to do.

    `log` holds a sentence for each stage, `contracts` the number of rules and the broken ones, `model_calls` the calls
    of a language model.
    """

    model_config = ConfigDict(frozen=True)

    build: str
    as_of: str
    snapshot: str
    seconds: dict[str, float]
    skipped: tuple[str, ...] = ()
    embedded: int | None = None
    log: dict[str, str] = {}
    contracts: tuple[dict[str, Any], ...] = ()
    model_calls: int = 0


def last_runs(home: Path, limit: int = 5) -> list[Run]:
    """The newest builds first; a report that cannot be read is passed over."""
    bodies = (_body(path) for path in sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit])
    return [Run.model_validate(body) for body in bodies if body]


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


# The page of one build: where the time went, topics by size, what moved, weights, and whether contracts held.


Move = tuple[str, str, int]  # from a topic, to a topic, how many entities
_COLUMN = 8  # topics in one chart


def write_build_page(
    path: Path, build: Report, before: Report, moves: Sequence[Move], standing: Sequence[Report] = ()
) -> Path:
    """Write the page of a build and say where it is; `before` is the report of the build before, or empty.

    `standing` are the answers of standing questions that changed.
    """
    served, serves = before.get("snapshot"), build["snapshot"]
    told = ", the first" if served is None else f" in place of <code>{escape(served)}</code>"
    told = ", unchanged" if served == serves else told
    lead = f"as of {escape(build['as_of'][:10])} · <code>{escape(serves)}</code> serves{told}"
    body = _sections(build, before, moves, standing)
    return page.write(path, f"Build {build['build']}", lead, body, "Written by HADES; nothing here is fetched.")


def _sections(build: Report, before: Report, moves: Sequence[Move], standing: Sequence[Report]) -> Iterator[str]:
    yield page.tiles(_headlines(build, moves))
    if standing:
        columns = ("question", "change", "before", "after", "cause")
        rows = [tuple(escape(row[name]) for name in columns) for row in standing]
        yield page.section("Standing questions", "answers that this build changed, and why", page.table(columns, rows))
    idle = dict.fromkeys(build["skipped"], "nothing to do: ")
    bars = [Bar(name, took, idle.get(name, "") + build["log"][name]) for name, took in _seconds(build).items()]
    chart = bar_chart("Stages", bars, None, WIDTH, page.seconds)
    yield page.section("Stages", "where the time went, and what for", chart)
    if build["exam"]["kinds"]:
        yield _exam(build["exam"])
    if build["topics"]:
        yield _topics(build["topics"], before.get("topics", {}))
    if moves:
        pairs = [(escape(source), escape(target), number(count)) for source, target, count in moves]
        moved = page.table(("from", "to", "entities"), pairs, numeric=(2,))
        yield page.section("What moved", "entities that changed their topic in this build, the most first", moved)
    yield _weights(build["histograms"], before.get("histograms", {}))
    yield f'<div class="two">{_counts(build, before)}{_contracts(build["contracts"], build["accepted"])}</div>'


def _headlines(build: Report, moves: Sequence[Move]) -> list[tuple[str, str, str]]:
    broken = sum(len(one["broken"]) for one in build["contracts"])
    rules = sum(one["rules"] for one in build["contracts"])
    return [
        (page.seconds(sum(_seconds(build).values())), f"in {len(_seconds(build))} stages", ""),
        (number(build["counts"].get("entities", 0)), "entities", ""),
        (number(build["counts"].get("relations", 0)), "relations", ""),
        (number(len(build["topics"])), "topics", ""),
        (number(sum(count for _, _, count in moves)), "entities moved", ""),
        (f"{broken} broken", "of the rules", "bad") if broken else (number(rules), "rules hold", "good"),
    ]


def _seconds(build: Report) -> dict[str, float]:
    return {name: seconds for name, seconds in build["seconds"].items() if name in build["log"]}


def _topics(topics: Mapping[str, int], before: Mapping[str, int]) -> str:
    ranked = sorted(topics.items(), key=lambda topic: (-topic[1], topic[0]))
    bars = [Bar(name, size, _change(size, before.get(name))) for name, size in ranked]
    charts = [
        bar_chart("Topics by size", bars[start : start + _COLUMN], largest=bars[0].value)
        for start in range(0, len(bars), _COLUMN)
    ]
    columns = f'<div class="two" style="margin-top:10px">{"".join(f"<div>{one}</div>" for one in charts)}</div>'
    return page.section("Topics by size", "entities in each, and the change since the build before", columns)


def _exam(exam: Report) -> str:
    """How many questions of each kind the corpus supplies, and what came of them where they were asked."""
    taken = exam["taken"]
    if taken is None:
        chart = bar_chart("Exam", [Bar(kind, count) for kind, count in exam["kinds"].items()], None, WIDTH)
        return page.section("Exam", "questions that the corpus supplies, by kind; hades exam asks them", chart)
    about = f"share found among the first five, by kind, when {taken['snapshot']} was asked; exam.html has the worst"
    return page.section("Exam", about, _kinds(taken))


def _kinds(taken: Report) -> str:
    bars = [Bar(kind, row["recall@5"], f"of {row['questions']:,}") for kind, row in taken["kinds"].items()]
    return bar_chart("Exam", bars, 1.0, WIDTH, "{:.0%}".format)


def write_exam_page(path: Path, taken: Report) -> Path:
    """Write the page of an exam that was asked and say where it is."""
    score = taken["score"]
    facts = [(f"{score[name]:.1%}", said, "") for name, said in (("recall@1", "found first"), ("recall@5", "in five"))]
    facts += [] if taken["auroc"] is None else [(f"{taken['auroc']:.2f}", "AUROC of the confidence", "")]
    worst = [(escape(one["kind"]), escape(one["question"]), escape(one["where"])) for one in taken["worst"]]
    body = [
        page.tiles([(number(taken["questions"]), "questions", ""), *facts]),
        page.section("By kind", "share found among the first five", _kinds(taken)),
        page.section("The worst questions", "", page.table(("kind", "question", "wanted"), worst)),
    ]
    return page.write(path, "Exam", f"<code>{escape(taken['snapshot'])}</code> was asked", body, "Written by HADES.")


def _change(now: int, before: int | None) -> str:
    return "new" if before is None else f"{now - before:+,}" if now != before else ""


def _weights(weights: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> str:
    charts = []
    for name in sorted(weights, key=lambda kind: (-sum(weights[kind]), kind)):
        total = f'<span class="soft count">{number(sum(weights[name]))}</span>'
        chart = histogram(f"Weights of {name}", weights[name], before.get(name))
        charts.append(f"<div><h3>{escape(name)} {total}</h3>{chart}</div>")
    about = "how heavy edges are, by type, from 0 to 1; the outline is the build before"
    return page.section("Weights", about, f'<div class="small">{"".join(charts)}</div>')


def _counts(build: Report, before: Report) -> str:
    rows = []
    for name, count in build["counts"].items():
        change = _change(count, before.get("counts", {}).get(name))
        tone = {"+": "up", "-": "down"}.get(change[:1], "soft")
        rows.append((escape(name), number(count), f'<span class="{tone}">{change or "·"}</span>'))
    table = page.table(("collection", "rows", "change"), rows, numeric=(1, 2))
    return page.section("Rows", "in the store, and what this build changed", table)


def _contracts(contracts: Sequence[Report], accepted: Sequence[str]) -> str:
    rows = [
        (
            escape(one["contract"]),
            str(one["rules"]),
            state_badge(len(one["broken"]), one["rules"]),
            "<br>".join(f"<code>{escape(rule)}</code>" for rule in one["broken"]) or escape(one["note"]),
        )
        for one in contracts
    ]
    table = page.table(("contract", "rules", "", ""), rows, numeric=(1,))
    about = "rules between the stages" + (f"; a person accepted {', '.join(accepted)}" if accepted else "")
    return page.section("Contracts", about, table)
