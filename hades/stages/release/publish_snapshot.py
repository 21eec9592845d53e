"""Publishing behind the contracts: a snapshot is checked before the pointer moves, and its weights are registered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.build_state import ledger
from hades.errors import SnapshotError
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import GraphStore
from hades.snapshot import manifest as manifests
from hades.snapshot.manifest import FORMAT
from hades.snapshot.pointer import prune, root_of, served
from hades.snapshot.publish_inputs import catalogue_hash, parts_of
from hades.snapshot.retention import snapshots
from hades.snapshot.verification import verify
from hades.stages.build_context import BuildContext, default_moment
from hades.stages.contracts.check_contract import check_contract, require_contracts
from hades.stages.contracts.check_contracts import check_contracts
from hades.stages.night import STORE_CONTRACTS
from hades.stages.stage_calls import bridge, build_topics, weigh
from hades.stages.weights.weight_versions import log_weights, promote, retain

_RECORD = "release"


@dataclass(frozen=True)
class ReleaseReport:
    """What serves from now on. `is_new` is false where the same snapshot was there already."""

    snapshot: str
    manifest: str
    path: Path
    is_new: bool
    weights_version: str | None
    removed: list[str]
    ranker: str = ""
    ranker_left_out: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The release as JSON."""
        return {**asdict(self), "path": str(self.path)}


def release(context: BuildContext, as_of: datetime, keep: int | None) -> ReleaseReport:
    """Publish, let the registry's champion be what serves, and keep the newest few of both (None: keep all).

    Nothing is written where the serving snapshot was made of the same rows. Killed before the pointer moves, the old
    graph serves; killed after it, the next release finds the same snapshot and only sets the champion. A graph that was
    never weighed has no weights to register.
    """
    inputs = inputs_digest(context.store)
    held = _serve_already(context, inputs)
    released = held or _publish(context, as_of)
    removed = prune(context.home, keep=keep) if keep is not None else []
    if removed:
        context.answer_cache.forget_everything()  # or they would go on saying what the removed snapshots said
    if keep is not None and released.weights_version is not None and (removed or held is None):
        retain(context.open_tracker(), keep, snapshots=[one.snapshot for one in snapshots(context.home)])
    if held is None and inputs is not None:
        _note(context, inputs, released)
    return replace(released, removed=removed)


def release_if(changed: bool, context: BuildContext, as_of: datetime, keep: int | None) -> dict[str, Any] | None:
    """The report of a release where something changed, else None."""
    return release(context, as_of, keep).as_dict() if changed else None


def inputs_digest(store: GraphStore) -> str | None:
    """A digest of everything a snapshot is made of; None where the store cannot tell."""
    reads = ("documents", *KINDS, *EDGES, "bridge_cache")
    marks = store.marks(reads)
    if len(marks) < len(reads):
        return None
    return ledger.digest_of(FORMAT, catalogue_hash(), sorted(marks.items()), parts_of(store))


def _serve_already(context: BuildContext, inputs: str | None) -> ReleaseReport | None:
    """The release of the same rows, while its snapshot serves and its files are as they were written."""
    done = ledger.complete(context.store, _RECORD)
    if inputs is None or done is None or done.digest != inputs or served(context.home) != done.report["snapshot"]:
        return None
    folder = root_of(context.home) / done.report["snapshot"]
    try:
        contents, manifest_hash = manifests.load(folder)
        verify(folder, contents.arrays)
    except SnapshotError:
        return None
    version, ranker = done.report["weights_version"], contents.parts.get("ranker", "")
    left_out = done.report["ranker_left_out"]
    return ReleaseReport(folder.name, manifest_hash, folder, False, version, [], ranker, left_out)


def _publish(context: BuildContext, as_of: datetime) -> ReleaseReport:
    from hades.snapshot.publish import publish

    weighed = ledger.complete(context.store, ledger.WEIGHTS)
    version = None
    if weighed is not None and weighed.as_of is not None:
        tracker = context.open_tracker()
        version = log_weights(context.store, tracker, as_of=as_of)
    published = publish(context.store, context.home, created_at=as_of, approve=lambda folder: _approve(context, folder))
    if version is not None:
        promote(tracker, version, published.snapshot)
    return ReleaseReport(
        published.snapshot,
        published.manifest_hash,
        published.path,
        published.is_new,
        version,
        [],
        published.parts.get("ranker", ""),
        published.ranker_left_out,
    )


def _note(context: BuildContext, inputs: str, released: ReleaseReport) -> None:
    report = {name: getattr(released, name) for name in ("snapshot", "weights_version", "ranker_left_out")}
    with context.store.bulk(["build_stages"]) as inside:
        ledger.record(inside, ledger.StageCompletion(_RECORD, inputs, report=report))


def publish_now(context: BuildContext, now: datetime, keep: int | None) -> ReleaseReport:
    """Publish what the store holds, if every contract holds; stages that were built before are brought up to date."""
    moment = default_moment(now)
    for name, stage in ((ledger.HIERARCHY, build_topics), (ledger.WEIGHTS, weigh), (ledger.BRIDGES, bridge)):
        if ledger.complete(context.store, name) is not None:
            stage(context, moment)
    check_contracts(context, STORE_CONTRACTS).require()
    return release(context, moment, keep)


def _approve(context: BuildContext, folder: Path) -> None:
    require_contracts(check_contract(context.store, "snapshot", snapshot=folder))
