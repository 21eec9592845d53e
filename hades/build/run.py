"""Run the night; report; forecast."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from pydantic import ValidationError

from hades import build_state
from hades.build.context import BuildContext, derivation
from hades.build.contracts.check import ContractResult, check_contracts, write_page
from hades.build.night import NIGHT, STAGE_NAMES, Night, NightParameters, Stage, stage_named, stages_of
from hades.build.ranker.stage import RANKER_MODEL
from hades.build.topics.inputs import HierarchyRules
from hades.build.topics.wording import summary_prompt
from hades.build.weights.feedback import judge_digest
from hades.build.weights.versions import WEIGHTS_MODEL
from hades.errors import SettingsError
from hades.ingest import manifest
from hades.ingest.ingest import Ingest
from hades.ports.services import DATA_HASH, utc_now
from hades.ports.store import RowStore, Term
from hades.reports.build_page import BuildFacts, Contract, TopicRow, draw_build, write_build_report
from hades.reports.build_page import Stage as ReportedStage
from hades.reports.page import Move
from hades.telemetry.logs import StageRun, span

# What the paid models of a nightly build would be sent, and what that costs at the prices of the settings.


_MILLION = 1_000_000


@dataclass(frozen=True)
class PaidModels:
    """The models behind an endpoint and their prices for a million tokens; None where a price is not set.

    Without an endpoint both names are empty: the models of the installation run on this machine and cost nothing.
    """

    embedder: str = ""
    embedder_price: float | None = None
    writer: str = ""
    input_price: float | None = None
    output_price: float | None = None
    count_tokens: Callable[[str], int] = len


@dataclass(frozen=True)
class CostForecast:
    """Tokens to send and to receive, at most, and their price; None: a price that is needed is not set."""

    embedding_tokens: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = 0.0


def forecast_cost(store: RowStore, paid: PaidModels, *, is_embedding: bool, is_writing: bool) -> CostForecast:
    """Count the texts that have no vector, and the topics that the language model may have to summarise again.

    A topic whose quotes do not change is not sent again, so the summaries are an upper bound. Before the first build
    there are no topics to count.
    """
    embedded = _tokens_to_embed(store) if paid.embedder and is_embedding else 0
    prompts = _topic_prompts(store) if paid.writer and is_writing else []
    asked = sum(paid.count_tokens(prompt) for prompt in prompts)
    written = len(prompts) * HierarchyRules().summary_tokens
    parts = ((embedded, paid.embedder_price), (asked, paid.input_price), (written, paid.output_price))
    return CostForecast(embedded, len(prompts), asked, written, _price(parts))


def _tokens_to_embed(store: RowStore) -> int:
    waiting = [Term("embedding_model", "is_null")]
    return sum(
        tokens or 0
        for batch in store.scan("doc_chunks", where=waiting, columns=["token_count"])
        for tokens in batch.column("token_count").to_pylist()
    )


def _topic_prompts(store: RowStore) -> list[str]:
    """What the language model would be asked about the topics as they are now."""
    prompts = []
    for batch in store.scan("clusters", columns=["name", "metadata"]):
        for row in batch.to_pylist():
            facts = orjson.loads(row["metadata"])
            if facts["evidence"]:
                prompts.append(summary_prompt(row["name"], facts["terms"], [one["text"] for one in facts["evidence"]]))
    return prompts


def _price(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [(tokens, price) for tokens, price in parts if tokens]
    if any(price is None for _, price in known):
        return None
    return round(sum(tokens * (price or 0.0) for tokens, price in known) / _MILLION, 6)


# What a nightly build would do now, how long it would take and what it would cost, and what the last ones did.


REPORTS = "reports"
_PATTERN = "nightly-*.json"
_ALWAYS = ("contracts", "released")
_RUNS = 10  # builds whose durations the forecast takes the median of


@dataclass(frozen=True)
class Run:
    """One nightly build as its report tells it. `skipped` are stages that had nothing to do.

    `log` holds a sentence for each stage, `contracts` the number of rules and the broken ones, `model_calls` the calls
    of a language model.
    """

    build: str
    as_of: str
    snapshot: str
    seconds: dict[str, float]
    skipped: tuple[str, ...] = ()
    embedded: int | None = None
    log: dict[str, str] = field(default_factory=dict)
    contracts: tuple[dict[str, Any], ...] = ()
    model_calls: int = 0


@dataclass(frozen=True)
class Forecast:
    """Stages that a nightly build has work for, with the seconds each will take; None: never measured.

    `learned` is what the last weighing learned from judged answers (`LearningReport`). `runs` is the number of earlier
    builds that the seconds come from.
    """

    stages: dict[str, float | None]
    chunks_to_embed: int
    sources: int
    learned: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    cost: CostForecast = field(default_factory=CostForecast)

    @property
    def seconds(self) -> float:
        """The sum over the stages that were measured before."""
        return round(sum(value for value in self.stages.values() if value), 1)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "seconds": self.seconds}


def last_runs(home: Path, limit: int = 5) -> list[Run]:
    """The newest builds first; a report that cannot be read is passed over."""
    bodies = (_body(path) for path in sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit])
    return [
        Run(
            body["build"],
            body["as_of"],
            body["snapshot"],
            body["seconds"],
            tuple(body.get("skipped", ())),
            body.get("embedded"),
            body.get("log", {}),
            tuple(body.get("contracts", ())),
            body.get("model_calls", 0),
        )
        for body in bodies
        if body
    ]


def newest_report(home: Path) -> dict[str, Any]:
    """Everything the last build wrote about itself; empty when there was none."""
    paths = sorted((home / REPORTS).glob(_PATTERN))
    return _body(paths[-1]) if paths else {}


def forecast_build(store: RowStore, home: Path, paid: PaidModels = PaidModels()) -> Forecast:
    """Read the store's own marks and the last reports; nothing is computed."""
    before = newest_report(home)
    missing = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
    sources = store.count("sources")
    weighed = build_state.complete(store, build_state.WEIGHTS)
    learned = weighed.report.get("learned", {}) if weighed is not None else {}
    digest = manifest.derive_digest(store)
    changed = {
        "sources": bool(sources),
        "embeddings": bool(missing),
        "edges": digest is None or digest != before.get("derived_from") or weighed is None,
        "weights": learned.get("judged") != judge_digest(store),
    }
    stale = _stale_stages(changed)
    runs = last_runs(home, _RUNS)
    seconds = {name: forecast_seconds(name, runs, missing) for name in (*stale, *_ALWAYS)}
    cost = forecast_cost(store, paid, is_embedding=bool(missing), is_writing="topics" in stale)
    return Forecast(seconds, missing, sources, learned, len(runs), cost)


