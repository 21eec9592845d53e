"""The night: one ordered list of stages, read by the flow, the library, the forecast and the report."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from hades.build.bridges import stage as bridges
from hades.build.context import BuildContext, describe_datasets
from hades.build.contracts.check import (
    CHUNK_VECTORS,
    CONTRACT_NAMES,
    Outcome,
    check_contracts,
    contract_of,
    rules_accepted,
)
from hades.build.contracts.rule import Rule
from hades.build.exam import stage as exam
from hades.build.ranker import stage as ranker
from hades.build.release import publish
from hades.build.stage import EDGES, TEXTS, Night, Report, Stage
from hades.build.topics import stage as topics
from hades.build.weights import stage as weights
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.memory.upkeep.maintain import reembed_states
from hades.ports.services import Dataset, utc_now
from hades.telemetry.logs import span


def _read_sources(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    read = ingest.again(night.sources, (Phase.NODES, Phase.CHUNKS), night.as_of if night.is_past else None)
    documents: Counter[str] = Counter()
    for one in read:
        documents.update(one["documents"])
    return {"sources": read, "documents": dict(documents), "chunks": sum(one["chunks"] for one in read)}


def _describe_sources(report: Report) -> str:
    counts = [f"{one['documents']['new']} new, {one['documents']['changed']} changed" for one in report["sources"]]
    return "; ".join(counts) or "nothing to read"


SOURCES = Stage(
    "sources",
    "read sources",
    _read_sources,
    _describe_sources,
    reads=("sources",),
    writes=(*TEXTS, "ingest_manifest", "quarantine"),
    contracts=("nodes", "chunks"),
    figures=("documents", "chunks"),
    rows="sources",
    made_of={"documents.text": ("sources.path",), "doc_chunks.text": ("sources.path",)},
)


def _embed(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    report = ingest.run_from_store([Phase.EMBEDDINGS]).as_dict()
    return {**report, "memory": reembed_states(context.store, ingest.embedder)}


EMBEDDINGS = Stage(
    "embeddings",
    "embed chunks",
    _embed,
    lambda report: f"{report['embedded']:,} chunks embedded",
    reads=("doc_chunks",),
    writes=("doc_chunks",),
    contracts=(CHUNK_VECTORS,),
    figures=("embedded", "memory", "shards"),
    made_of={"doc_chunks.embedding": ("doc_chunks.text", "doc_chunks.title", "doc_chunks.headings")},
)


def _describe_edges(report: Report) -> str:
    changed = {kind: sum(change.values()) for kind, change in report["derived"].items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in changed.items() if count) or "nothing changed"


DERIVED_EDGES = Stage(
    "edges",
    "derive edges",
    lambda context, ingest, night: ingest.run_from_store([Phase.EDGES]).as_dict(),
    _describe_edges,
    reads=TEXTS,
    writes=EDGES,
    needs=("embeddings",),
    contracts=("nodes", "embeddings", "edges"),
    figures=("derived",),
    rows="derived",
    made_of={
        "entities.name": ("doc_chunks.text", "documents.facts", "funcs.qualified_name", "papers_raw.title"),
        "entities.embedding": ("doc_chunks.embedding", "funcs.embedding"),
        "mentions.count": ("doc_chunks.text",),
        "relations.type": ("documents.facts", "doc_chunks.text"),
        "relations.evidence_count": ("doc_chunks.text",),
        "references.type": ("documents.facts",),
        "imports.count": ("files.module", "documents.text"),
    },
)


NIGHT: tuple[Stage, ...] = (
    SOURCES,
    EMBEDDINGS,
    DERIVED_EDGES,
    topics.STAGE,
    weights.STAGE,
    bridges.STAGE,
    exam.STAGE,
    ranker.NIGHT_STAGE,
    publish.STAGE,
)
STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in NIGHT)
STAGES: Mapping[str, Stage] = {stage.name: stage for stage in NIGHT}
STORE_CONTRACTS: tuple[str, ...] = CONTRACT_NAMES[:-1]  # all but that of the snapshot


def run_night(
    night: Night, run: Callable[[Stage, Night], dict[str, Any]], check: Callable[[Sequence[str]], dict[str, Any]]
) -> dict[str, Any]:
    """Run the stages in order, each followed by its contracts; what each reported.

    `check` raises for a broken rule, unless a person accepts it; later stages are told.

    `began` says when each stage began, in seconds since 1970.
    """
    report: dict[str, Any] = {"as_of": night.as_of.isoformat(), "began": {}, "contracts": []}
    for stage in NIGHT[STAGE_NAMES.index(night.from_stage) :]:
        report["began"][stage.name] = time.time()
        report[stage.name] = run(stage, night)
        if stage.contracts:
            report["contracts"].append({"stage": stage.name, **check(stage.contracts)})
            night = replace(night, accepted=night.accepted + rules_accepted(report["contracts"][-1]))
    return report


def run_here(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """The whole night in one call, for a notebook, a script or an installation without Prefect."""

    def run(stage: Stage, night: Night) -> dict[str, Any]:
        with span(f"hades.build.{stage.name}"):
            return _time(lambda: run_stage(stage, context, ingest, night))

    def check(contracts: Sequence[str]) -> dict[str, Any]:
        with span("hades.build.contracts", contracts=tuple(contracts)):
            return _time(lambda: check_stage(context, night, contracts).require().as_dict())

    return run_night(night, run, check)


def _time(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    began = time.perf_counter()
    report = work()
    return {**report, "took": round(time.perf_counter() - began, 3)}


def run_stage(stage: Stage, context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Run one stage; lineage is told when it starts and how it ends."""
    began = _lineage_of(stage, context, night)
    context.emit_lineage(began.event("START", utc_now()))
    try:
        report = stage.run(context, ingest, night)
    except BaseException as error:
        context.emit_lineage(began.event("FAIL", utc_now(), f"{type(error).__name__}: {error}"))
        raise
    context.emit_lineage(_lineage_of(stage, context, night).event("COMPLETE", utc_now()))
    return report


