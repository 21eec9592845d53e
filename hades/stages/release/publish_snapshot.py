"""Publishing behind the contracts: a snapshot is checked before the pointer moves, and its weights are registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.build_state import ledger
from hades.snapshot.pointer import prune
from hades.snapshot.publish import Published, publish
from hades.snapshot.retention import snapshots
from hades.stages.build_context import BuildContext, default_moment
from hades.stages.contracts.check_contract import check_contract, require_contracts
from hades.stages.contracts.check_contracts import check_contracts
from hades.stages.night import STORE_CONTRACTS
from hades.stages.stage_calls import bridge, build_topics, weigh
from hades.stages.weights.weight_versions import log_weights, promote, retain


@dataclass(frozen=True)
class Released:
    """What serves from now on."""

    published: Published
    weights_version: str | None
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
            "ranker": self.published.parts.get("ranker", ""),
            "ranker_left_out": self.published.ranker_left_out,
        }


def release(context: BuildContext, as_of: datetime, keep: int | None) -> Released:
    """Publish, let the registry's champion be what serves, and keep the newest few of both (None: keep all).

    Killed before the pointer moves, the old graph serves; killed after it, the next release finds the same snapshot
    and only sets the champion. A graph that was never weighed has no weights to register.
    """
    weighed = ledger.completed(context.store, ledger.WEIGHTS)
    version = None
    if weighed is not None and weighed.as_of is not None:
        tracker = context.open_tracker()
        version = log_weights(context.store, tracker, as_of=weighed.as_of)
    published = publish(context.store, context.home, created_at=as_of, approve=lambda folder: _approve(context, folder))
    if version is not None:
        promote(tracker, version, published.snapshot)
    removed = prune(context.home, keep=keep) if keep is not None else []
    if removed:
        context.answer_cache.forget_everything()  # or they would go on saying what the removed snapshots said
    if version is not None and keep is not None:
        retain(tracker, keep, snapshots=[one.snapshot for one in snapshots(context.home)])
    return Released(published, version, removed)


def publish_now(context: BuildContext, now: datetime, keep: int | None) -> Released:
    """Publish what the store holds, if every contract holds; stages that were built before are brought up to date."""
    moment = default_moment(now)
    for name, stage in ((ledger.HIERARCHY, build_topics), (ledger.WEIGHTS, weigh), (ledger.BRIDGES, bridge)):
        if ledger.completed(context.store, name) is not None:
            stage(context, moment)
    check_contracts(context, STORE_CONTRACTS).require()
    return release(context, moment, keep)


def _approve(context: BuildContext, folder: Path) -> None:
    require_contracts(check_contract(context.store, "snapshot", snapshot=folder))
