"""The ordered list of stages, and running it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hades import build_state
from hades.build.bridges.rows import BridgeRules, bridge_rules_of
from hades.build.bridges.stage import build_bridges
from hades.build.context import BuildContext, Mode, deadline_in, default_moment, derivation, generation_of
from hades.build.contracts.check import CHUNK_VECTORS, CONTRACT_NAMES
from hades.build.ranker.questions import QUESTIONS, too_few_judgements
from hades.build.ranker.stage import QuestionSet, train_ranker
from hades.build.topics.inputs import HierarchyRules
from hades.build.topics.stage import build_hierarchy
from hades.build.weights.feedback import tell as describe_learning
from hades.build.weights.inputs import WeightRules, rules_of
from hades.build.weights.stage import weigh_relations
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.memory.upkeep.maintain import reembed_states
from hades.snapshot.manifest import served
from schemas.sources import SourceSpec

if TYPE_CHECKING:
    from hades.build.ranker.stage import QuestionSet


# What each stage of the night did, in one sentence made from its report.


Report = Mapping[str, Any]


def describe_sources(report: Report) -> str:
    """New and changed documents of each source."""
    counts = [f"{one['documents']['new']} new, {one['documents']['changed']} changed" for one in report["sources"]]
    return "; ".join(counts) or "no source is known"


def describe_embeddings(report: Report) -> str:
    """How many chunks were embedded."""
    return f"{report['embedded']:,} chunks embedded"


def describe_edges(report: Report) -> str:
    """How many rows of each derived collection changed."""
    changed = {kind: sum(change.values()) for kind, change in report["derived"].items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in changed.items() if count) or "nothing changed"


def describe_topics(report: Report) -> str:
    """How topics were built and how many members moved."""
    return f"{report['mode']}: {report['why']}; {report['topics']:,} topics, {report['moved']:,} moved"


def describe_weights(report: Report) -> str:
    """How many weights changed, and what feedback taught."""
    weighed = f"{sum(report['changed'].values()):,} weights changed, bias {report['bias']:.3f}"
    return "; ".join(filter(None, (str(report["why"]) or weighed, describe_learning(report["learned"]))))


def describe_bridges(report: Report) -> str:
    """How many bridges there are and how many pairs were searched."""
    return f"{report['bridges']:,} bridges, {report['pairs_searched']:,} pairs searched"


def describe_ranker(report: Report) -> str:
    """Whether a ranker was trained, and why not."""
    return str(report["why"])


def describe_release(report: Report) -> str:
    """Which snapshot serves."""
    return f"{report['snapshot']} serves, weights version {report['weights_version']}"


# The stages after ingestion, one call each: every one skips itself when nothing it works from has changed.


RANKER_SECONDS = 300  # what training takes at most on a graph of a size to be expected


def build_topics(
    context: BuildContext, as_of: datetime, mode: Mode = "auto", rules: HierarchyRules | None = None
) -> dict[str, Any]:
    """Topics and super-topics over all entities."""
    report = build_hierarchy(
        context.store,
        rules or HierarchyRules(),
        model=context.model,
        inputs=derivation(context),
        as_of=as_of,
        mode=mode,
        language_model=context.language_model,
        progress=context.progress,
    )
    return report.as_dict()


def weigh(context: BuildContext, as_of: datetime, rules: WeightRules | None = None) -> dict[str, Any]:
    """Weight and cost of every relation, weight of every mention, with what judged answers taught."""
    report = weigh_relations(
        context.store,
        rules or rules_of(context.path, context.learning),
        model=context.model,
        inputs=derivation(context),
        as_of=as_of,
        progress=context.progress,
    )
    return report.as_dict()


def bridge(
    context: BuildContext,
    as_of: datetime,
    deadline: Callable[[], bool] = lambda: False,
    rules: BridgeRules | None = None,
) -> dict[str, Any]:
    """Edges between topics marked, and the hot paths between them computed ahead."""
    hierarchy = build_state.complete(context.store, build_state.HIERARCHY)
    report = build_bridges(
        context.store,
        rules or bridge_rules_of(context.path),
        inputs=build_state.digest_of(
            generation_of(context, build_state.HIERARCHY), generation_of(context, build_state.WEIGHTS)
        ),
        generation=generation_of(context, build_state.WEIGHTS),
        as_of=as_of,
        moved=[one["cluster"] for one in (hierarchy.report["moving"] if hierarchy else ())],
        deadline=deadline,
        progress=context.progress,
    )
    return report.as_dict()


def train(
    context: BuildContext, as_of: datetime, sets: Sequence[QuestionSet] = (), *, seconds_left: float | None = None
) -> dict[str, Any]:
    """A ranker from labelled questions and judged answers, asked of the graph that serves now.

    Without sets the file of questions under HADES_HOME is one, where there is one. It is left for another night when
    the time box is nearly spent: what serves goes on serving.
    """
    if seconds_left is not None and seconds_left < RANKER_SECONDS:
        return {
            "skipped": True,
            "why": f"{seconds_left:.0f} s of the time box are left, too few to train",
        }
    if context.open_tools is None or not served(context.home):
        return {"skipped": True, "why": "nothing is published that questions could be asked of"}
    own = context.home / QUESTIONS
    if not sets and not own.is_file() and (why := too_few_judgements(context.store)):
        return {"skipped": True, "why": why}
    chosen = list(sets) or ([QuestionSet(own)] if own.is_file() else [])
    return train_ranker(context, context.open_tools(), chosen, as_of)


# The night as data: one ordered list of stages, read by the flow, the library, the forecast and the report.


KEEP_SNAPSHOTS = 7
# Where a build may begin; stages after topics are skipped by their own records where nothing changed.
FirstStage = Literal["sources", "embeddings", "edges", "topics"]


@dataclass(frozen=True)
class Night:
    """The parameters of one build: small and plain, so that tasks in other processes can take it.

    `as_of` is the moment the build stands at. `began` and `ends` are seconds since 1970; `ends` is None without a time
    box. `sources` are the corpora to read, None for all that were ingested before.
    """

    as_of: datetime
    began: float
    ends: float | None = None
    sources: tuple[SourceSpec, ...] | None = None
    mode: Mode = "auto"
    keep: int = KEEP_SNAPSHOTS
    from_stage: FirstStage = "sources"

    def seconds_left(self) -> float | None:
        """What is left of the time box; None without one, 0 when it is over."""
        return None if self.ends is None else max(0.0, self.ends - time.time())

    @property
    def is_over(self) -> bool:
        """Whether the time box is spent."""
        return self.seconds_left() == 0.0


class NightParameters(BaseModel):
    """The parameters of a night as people give them: to the flow, or to `hades run nightly` without a server."""

    model_config = ConfigDict(extra="forbid")

    sources: list[SourceSpec] | None = None
    as_of: datetime | None = None
    mode: Mode = "auto"
    keep: int = Field(KEEP_SNAPSHOTS, ge=1)
    time_box_minutes: float | None = Field(None, gt=0)
    from_stage: FirstStage = "sources"

    def begin(self) -> Night:
        """A night with these parameters that begins now."""
        night = begin(self.as_of, self.time_box_minutes, sources=self.sources, mode=self.mode, keep=self.keep)
        return replace(night, from_stage=self.from_stage)


@dataclass(frozen=True)
class Stage:
    """One stage of the night.

    `name` is its key in the report and in the forecast. `needs` are the stages whose rows it works from: it is stale
    when one of them is. `contracts` are checked after it. `ledger` is its record in the store, empty for a stage that
    keeps none. `describe` turns its report into a sentence.
    """

    name: str
    title: str
    run: Callable[[BuildContext, Ingest, Night], dict[str, Any]]
    describe: Callable[[Mapping[str, Any]], str]
    needs: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    ledger: str = ""
    is_light: bool = False


def begin(
    as_of: datetime | None,
    time_box_minutes: float | None = None,
    *,
    sources: list[SourceSpec] | None = None,
    mode: Mode = "auto",
    keep: int = KEEP_SNAPSHOTS,
) -> Night:
    """A night that begins now, at the moment given or at the beginning of today (UTC)."""
    now = time.time()
    moment = as_of or default_moment(datetime.fromtimestamp(now, UTC))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)  # a form of the UI may send a time without a zone
    ends = None if time_box_minutes is None else now + 60.0 * time_box_minutes
    return Night(moment, now, ends, tuple(sources) if sources else None, mode, keep)


def _read_sources(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return {"sources": ingest.again(night.sources, (Phase.NODES, Phase.CHUNKS))}


def _embed(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    report = ingest.run_from_store([Phase.EMBEDDINGS]).as_dict()
    return {**report, "memory": reembed_states(context.store, ingest.embedder)}


def _derive(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return ingest.run_from_store([Phase.EDGES]).as_dict()


def _build_topics(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Once the time box is over topics are not built again without need."""
    return build_topics(context, night.as_of, "auto" if night.is_over else night.mode)


