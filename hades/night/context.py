"""What a build works with, and what its stages hand to each other: digests, never rows."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades import stage_ledger
from hades.cache.tiers import CachePlace
from hades.errors import HadesError, StoreBusy
from hades.ingest import manifest
from hades.ports.services import Dataset, LanguageModel, ProgressReport, Tracker, silent
from hades.ports.store import GraphStore, Predicate, RowStore, StateFile
from hades.settings.tree import LearningSettings, PathSettings
from hades.telemetry.logs import Emit, emit_nothing
from schemas.builds import StageRecord
from schemas.catalogue import COLLECTIONS, columns_schema

if TYPE_CHECKING:
    from hades.ingest.ingest import Ingest
    from hades.night.contracts.rule import Engine
    from hades.retrieval.pipeline import Tools


logger = logging.getLogger(__name__)
Mode = Literal["auto", "full", "incremental"]  # of the topics; `incremental` is what `auto` does


# By home: what raises where another command has taken over the build of this process.
BUILD_CHECKS: dict[Path, Callable[[], object]] = {}


class NotBuilt(HadesError):
    """A stage that needs what another has not built yet."""


@dataclass(frozen=True)
class BuildContext:
    """The store and what surrounds it. The tracker is opened when a stage first needs it: that
    takes seconds.

    `open_tools` gives what asking questions needs, for the stage that learns from them; `open_past`
    an empty graph in a folder, of the same settings, for a past night. `state` is the store as one
    file, None for a store that is none. `engine` evaluates the contracts; None: the best that is
    installed. `history_bytes` bound what is kept of each night's changes, with the settings that
    shape a graph; `nights_kept` is how many nights keep their reports and runs.
    """

    store: GraphStore
    home: Path
    model: str
    path: PathSettings
    open_tracker: Callable[[], Tracker]
    language_model: LanguageModel | None = None
    progress: ProgressReport = silent
    learning: LearningSettings = field(default_factory=LearningSettings)
    cache: CachePlace | None = None
    open_tools: Callable[[], Tools] | None = None
    emit_lineage: Emit = emit_nothing
    device: str = "cpu"  # that states of nodes are fitted on, see HADES_DEVICE
    history_bytes: int = 0
    nights_kept: int = 100
    shaping_settings: Mapping[str, Any] = field(default_factory=dict)
    open_past: Callable[[Path], AbstractContextManager[tuple[BuildContext, Ingest]]] | None = None
    state: StateFile | None = None
    engine: Engine | None = None

    @property
    def answer_cache(self) -> CachePlace:
        """Where answers are kept; what is forgotten goes there too."""
        return self.cache or CachePlace.under(self.home)


def wait_to_build(
    claim: Callable[[str], str | None],
    command: str,
    wait_seconds: float,
) -> None:
    """Wait until `claim` gives the lock instead of who holds it; raises `StoreBusy`, with who
    builds and since when.
    """
    who = (
        f"{command} (process {os.getpid()} on {socket.gethostname()}, since "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC)"
    )
    give_up = time.monotonic() + wait_seconds
    waits = count()

    while (holder := claim(who)) is not None:
        if time.monotonic() >= give_up:
            raise StoreBusy(
                f"{holder} builds this graph, and one build runs at a time; {command} waited "
                f"{wait_seconds:g} s and "
                "changed nothing: run it again when that build has ended, or raise "
                "HADES_BUILD_WAIT_SECONDS"
            )

        if not next(waits):
            logger.warning(
                "%s builds this graph; %s waits for it, at most %g s",
                holder,
                command,
                wait_seconds,
            )

        time.sleep(0.2)


def default_moment(now: datetime) -> datetime:
    """Where a build stands in time when nobody says: the beginning of its day, so that a resumed
    one agrees.
    """
    return now.astimezone(UTC).replace(
        hour=0,
        minute=0,
        second=0,
        microsecond=0,
    )


def derivation(context: BuildContext) -> str:
    """The digest of what was derived from the documents; every later stage works from it."""
    digest = manifest.derive_digest(context.store)
    if digest is None:
        raise NotBuilt(
            "no entities have been derived; run `hades ingest` (or the edges phase of it) first"
        )

    return digest


def completed(context: BuildContext, stage: str) -> StageRecord:
    """What the ledger says of a stage that must have completed."""
    done = stage_ledger.last_completion(context.store, stage)
    if done is None:
        raise NotBuilt(f"the stage {stage} has not completed; run `hades run nightly`")

    return done


def deadline_in(seconds: float | None) -> Callable[[], bool]:
    """A function that says whether `seconds` have passed from now; never, without a limit."""
    end = None if seconds is None else time.monotonic() + seconds
    return lambda: end is not None and time.monotonic() >= end


def read_columns(
    store: RowStore,
    collection: str,
    columns: Sequence[str],
    where: Predicate = (),
) -> pa.Table:
    """Some columns of all rows that satisfy the predicate, in key order and in the catalogue's
    types.
    """
    schema = columns_schema(collection, columns)
    scanned = store.scan(
        collection,
        columns=schema.names,
        where=where,
    )
    batches = (batch.select(schema.names) for batch in scanned)
    return pa.Table.from_batches(batches, schema=schema).combine_chunks()


def describe_datasets(
    context: BuildContext,
    collections: Sequence[str],
    digest: str,
    counts: Mapping[str, int],
) -> list[Dataset]:
    """Collections as a run reads them; `digest` is that of everything it reads, `counts` are the
    rows of the store.
    """
    known = {}
    for collection in COLLECTIONS:
        known[collection.name] = list(collection.schema)

    source = str(context.home.resolve())
    datasets = []
    for name in collections:
        datasets.append(
            Dataset(
                name,
                digest,
                source,
                counts.get(name),
                known.get(name, ()),
            )
        )

    return datasets


def vectors_of(rows: pa.Table, model: str) -> NDArray[np.float32]:
    """(n, dim): the vector of each row, zero where it has none of this model: others cannot be
    compared.
    """
    column = rows.column("embedding")
    ours = pc.fill_null(
        pc.and_(pc.equal(rows.column("embedding_model"), model), pc.is_valid(column)),
        False,
    )
    present = np.flatnonzero(ours.to_numpy())

    if not len(present):
        return np.zeros((len(rows), 0), np.float32)

    values = np.concatenate([chunk.flatten().to_numpy() for chunk in column.filter(ours).chunks])
    vectors = np.zeros((len(rows), len(values) // len(present)), np.float32)
    vectors[present] = values.reshape(len(present), -1)
    return vectors
