"""Going back: the pointer first, at once, then what the store should say."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from hades.build_state import ledger
from hades.ports.clock import utc_now
from hades.ports.tracking import Tracker
from hades.snapshot import manifest
from hades.snapshot.pointer import root_of
from hades.snapshot.publish import publish
from hades.snapshot.retention import rollback
from hades.stages.build_context import BuildContext, default_moment
from hades.stages.ranker import ranker_registry as registry
from hades.stages.stage_calls import bridge
from hades.stages.weights.restore_weights import restore_weights
from hades.stages.weights.weight_versions import promote, version_before, version_of


@dataclass(frozen=True)
class WentBack:
    """What serves now, and how long readers waited for it."""

    snapshot: str
    pointer_seconds: float
    weights_version: str | None
    restored: int = 0
    missing: int = 0
    note: str = ""
    ranker_version: str | None = None
    bridges: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def roll_back_graph(context: BuildContext, to: str | None) -> WentBack:
    """Let an older snapshot serve, and give the store the weights and the ranker it was published with."""
    began = time.perf_counter()
    snapshot = rollback(context.home, to)
    seconds = time.perf_counter() - began
    tracker = context.open_tracker()
    ranker = _restore_ranker(context, tracker, snapshot)
    version = version_of(tracker, snapshot)
    if version is None:
        note = "the registry holds no weights of this snapshot; the store keeps those it has"
        return WentBack(snapshot, seconds, None, note=note, ranker_version=ranker)
    restored = restore_weights(context.store, tracker, version)
    promote(tracker, version, snapshot)
    bridges = _rebuild_bridges(context)
    return WentBack(
        snapshot,
        seconds,
        version,
        restored.rows,
        restored.missing,
        _tell(bridges),
        ranker_version=ranker,
        bridges=bridges,
    )


def roll_back_weights(context: BuildContext, to: str | None) -> WentBack:
    """Give the store older weights and publish them; the rest of the graph stays as it is."""
    tracker = context.open_tracker()
    version = to or version_before(tracker)
    restored = restore_weights(context.store, tracker, version)
    bridges = _rebuild_bridges(context)
    began = time.perf_counter()
    published = publish(context.store, context.home)
    seconds = time.perf_counter() - began
    promote(tracker, version, published.snapshot)
    told = _tell(bridges)
    return WentBack(published.snapshot, seconds, version, restored.rows, restored.missing, told, bridges=bridges)


def roll_back_ranker(context: BuildContext, to: str | None) -> WentBack:
    """Let an older ranker, or with `none` weights by hand, serve in a snapshot of the graph as it is."""
    tracker = context.open_tracker()
    version = to or registry.ranker_before(tracker)
    if version == registry.NONE:
        registry.record(context.store, "", None, {})
    else:
        registry.promote_ranker(context.store, context.home, tracker, version, None)
    began = time.perf_counter()
    published = publish(context.store, context.home)
    seconds = time.perf_counter() - began
    weights = version_of(tracker, published.snapshot)
    told = "questions are judged by hand" if version == registry.NONE else f"the ranker of version {version} serves"
    return WentBack(published.snapshot, seconds, weights, note=told, ranker_version=version)


def roll_back(context: BuildContext, what: str, to: str | None) -> WentBack:
    """Go back as told: the graph, its weights or its ranker."""
    if what == "graph":
        return roll_back_graph(context, to)
    if what == "weights":
        return roll_back_weights(context, to)
    return roll_back_ranker(context, to)


def _rebuild_bridges(context: BuildContext) -> int | None:
    """Bridges by the restored weights, so that the next publishing finds them current; None where none were built."""
    if ledger.complete(context.store, ledger.BRIDGES) is None:
        return None
    report = bridge(context, default_moment(utc_now()))
    return int(report["bridges"])


def _tell(bridges: int | None) -> str:
    return "" if bridges is None else f"{bridges:,} bridges were built again by the restored weights"


def _restore_ranker(context: BuildContext, tracker: Tracker, snapshot: str) -> str | None:
    """Let the store name the ranker of a snapshot again, so that the next publishing agrees with it; its version."""
    contents, _ = manifest.load(root_of(context.home) / snapshot)
    generation = contents.parts.get(registry.RANKER, "")
    version = registry.version_of_generation(tracker, generation) if generation else None
    if version is not None:
        registry.promote_ranker(context.store, context.home, tracker, version, None)
    elif not generation:
        registry.record(context.store, "", None, {})
    return version