def emit_lineage(stage: Stage, context: BuildContext, night: Night) -> None:
    """The lineage of a stage that ran as several tasks, when it is done."""
    run = _lineage_of(stage, context, night)
    for kind in ("START", "COMPLETE"):
        context.emit_lineage(run.event(kind, utc_now()))


def check_stage(context: BuildContext, night: Night | None, contracts: Sequence[str]) -> Outcome:
    """Check the contracts of a stage; lineage of a night is told which rules hold of which collections."""
    outcome = check_contracts(context, contracts)
    if night is None:
        return outcome
    for result in outcome.checked:
        broken = {one.rule for one in (*result.findings, *result.warnings)}
        own = contract_of(result, context.home).rules
        checked = describe_datasets(context, list(dict.fromkeys(rule.frame for rule in own)), "", {})
        rules = {one.name: [_assert(rule, one, broken) for rule in own if rule.frame == one.name] for one in checked}
        run = StageRun(_namespace(context), night.name, f"contracts.{result.contract}", checked, rules=rules)
        for kind in ("START", "COMPLETE" if result.is_green else "FAIL"):
            context.emit_lineage(run.event(kind, utc_now()))
    return outcome


def _assert(rule: Rule, checked: Dataset, broken: Collection[str]) -> dict[str, Any]:
    """A rule as an assertion about a collection, or about one of its columns."""
    columns = [one.name for one in checked.columns if (one.name,) == rule.expectation.columns]
    told = {"assertion": rule.expectation.kind, "success": rule.id not in broken, "name": rule.id}
    told |= {"description": rule.sentence, "severity": "warn" if rule.severity == "warn" else "error"}
    return told | ({"column": columns[0]} if columns else {})


# OpenLineage events: which stage read and wrote which collections, when, and whether it completed. They follow the
# specification 2-0-2 and need no library.
JOB = "nightly"
_SPEC = "https://openlineage.io/spec"
_FACETS = {
    "parent": "1-0-1/ParentRunFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "schema": "1-2-0/SchemaDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "dataQualityAssertions": "1-1-0/DataQualityAssertionsDatasetFacet",
}


@dataclass(frozen=True)
class StageRun:
    """One run of a stage inside a build: its name, the build's name, and the collections on both sides.

    `made_of` is that of the stage, `rules` are what inputs were checked by.
    """

    namespace: str
    build: str
    stage: str
    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()
    made_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rules: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def event(self, kind: str, at: datetime, error: str = "") -> dict[str, Any]:
        """The event of this moment: START, COMPLETE or FAIL."""
        facets = _facet("parent", run={"runId": _run_id(self.namespace, self.build)}, job=self._named(JOB))
        if error:
            facets |= _facet("errorMessage", message=error, programmingLanguage="PYTHON")
        return {
            "eventType": kind,
            "eventTime": at.astimezone(UTC).isoformat(),
            "producer": _producer(),
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": _run_id(self.namespace, self.build, self.stage), "facets": facets},
            "job": {**self._named(f"{JOB}.{self.stage}"), "facets": {}},
            "inputs": [self._dataset(one, "input") for one in self.inputs],
            "outputs": [self._dataset(one, "output") for one in self.outputs],
        }

    def _named(self, name: str) -> dict[str, str]:
        return {"namespace": self.namespace, "name": name}

    def _dataset(self, one: Dataset, side: str) -> dict[str, Any]:
        columns = [{"name": column.name, "type": str(column.type)} for column in one.columns]
        facets = _facet("schema", fields=columns) if columns else {}
        made = {
            name.removeprefix(f"{one.name}."): {"inputFields": [self._column(source) for source in sources]}
            for name, sources in self.made_of.items()
            if side == "output" and name.startswith(f"{one.name}.")
        }
        if made:
            facets |= _facet("columnLineage", fields=made)
        measured = {} if one.rows is None else _facet(f"{side}Statistics", rowCount=one.rows)
        if one.name in self.rules:
            measured |= _facet("dataQualityAssertions", assertions=list(self.rules[one.name]))
        return {**self._named(one.name), "facets": facets, f"{side}Facets": measured}

    def _column(self, source: str) -> dict[str, str]:
        collection, _, column = source.partition(".")
        return {**self._named(collection), "field": column}


def _lineage_of(stage: Stage, context: BuildContext, night: Night) -> StageRun:
    counts = context.store.counts()
    inputs, outputs = (describe_datasets(context, names, "", counts) for names in (stage.reads, stage.writes))
    return StageRun(_namespace(context), night.name, stage.name, inputs, outputs, stage.made_of)


def _namespace(context: BuildContext) -> str:
    return f"hades:{context.home.resolve()}"


def _run_id(*names: str) -> str:
    """The same build and stage have the same id in every process that works on them."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("hades", *names))))


def _facet(name: str, **values: Any) -> dict[str, Any]:
    place = _FACETS[name]
    schema = f"{_SPEC}/facets/{place}.json#/$defs/{place.partition('/')[2]}"
    return {name: {"_producer": _producer(), "_schemaURL": schema, **values}}


@cache
def _producer() -> str:
    return f"https://pypi.org/project/hades-graphrag/{version('hades-graphrag')}"
