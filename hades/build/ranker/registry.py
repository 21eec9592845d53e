"""Rankers as registered versions: logged as challenger, made champion by the gate, restored by moving the alias.

The weights that come with the library are version 0 of every home."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades import build_state
from hades.errors import HadesError
from hades.ports.services import DATA_HASH, Dataset, RunRecord, Tracker
from hades.ports.store import GraphStore
from models.ranker.infer import RankerModel

RANKER_MODEL = "hades-ranker"
RANKER = "ranker"  # the stage of the ledger, and the part of a snapshot
CHAMPION, CHALLENGER = "champion", "challenger"
FILE = "ranker.npz"
SERVED = "served"  # the tag of a version that was champion once
GENERATION = "generation"
_SINGLES = pa.list_(pa.float32())
_INPUTS = (pa.field("question", _SINGLES, nullable=False), pa.field("features", _SINGLES, nullable=False))
_OUTPUTS = (pa.field("score", pa.float32(), nullable=False), pa.field("confidence", pa.float64(), nullable=False))
NONE, FIRST = "none", "0"  # going back to either: the weights that come with the library


class RankerError(HadesError):
    """A ranker that cannot be registered, promoted or restored."""


def log_ranker(
    tracker: Tracker,
    model: RankerModel,
    *,
    params: Mapping[str, object],
    metrics: Mapping[str, float],
    draw: Callable[[Path], Sequence[Path]],
    verdict: str,
    questions: str,
) -> str:
    """Register a model as a version and let `challenger` name it; the same data gives the version it gave before.

    The file holds arrays and the signature, which says what it takes and what it was fitted to. `questions` is where
    those lie.
    """
    data_hash = str(model.signature["data_hash"])
    generation = build_state.generation_of(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        build_state.write_model(path, model)
        record = RunRecord(
            f"ranker {generation[:8]}",
            params={**params, "signature.model": model.signature["model"], "signature.state": model.signature["state"]},
            metrics=metrics,
            artifacts=[path, *draw(Path(folder))],
            inputs=[Dataset("questions", data_hash, questions)],
            signature=(_INPUTS, _OUTPUTS),
            tags={DATA_HASH: generation, GENERATION: generation, "data": data_hash},
        )
        run = tracker.log_run(RANKER_MODEL, record)
        version = tracker.register(RANKER_MODEL, run, FILE)
    tracker.tag(RANKER_MODEL, version, {"verdict": verdict})
    tracker.set_alias(RANKER_MODEL, CHALLENGER, version)
    return version


def champion_of(tracker: Tracker) -> tuple[str, RankerModel] | None:
    """The version that serves and its model; None before the first."""
    version = tracker.alias(RANKER_MODEL, CHAMPION)
    return None if version is None else (version, build_state.read_model(tracker.fetch(RANKER_MODEL, version)))


def promote_ranker(store: GraphStore, home: Path, tracker: Tracker, version: str, as_of: datetime | None) -> str:
    """Let a version serve from the next publishing on; its generation. Going back to an older one is the same call."""
    model = build_state.read_model(tracker.fetch(RANKER_MODEL, version))
    generation = build_state.keep(home, model)
    tracker.tag(RANKER_MODEL, version, {SERVED: CHAMPION})
    tracker.set_alias(RANKER_MODEL, CHAMPION, version)
    record(store, generation, as_of, {"version": version, "data_hash": str(model.signature["data_hash"])})
    return generation


def record(store: GraphStore, generation: str, as_of: datetime | None, report: Mapping[str, Any]) -> None:
    """Say in the ledger which ranker the next snapshot holds; an empty generation: none."""
    with store.bulk(["build_stages"]) as inside:
        build_state.record(inside, build_state.StageCompletion(RANKER, generation, generation, as_of, dict(report)))


def version_of_generation(tracker: Tracker, generation: str) -> str | None:
    """The version of a snapshot's ranker; None where the registry has none."""
    return next((one.version for one in tracker.versions(RANKER_MODEL) if one.tags.get(GENERATION) == generation), None)