def _weigh(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return weigh(context, night.as_of)


def _bridge(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return bridge(context, night.as_of, deadline_in(night.seconds_left()))


def _train(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return train(context, night.as_of, seconds_left=night.seconds_left())


def _release(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    from hades.build.release.publish import release  # it reads this list

    return release(context, night.as_of, night.keep).as_dict()


NIGHT: tuple[Stage, ...] = (
    Stage("sources", "read sources", _read_sources, describe_sources, contracts=("nodes", "chunks")),
    Stage("embeddings", "embed chunks", _embed, describe_embeddings, contracts=(CHUNK_VECTORS,)),
    Stage(
        "edges",
        "derive edges",
        _derive,
        describe_edges,
        needs=("embeddings",),
        contracts=("nodes", "embeddings", "edges"),
    ),
    Stage(
        "topics",
        "build topics",
        _build_topics,
        describe_topics,
        needs=("edges",),
        contracts=("hierarchy",),
        ledger=build_state.HIERARCHY,
    ),
    Stage(
        "weights",
        "weigh edges",
        _weigh,
        describe_weights,
        needs=("edges",),
        contracts=("weights",),
        ledger=build_state.WEIGHTS,
    ),
    Stage(
        "bridges",
        "build bridges",
        _bridge,
        describe_bridges,
        needs=("topics", "weights"),
        contracts=("bridges",),
        ledger=build_state.BRIDGES,
    ),
    Stage("ranker", "train ranker", _train, describe_ranker),
    Stage("released", "publish snapshot", _release, describe_release, is_light=True),
)
STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in NIGHT)
STORE_CONTRACTS: tuple[str, ...] = CONTRACT_NAMES[:-1]  # all but that of the snapshot


def stages_of(night: Night) -> tuple[Stage, ...]:
    """The stages that a build runs: those from its first one on."""
    return NIGHT[STAGE_NAMES.index(night.from_stage) :]


def stage_named(name: str) -> Stage:
    """The stage of this name; raises ValueError when there is none."""
    for stage in NIGHT:
        if stage.name == name:
            return stage
    raise ValueError(f"there is no stage {name!r}; there are {', '.join(STAGE_NAMES)}")


# What each stage of the night did, as rows and a caption for the Prefect UI.


Table = tuple[list[dict[str, Any]], str]


def table_of(stage: str, report: Report) -> Table:
    """Rows and caption for one stage's report."""
    return _TABLES[stage](report)


def _sources(report: Report) -> Table:
    rows = [
        {"source": one["source"], "path": one["path"], "note": one.get("note", ""), **one["documents"]}
        for one in report["sources"]
    ]
    return rows, "documents read from each source"


def _embeddings(report: Report) -> Table:
    return [{"embedded": report["embedded"]}], "chunks embedded"


def _edges(report: Report) -> Table:
    rows = [{"collection": name, **change} for name, change in report["derived"].items()]
    return rows, "rows that were added, changed and removed"


def _topics(report: Report) -> Table:
    return list(report["biggest"]), f"the largest topics; {report['mode']}: {report['why']}"


def _weights(report: Report) -> Table:
    rows = [{"type": kind, **figures} for kind, figures in report["types"].items()]
    return rows, report["why"] or f"weights by relation type; bias {report['bias']:.3f}"


def _bridges(report: Report) -> Table:
    names = ("labelled", "pairs", "pairs_searched", "bridges", "work")
    return [{name: report[name] for name in names}], report["stopped"] or "paths between topics, computed ahead"


def _ranker(report: Report) -> Table:
    rows = [
        {"part": part, "passed": verdict["is_better"], "reason": verdict["reason"]}
        for part, verdict in report.get("verdicts", {}).items()
    ]
    return rows, report["why"]


def _release_table(report: Report) -> Table:
    return [dict(report)], "the snapshot that serves now"


_TABLES: Mapping[str, Callable[[Report], Table]] = {
    "sources": _sources,
    "embeddings": _embeddings,
    "edges": _edges,
    "topics": _topics,
    "weights": _weights,
    "bridges": _bridges,
    "ranker": _ranker,
    "released": _release_table,
}