def forecast_seconds(stage: str, runs: Sequence[Run], chunks: int) -> float | None:
    """The median over earlier builds in which the stage had work; embedding by the chunk. None: never measured."""
    if stage == "embeddings":
        rates = [run.seconds[stage] / run.embedded for run in runs if run.embedded and stage in run.seconds]
        return round(median(rates) * chunks, 1) if rates else None
    known = [run.seconds[stage] for run in runs if stage in run.seconds and stage not in run.skipped]
    return round(median(known), 1) if known else None


def _stale_stages(changed: Mapping[str, bool]) -> list[str]:
    """Stages whose own input changed, and those that need one of them, in the order of the night."""
    stale: list[str] = []
    for stage in NIGHT:
        if changed.get(stage.name) or any(name in stale for name in stage.needs):
            stale.append(stage.name)
    return stale


def _body(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}
    return body if isinstance(body, dict) else {}


# The report of a build: one page for people, one JSON file for `hades status`.


_MOVES = 24
_GONE = "a topic that is gone"
EXPERIMENT = "hades-nightly"


def write_reports(
    context: BuildContext, night: Night, report: Mapping[str, Any], *, with_picture: bool = False
) -> Path:
    """Write the page and the JSON file of one build and log its run; where the page is.

    `with_picture` also draws a PNG beside it, for places that show no HTML; that loads matplotlib, a second.
    """
    as_of, build = night.as_of, build_name(night)
    before = newest_report(context.home)
    counts = {name: rows for name, rows in context.store.counts().items() if rows}
    seconds = {name: float(report[name]["took"]) for name in STAGE_NAMES if "took" in report.get(name, {})}
    seconds["contracts"] = round(sum(one["took"] for one in report["contracts"]), 3)
    checked = [ContractResult.from_dict(one) for outcome in report["contracts"] for one in outcome["contracts"]]
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
        contracts=[
            Contract(one.contract, one.rules, [finding.rule for finding in one.findings], "; ".join(one.notes))
            for one in checked
        ],
        counts=counts,
        counts_before=before.get("counts", {}),
    )
    folder = context.home / REPORTS
    write_page(checked, folder)
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
            {"contract": one.contract, "rules": one.rules, "broken": [finding.rule for finding in one.findings]}
            | {"note": "; ".join(one.notes), "rows": one.rows, "seconds": one.seconds, "engine": one.engine}
            for one in checked
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
    _log_night(context, night, report, [page, folder / f"{build}.json"])
    return page


