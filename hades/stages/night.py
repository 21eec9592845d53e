"""The night as data: one ordered list of stages, read by the flow, the library, the forecast and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hades.build_state import ledger
from hades.ingest.ingest_api import Ingest
from hades.ingest.phases import Phase
from hades.stages import stage_sentences as sentences
from hades.stages.build_context import BuildContext, Mode, deadline_in, default_moment
from hades.stages.stage_calls import bridge, build_topics, train, weigh
from schemas.sources import SourceSpec

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
    return ingest.run_from_store([Phase.EMBEDDINGS]).as_dict()


def _derive(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return ingest.run_from_store([Phase.EDGES]).as_dict()


def _build_topics(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Once the time box is over only what changed is placed."""
    return build_topics(context, night.as_of, "incremental" if night.is_over else night.mode)


def _weigh(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return weigh(context, night.as_of)


def _bridge(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return bridge(context, night.as_of, deadline_in(night.seconds_left()))


def _train(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return train(context, night.as_of, seconds_left=night.seconds_left())


def _release(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    from hades.stages.release.publish_snapshot import release  # it reads this list

    return release(context, night.as_of, night.keep).as_dict()


NIGHT: tuple[Stage, ...] = (
    Stage("sources", "read sources", _read_sources, sentences.describe_sources),
    Stage("embeddings", "embed chunks", _embed, sentences.describe_embeddings),
    Stage(
        "edges",
        "derive edges",
        _derive,
        sentences.describe_edges,
        needs=("embeddings",),
        contracts=("nodes", "chunks", "embeddings", "edges"),
    ),
    Stage(
        "topics",
        "build topics",
        _build_topics,
        sentences.describe_topics,
        needs=("edges",),
        contracts=("hierarchy",),
        ledger=ledger.HIERARCHY,
    ),
    Stage(
        "weights",
        "weigh edges",
        _weigh,
        sentences.describe_weights,
        needs=("edges",),
        contracts=("weights",),
        ledger=ledger.WEIGHTS,
    ),
    Stage(
        "bridges",
        "build bridges",
        _bridge,
        sentences.describe_bridges,
        needs=("topics", "weights"),
        contracts=("bridges",),
        ledger=ledger.BRIDGES,
    ),
    Stage("ranker", "train ranker", _train, sentences.describe_ranker),
    Stage("released", "publish snapshot", _release, sentences.describe_release, is_light=True),
)
STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in NIGHT)
STORE_CONTRACTS: tuple[str, ...] = tuple(contract for stage in NIGHT for contract in stage.contracts)


def stages_of(night: Night) -> tuple[Stage, ...]:
    """The stages that a build runs: those from its first one on."""
    return NIGHT[STAGE_NAMES.index(night.from_stage) :]


def stage_named(name: str) -> Stage:
    """The stage of this name; raises ValueError when there is none."""
    for stage in NIGHT:
        if stage.name == name:
            return stage
    raise ValueError(f"there is no stage {name!r}; there are {', '.join(STAGE_NAMES)}")
