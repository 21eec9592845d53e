"""Publishing behind the contracts: a snapshot is checked before the pointer moves, and its weights are registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.builds import ledger
from hades.gates.check import check, require
from hades.learning.report import WeightReport
from hades.learning.snapshots import log_weights, promote, retain
from hades.nightly.site import NotBuilt, Site
from hades.snapshot.pointer import prune
from hades.snapshot.publish import Published, publish
from hades.snapshot.retention import snapshots


@dataclass(frozen=True)
class Released:
    """What serves from now on."""

    published: Published
    weights_version: str
    removed: list[str]

    def as_dict(self) -> dict[str, Any]:
        """The release as JSON."""
        return {
            "snapshot": self.published.snapshot,
            "manifest": self.published.manifest_hash,
            "path": str(self.published.path),
            "is_new": self.published.is_new,
            "weights_version": self.weights_version,
            "removed": self.removed,
        }


def release(site: Site, as_of: datetime, keep: int) -> Released:
    """Publish, let the registry's champion be what serves, and keep the newest few of both.

    Killed before the pointer moves, the old graph serves; killed after it, the next release finds the same snapshot
    and only sets the champion.
    """
    tracker = site.open_tracker()
    weights, weighed_as_of = _standing_weights(site)
    version = log_weights(site.store, tracker, weights, as_of=weighed_as_of)
    published = publish(site.store, site.home, created_at=as_of, approve=lambda folder: _approve(site, folder))
    promote(tracker, version, published.snapshot)
    removed = prune(site.home, keep=keep)
    retain(tracker, keep, snapshots=[one.snapshot for one in snapshots(site.home)])
    return Released(published, version, removed)


def _standing_weights(site: Site) -> tuple[WeightReport, datetime]:
    """What the store's weights were made of, and as of when."""
    done = ledger.completed(site.store, ledger.WEIGHTS)
    if done is None or done.as_of is None:
        raise NotBuilt(
            "edges have not been weighed; run `hades run weigh_edges`, or `hades run nightly` for everything"
        )
    return WeightReport.of_skipped(done.report, "read from the ledger"), done.as_of


def _approve(site: Site, folder: Path) -> None:
    require(check(site.store, "snapshot", snapshot=folder))