def build_name(night: Night) -> str:
    """What a build's files and its run are called; later ones sort last."""
    return f"nightly-{datetime.fromtimestamp(night.began, UTC):%Y%m%dT%H%M%S}"


def _log_night(context: BuildContext, night: Night, report: Mapping[str, Any], artifacts: Sequence[Path]) -> None:
    """The run of the whole night in the registry; what its stages registered are its children."""
    tracker, released = context.open_tracker(), report["released"]
    registered = {WEIGHTS_MODEL: released["weights_version"], RANKER_MODEL: report.get("ranker", {}).get("version")}
    name = build_name(night)
    tracker.log_run(
        EXPERIMENT,
        name,
        params={"as_of": night.as_of.isoformat(), "mode": night.mode, "keep": night.keep, "first": night.from_stage}
        | {"snapshot": released["snapshot"]}
        | {model: version for model, version in registered.items() if version is not None},
        metrics={
            f"{stage}.{figure}": number
            for stage in STAGE_NAMES
            for figure, number in _numbers(report.get(stage, {})).items()
        },
        artifacts=artifacts,
        tags={DATA_HASH: f"{name} {released['snapshot']}"},
        began=datetime.fromtimestamp(night.began, UTC),
        children=[
            one.run
            for model, version in registered.items()
            for one in tracker.versions(model)
            if one.version == version
        ],
    )


def _numbers(report: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a stage's report by their path in it."""
    found: dict[str, float] = {}
    for name, value in report.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": number for inner, number in _numbers(value).items()}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = float(value)
    return found


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
    lines.insert(-1, f"{'contracts':<11} {seconds:7.1f} s  {rules} rules hold, {rows:,} rows checked by {engines}")
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


def _stage(name: str, report: Mapping[str, Any], seconds: float) -> ReportedStage:
    skipped = bool(report.get("skipped")) or report.get("mode") == "skipped"
    return ReportedStage(name, seconds, stage_named(name).describe(report), skipped)


def _topics(report: Mapping[str, Any], before: Mapping[str, int]) -> list[TopicRow]:
    return [TopicRow(one["name"], one["size"], before.get(one["name"])) for one in report["biggest"]]


# One stage of a build with its lineage: what a flow's task and a build without a server both call.


_TEXTS = ("documents", "papers_raw", "files", "funcs", "doc_chunks")
_EDGES = ("entities", "mentions", "relations", "references", "contains", "imports", "chunk_code_edges")
_TOPICS = ("clusters", "cluster_edges", "cluster_membership_journal")
DATASETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sources": (("sources",), (*_TEXTS, "ingest_manifest", "quarantine")),
    "embeddings": (("doc_chunks",), ("doc_chunks",)),
    "edges": (_TEXTS, _EDGES),
    "topics": (("doc_chunks", *_EDGES), _TOPICS),
    "weights": ((*_EDGES, "query_logs"), ("mentions", "relations", "weight_config")),
    "bridges": ((*_TOPICS, *_EDGES), ("bridge_cache",)),
    "ranker": (("query_logs", *_EDGES), ("ranker",)),
    "released": ((*_TEXTS, *_EDGES, *_TOPICS, "bridge_cache"), ("snapshot",)),
}


def run_stage(stage: Stage, context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Run the stage; lineage is told when it starts and how it ends."""
    run = lineage_of(stage.name, context, night)
    context.emit_lineage(run.event("START", utc_now()))
    try:
        report = stage.run(context, ingest, night)
    except BaseException as error:
        context.emit_lineage(run.event("FAIL", utc_now(), f"{type(error).__name__}: {error}"))
        raise
    context.emit_lineage(run.event("COMPLETE", utc_now()))
    return report


def lineage_of(name: str, context: BuildContext, night: Night) -> StageRun:
    """The run of a stage as lineage names it."""
    inputs, outputs = DATASETS[name]
    return StageRun(f"hades:{context.home.resolve()}", build_name(night), name, inputs, outputs)


def tell_stage(name: str, context: BuildContext, night: Night) -> None:
    """Tell lineage of a stage that ran as several tasks, when it is done."""
    run = lineage_of(name, context, night)
    for kind in ("START", "COMPLETE"):
        context.emit_lineage(run.event(kind, utc_now()))


# The whole night in one call, for a notebook or a script: the same stages, contracts and release as the flow.


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
    report["report"] = str(write_reports(context, night, report))
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
