"""Going back: the pointer first, at once, then what the store should say."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from hades.learning.restore import restore_weights
from hades.learning.snapshots import promote, version_before, version_of
from hades.nightly.site import NotBuilt, Site
from hades.snapshot.publish import publish
from hades.snapshot.retention import rollback


@dataclass(frozen=True)
class WentBack:
    """What serves now, and how long readers waited for it."""

    snapshot: str
    pointer_seconds: float
    weights_version: str | None
    restored: int = 0
    missing: int = 0
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def roll_back_graph(site: Site, to: str | None) -> WentBack:
    """Let an older snapshot serve, and give the store the weights it was published with."""
    began = time.perf_counter()
    snapshot = rollback(site.home, to)
    seconds = time.perf_counter() - began
    tracker = site.open_tracker()
    version = version_of(tracker, snapshot)
    if version is None:
        note = "the registry holds no weights of this snapshot; the store keeps those it has"
        return WentBack(snapshot, seconds, None, note=note)
    restored = restore_weights(site.store, tracker, version)
    promote(tracker, version, snapshot)
    return WentBack(snapshot, seconds, version, restored.rows, restored.missing)


def roll_back_weights(site: Site, to: str | None) -> WentBack:
    """Give the store older weights and publish them; the rest of the graph stays as it is."""
    tracker = site.open_tracker()
    version = to or version_before(tracker)
    restored = restore_weights(site.store, tracker, version)
    began = time.perf_counter()
    published = publish(site.store, site.home)
    seconds = time.perf_counter() - began
    promote(tracker, version, published.snapshot)
    return WentBack(published.snapshot, seconds, version, restored.rows, restored.missing)


def roll_back(site: Site, what: str, to: str | None) -> WentBack:
    """Go back as told: the graph, or its weights."""
    if what == "graph":
        return roll_back_graph(site, to)
    if what == "weights":
        return roll_back_weights(site, to)
    raise NotBuilt("no ranker has been trained; there is nothing to go back to")
