"""The report of a build: one page for people, one JSON file for `hades status`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.ports.store import RowStore, Term
from hades.reports.build_page import BuildFacts, Contract, Stage, TopicRow, write_build_report
from hades.reports.build_picture import draw_build
from hades.reports.charts import Move
from hades.stages.build_context import BuildContext, derivation
from hades.stages.forecast import REPORTS, newest_report
from hades.stages.night import NIGHT, STAGE_NAMES, stage_named

_MOVES = 24
_GONE = "a topic that is gone"


def write_reports(
    context: BuildContext, as_of: datetime, build: str, report: Mapping[str, Any], *, with_picture: bool = False
) -> Path:
    """Write the page and the JSON file of one build; where the page is.

    `with_picture` also draws a PNG beside it, for places that show no HTML; that loads matplotlib, a second.
    """
    before = newest_report(context.home)
    counts = {name: rows for name, rows in context.store.counts().items() if rows}
    seconds = {name: float(report[name]["took"]) for name in STAGE_NAMES if "took" in report.get(name, {})}
    seconds["contracts"] = round(sum(one["took"] for one in report["contracts"]), 3)
    facts = BuildFacts(
        build=build,
        as_of=as_of,
        snapshot_before=before.get("snapshot"),
        snapshot_after=report["released"]["snapshot"],
        stages=[_stage(name, report[name], seconds[name]) for name in seconds if name != "contracts"],
        topics=_topics(report["topics"], before.get("topics", {})),
        weights=report["weights"]["histograms"],
        weights_before=before.get("histograms", {}),
        moved=_moved(context.store, report["topics"], before.get("topic_names", {})),
        contracts=_contracts(report["contracts"]),
        counts=counts,
        counts_before=before.get("counts", {}),
    )
    folder = context.home / REPORTS
    page = write_build_report(folder / f"{build}.html", facts)
    if with_picture and (drawn := draw_build(facts)) is not None:
        page.with_suffix(".png").write_bytes(drawn)
    body = {
        "build": build,
        "as_of": as_of.isoformat(),
        "snapshot": facts.snapshot_after,
        "derived_from": derivation(context),
        "seconds": seconds,
        "skipped": [stage.name for stage in facts.stages if stage.skipped],
        "log": {stage.name: stage.sentence for stage in facts.stages},
        "contracts": [
            {"contract": one.contract, "rules": one.rules, "broken": list(one.broken), "note": one.note}
            for one in facts.contracts
        ],
        "model_calls": int(report["topics"].get("summaries_written", 0)),
        "embedded": report.get("embeddings", {}).get("embedded", 0),
        "counts": counts,
        "topics": {topic.name: topic.size for topic in facts.topics},
        "topic_names": topic_names(context.store),
        "histograms": report["weights"]["histograms"],
    }
    written = folder / f".{build}.json.new"
    written.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    written.replace(folder / f"{build}.json")
    return page


def build_name(began: datetime) -> str:
    """What a build's files are called; later ones sort last."""
    return f"nightly-{began:%Y%m%dT%H%M%S}"


def summary_lines(report: Mapping[str, Any]) -> list[str]:
    """One line per stage, for the terminal."""
    lines = [
        f"{stage.name:<11} {report[stage.name]['took']:7.1f} s  {stage.describe(report[stage.name])}"
        for stage in NIGHT
        if stage.name in report
    ]
    rules, rows, carried = (
        sum(one[name] for outcome in report["contracts"] for one in outcome["contracts"])
        for name in ("rules", "rows", "carried")
    )
    seconds = sum(one["took"] for one in report["contracts"])
    told = f"{rules} rules hold, {rows:,} rows checked, {carried:,} unchanged"
    lines.insert(-1, f"{'contracts':<11} {seconds:7.1f} s  {told}")
    return lines


def topic_names(store: RowStore) -> dict[str, str]:
    """The name of every topic by its key; the next build needs it for those that are gone by then."""
    return {
        row["_key"]: row["name"]
        for batch in store.scan("clusters", columns=["_key", "name"])
        for row in batch.to_pylist()
    }


def moves(store: RowStore, build: str, names_before: Mapping[str, str]) -> list[Move]:
    """Who went where in a build, summed by pair of topics, the largest first."""
    names = {**names_before, **topic_names(store)}
    where = [Term("build", "==", build), Term("prev_cluster_id", "not_null"), Term("cluster_id", "not_null")]
    columns = ["prev_cluster_id", "cluster_id"]
    pairs = Counter(
        (row["prev_cluster_id"], row["cluster_id"])
        for batch in store.scan("cluster_membership_journal", where=where, columns=columns)
        for row in batch.to_pylist()
    )
    heaviest = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:_MOVES]
    return [Move(names.get(old, _GONE), names.get(new, new), count) for (old, new), count in heaviest]


def _moved(store: RowStore, topics: Mapping[str, Any], names_before: Mapping[str, str]) -> list[Move]:
    return moves(store, topics["build"], names_before) if topics["mode"] != "skipped" else []


def _stage(name: str, report: Mapping[str, Any], seconds: float) -> Stage:
    skipped = bool(report.get("skipped")) or report.get("mode") == "skipped"
    return Stage(name, seconds, stage_named(name).describe(report), skipped)


def _topics(report: Mapping[str, Any], before: Mapping[str, int]) -> list[TopicRow]:
    return [TopicRow(one["name"], one["size"], before.get(one["name"])) for one in report["biggest"]]


def _contracts(outcomes: list[dict[str, Any]]) -> list[Contract]:
    return [
        Contract(
            one["contract"], one["rules"], [finding["rule"] for finding in one["findings"]], "; ".join(one["notes"])
        )
        for outcome in outcomes
        for one in outcome["contracts"]
    ]
