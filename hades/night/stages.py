"""The night: one ordered list of stages, read by the flow, the library, the forecast and the
report.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.memory.upkeep.maintain import reembed_states
from hades.night.bridges import stage as bridges
from hades.night.context import BuildContext, describe_datasets
from hades.night.contracts.check import (
    CHUNK_VECTORS,
    CONTRACT_NAMES,
    Outcome,
    check_contracts,
    contract_of,
    rules_accepted,
)
from hades.night.contracts.rule import Rule
from hades.night.exam import stage as exam
from hades.night.ranker import stage as ranker
from hades.night.release import publish
from hades.night.stage import EDGES, TEXTS, Night, NightStage, Report, Rows
from hades.night.topics import stage as topics
from hades.night.weights import stage as weights
from hades.ports.services import Dataset, utc_now
from hades.telemetry.logs import span
from schemas.record import JsonObject

logger = logging.getLogger(__name__)


def _read_sources(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
) -> JsonObject:
    moment = night.as_of if night.is_past else None
    synced: list[JsonObject] = []
    if moment is None and night.sources is None:  # what changed there is read with the corpora
        synced = ingest.sync(phases=(), due=True)

    corpora = ingest.again(
        night.sources,
        (Phase.NODES, Phase.CHUNKS),
        moment,
    )
    documents: Counter[str] = Counter()

    chunks = 0
    for corpus in corpora:
        documents.update(corpus["documents"])
        chunks += corpus["chunks"]

    read = {
        "documents": dict(documents),
        "chunks": chunks,
    }
    return {
        "sources": corpora,
        "synced": synced,
        **read,
    }


def _describe_sources(report: Report) -> str:
    documents = report["documents"]
    if documents:
        counts = [f"{documents['new']} new, {documents['changed']} changed"]
    else:
        counts = []

    counts += [f"not synced: {sync['problem']}" for sync in report["synced"] if sync["problem"]]
    return "; ".join(counts) or "nothing to read"


SOURCES = NightStage(
    "sources",
    "read sources",
    _read_sources,
    _describe_sources,
    reads=("sources",),
    writes=(*TEXTS, "ingest_manifest", "quarantine"),
    contracts=("nodes", "chunks"),
    figures=("documents", "chunks"),
    rows="sources",
    made_of={
        "documents.text": ("sources.path",),
        "doc_chunks.text": ("sources.path",),
    },
)


def _embed(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
) -> JsonObject:
    report = ingest.run_from_store([Phase.EMBEDDINGS]).as_dict()
    return {
        **report,
        "memory": reembed_states(context.store, ingest.embedder),
    }


EMBEDDINGS = NightStage(
    "embeddings",
    "embed chunks",
    _embed,
    lambda report: f"{report['embedded']:,} chunks embedded",
    reads=("doc_chunks",),
    writes=("doc_chunks",),
    contracts=(CHUNK_VECTORS,),
    figures=("embedded", "memory", "shards"),
    made_of={
        "doc_chunks.embedding": ("doc_chunks.text", "doc_chunks.title", "doc_chunks.headings")
    },
)


def _describe_edges(report: Report) -> str:
    changed = {}
    for kind, change in report["derived"].items():
        changed[kind] = sum(change.values())

    counts = [f"{count:,} {kind}" for kind, count in changed.items() if count]
    return ", ".join(counts) or "nothing changed"


DERIVED_EDGES = NightStage(
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
        "entities.name": (
            "doc_chunks.text",
            "documents.facts",
            "funcs.qualified_name",
            "papers_raw.title",
        ),
        "entities.embedding": ("doc_chunks.embedding", "funcs.embedding"),
        "mentions.count": ("doc_chunks.text",),
        "relations.type": ("documents.facts", "doc_chunks.text"),
        "relations.evidence_count": ("doc_chunks.text",),
        "references.type": ("documents.facts",),
        "imports.count": ("files.module", "documents.text"),
    },
)


NIGHT: tuple[NightStage, ...] = (
    SOURCES,
    EMBEDDINGS,
    DERIVED_EDGES,
    topics.STAGE,
    weights.STAGE,
    bridges.STAGE,
    exam.STAGE,
    ranker.STAGE,
    publish.STAGE,
)
STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in NIGHT)
STAGES: Mapping[str, NightStage] = {stage.name: stage for stage in NIGHT}
STORE_CONTRACTS: tuple[str, ...] = CONTRACT_NAMES[:-1]  # all but that of the snapshot


RunStage = Callable[[NightStage, Night], JsonObject]
CheckContracts = Callable[[Sequence[str]], JsonObject]
WhenStopped = Callable[[Report, BaseException], None]


def run_night(
    night: Night,
    run: RunStage,
    check: CheckContracts,
    when_stopped: WhenStopped,
    report: JsonObject | None = None,
) -> JsonObject:
    """Run the stages in order, each followed by its contracts; what each reported.

    A `report` that is given is filled as the night goes on, so that one that stops can be told.

    `check` raises for a broken rule, unless a person accepts it; later stages are told.

    `began` says when each stage began, in seconds since 1970. `when_stopped` is told what was
    reported so far where an error or a person ends the night early.
    """
    report = {} if report is None else report
    report |= {
        "as_of": night.as_of.isoformat(),
        "began": {},
        "contracts": [],
    }

    try:
        _run_stages(night, run, check, report)
    except BaseException as error:
        _tell_stopped(when_stopped, report, error)
        raise

    return report


def _tell_stopped(
    when_stopped: WhenStopped,
    report: Report,
    error: BaseException,
) -> None:
    """Tell of a night that ends early; what fails here must not hide what ended it."""
    try:
        when_stopped(report, error)
    except Exception as problem:
        logger.warning(
            "the night that stopped has no run in the registry: %s",
            problem,
        )


def _run_stages(
    night: Night,
    run: RunStage,
    check: CheckContracts,
    report: JsonObject,
) -> None:
    """Add to the report what each stage said, as soon as it said it."""
    for stage in NIGHT[STAGE_NAMES.index(night.from_stage) :]:
        report["began"][stage.name] = time.time()
        report[stage.name] = run(stage, night)
        if stage.contracts:
            outcome = check(stage.contracts)
            report["contracts"].append({"stage": stage.name, **outcome})
            night = replace(
                night,
                accepted=night.accepted + rules_accepted(outcome),
            )


def run_here(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
    when_stopped: WhenStopped,
) -> JsonObject:
    """The whole night in one call, for a notebook, a script or an installation without Prefect."""

    def run(stage: NightStage, night: Night) -> JsonObject:
        with span(f"hades.build.{stage.name}"):
            return timed(lambda: run_stage(stage, context, ingest, night))

    def check(contracts: Sequence[str]) -> JsonObject:
        with span("hades.build.contracts", contracts=tuple(contracts)):
            return timed(lambda: check_stage(context, night, contracts).require().as_dict())

    return run_night(night, run, check, when_stopped)


def timed(work: Callable[[], JsonObject]) -> JsonObject:
    """A report with the seconds that it took."""
    began = time.perf_counter()
    report = work()
    return {
        **report,
        "took": round(time.perf_counter() - began, 3),
    }


def run_stage(
    stage: NightStage,
    context: BuildContext,
    ingest: Ingest,
    night: Night,
) -> JsonObject:
    """Run one stage; lineage is told when it starts and how it ends."""
    began = _lineage_of(stage, context, night)
    context.emit_lineage(began.event("START", utc_now()))

    try:
        report = stage.run(context, ingest, night)
    except BaseException as error:
        context.emit_lineage(
            began.event(
                "FAIL",
                utc_now(),
                f"{type(error).__name__}: {error}",
            )
        )
        raise

    context.emit_lineage(_lineage_of(stage, context, night).event("COMPLETE", utc_now()))
    return report


def emit_lineage(
    stage: NightStage,
    context: BuildContext,
    night: Night,
) -> None:
    """The lineage of a stage that ran as several tasks, when it is done."""
    run = _lineage_of(stage, context, night)
    for kind in ("START", "COMPLETE"):
        context.emit_lineage(run.event(kind, utc_now()))


def check_stage(
    context: BuildContext,
    night: Night | None,
    contracts: Sequence[str],
) -> Outcome:
    """Check the contracts of a stage; the lineage of a night says which rules hold of which
    collections.
    """
    outcome = check_contracts(context, contracts)
    if night is None:
        return outcome

    for result in outcome.checked:
        broken = set()
        for finding in (*result.findings, *result.warnings):
            broken.add(finding.rule)

        rules = contract_of(result, context.home).rules
        collections = list(dict.fromkeys(rule.frame for rule in rules))

        datasets = {}
        for dataset in describe_datasets(context, collections, "", {}):
            datasets[dataset.name] = dataset

        assertions: dict[str, Rows] = {name: [] for name in datasets}
        for rule in rules:
            assertions[rule.frame].append(_assert(rule, datasets[rule.frame], broken))

        job = f"contracts.{result.contract}"
        inputs = list(datasets.values())
        run = StageRun(
            _namespace(context),
            night.name,
            job,
            inputs,
            rules=assertions,
        )

        for kind in ("START", "COMPLETE" if result.is_green else "FAIL"):
            context.emit_lineage(run.event(kind, utc_now()))

    return outcome


def _assert(
    rule: Rule,
    dataset: Dataset,
    broken: Collection[str],
) -> JsonObject:
    """A rule as an assertion about a collection, or about one of its columns."""
    assertion = {
        "assertion": rule.expectation.kind,
        "success": rule.id not in broken,
        "name": rule.id,
        "description": rule.sentence,
        "severity": "warn" if rule.severity == "warn" else "error",
    }
    names = [column.name for column in dataset.columns]

    if len(rule.expectation.columns) == 1 and rule.expectation.columns[0] in names:
        assertion["column"] = rule.expectation.columns[0]

    return assertion


# OpenLineage events: which stage read and wrote which collections, when, and whether it completed.
# They follow the specification 2-0-2 and need no library.
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
    """One run of a stage inside a build: its name, the build's name, and the collections on both
    sides.

    `made_of` is that of the stage, `rules` are what inputs were checked by.
    """

    namespace: str
    build: str
    stage: str
    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()
    made_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rules: Mapping[str, Rows] = field(default_factory=dict)

    def event(
        self,
        kind: str,
        at: datetime,
        error: str = "",
    ) -> JsonObject:
        """The event of this moment: START, COMPLETE or FAIL."""
        facets = _facet(
            "parent",
            run={"runId": _run_id(self.namespace, self.build)},
            job=self._named(JOB),
        )
        if error:
            facets |= _facet(
                "errorMessage",
                message=error,
                programmingLanguage="PYTHON",
            )

        return {
            "eventType": kind,
            "eventTime": at.astimezone(UTC).isoformat(),
            "producer": _producer(),
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {
                "runId": _run_id(self.namespace, self.build, self.stage),
                "facets": facets,
            },
            "job": {
                **self._named(f"{JOB}.{self.stage}"),
                "facets": {},
            },
            "inputs": [self._dataset(dataset, "input") for dataset in self.inputs],
            "outputs": [self._dataset(dataset, "output") for dataset in self.outputs],
        }

    def _named(self, name: str) -> dict[str, str]:
        return {
            "namespace": self.namespace,
            "name": name,
        }

    def _dataset(self, dataset: Dataset, side: str) -> JsonObject:
        columns = [
            {
                "name": column.name,
                "type": str(column.type),
            }
            for column in dataset.columns
        ]
        facets = _facet("schema", fields=columns) if columns else {}

        column_sources = {}
        for name, sources in self.made_of.items() if side == "output" else ():
            collection, _, column = name.partition(".")
            if collection == dataset.name:
                column_sources[column] = {"inputFields": list(map(self._column, sources))}

        if column_sources:
            facets |= _facet("columnLineage", fields=column_sources)

        measured: JsonObject = {}
        if dataset.rows is not None:
            measured = _facet(f"{side}Statistics", rowCount=dataset.rows)
        if dataset.name in self.rules:
            measured |= _facet(
                "dataQualityAssertions",
                assertions=list(self.rules[dataset.name]),
            )

        return {
            **self._named(dataset.name),
            "facets": facets,
            f"{side}Facets": measured,
        }

    def _column(self, source: str) -> dict[str, str]:
        collection, _, column = source.partition(".")
        return {
            **self._named(collection),
            "field": column,
        }


def _lineage_of(
    stage: NightStage,
    context: BuildContext,
    night: Night,
) -> StageRun:
    counts = context.store.counts()
    return StageRun(
        _namespace(context),
        night.name,
        stage.name,
        inputs=describe_datasets(context, stage.reads, "", counts),
        outputs=describe_datasets(context, stage.writes, "", counts),
        made_of=stage.made_of,
    )


def _namespace(context: BuildContext) -> str:
    return f"hades:{context.home.resolve()}"


def _run_id(*names: str) -> str:
    """The same build and stage have the same id in every process that works on them."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("hades", *names))))


def _facet(name: str, **values: Any) -> JsonObject:
    place = _FACETS[name]
    schema = f"{_SPEC}/facets/{place}.json#/$defs/{place.partition('/')[2]}"
    return {
        name: {
            "_producer": _producer(),
            "_schemaURL": schema,
            **values,
        }
    }


@cache
def _producer() -> str:
    return f"https://pypi.org/project/hades-graphrag/{version('hades-graphrag')}"
