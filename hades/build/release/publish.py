"""Check, publish, register, roll back."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hades import build_state
from hades.build import registry
from hades.build.bridges import stage as bridges
from hades.build.context import BuildContext, default_moment, describe_datasets, read_columns
from hades.build.contracts.check import CONTRACT_NAMES, check_contract, check_contracts, require_contracts
from hades.build.exam import stage as exam
from hades.build.stage import EDGES as EDGE_COLLECTIONS
from hades.build.stage import TEXTS, TOPICS, Report, Stage
from hades.build.standing import ask_standing
from hades.build.topics import stage as topics
from hades.build.weights import stage as weights
from hades.files import append_line, write_whole
from hades.ports.services import DATA_HASH, RunRecord, Tracker, utc_now, version_with_hash
from hades.snapshot import manifest
from hades.snapshot.manifest import prune, root_of
from hades.snapshot.open import rollback, snapshots
from hades.snapshot.publish import publish
from schemas.catalogue import declared
from schemas.ids import iso


def release(context: BuildContext, as_of: datetime, keep: int | None, accepted: Sequence[str] = ()) -> dict[str, Any]:
    """Publish behind the contracts, let the registry's champion serve, keep the newest few of both (None: keep all).

    Killed before the pointer moves, the old graph serves; killed after it, the next release finds the same snapshot
    and only sets the champion. A graph that was never weighed has no weights to register.

    In the report `is_new` is false where the same snapshot was there already, `standing` says which answers of standing
    questions changed, and why, and `accepted` are broken rules that a person accepted, which also stand in `about.json`
    of the snapshot.
    """
    weighed = build_state.complete(context.store, build_state.WEIGHTS)
    tracker = context.open_tracker() if weighed is not None and weighed.as_of is not None else None
    version = None
    if tracker is not None and weighed is not None:
        inputs = describe_datasets(context, weights.STAGE.reads, weighed.digest, context.store.counts())
        broken = [rule for rule in accepted if rule.startswith(f"{build_state.WEIGHTS}.")]
        version = registry.log_weights(context.store, tracker, as_of=as_of, inputs=inputs, accepted=broken)
    standing: dict[str, Any] = {}

    def approve(folder: Path) -> None:
        require_contracts([check_contract(context.store, "snapshot", snapshot=folder)])
        standing.update(ask_standing(context.store, context.open_tools, context.home, folder))
        if accepted:
            about = folder / manifest.ABOUT
            write_whole(about, json.dumps({**json.loads(about.read_bytes()), "accepted": [*accepted]}))

    published = publish(context.store, context.home, created_at=as_of, approve=approve)
    removed = prune(context.home, keep=keep) if keep is not None else []
    if removed:
        context.answer_cache.forget_everything()  # or they would go on saying what the removed snapshots said
    if tracker is not None and version is not None:
        registry.promote(tracker, version, published.snapshot)
        register_parts(context, tracker, published.path)
        if keep is not None:
            kept = [one.snapshot for one in snapshots(context.home)]
            for model in MODELS:
                registry.retain(tracker, keep, snapshots=kept, model=model)
    return {
        "snapshot": published.snapshot,
        "manifest": published.manifest_hash,
        "path": str(published.path),
        "is_new": published.is_new,
        "weights_version": version,
        "removed": removed,
        "ranker": published.contents.parts.get("ranker", ""),
        "ranker_left_out": published.ranker_left_out,
        "standing": standing,
        "accepted": [*accepted],
    }


# What a snapshot was made of, as registered versions: the alias `champion` names those that serve.

# The columns by which the rows of a part are looked up are what its signature takes; the others are what it gives.
_PARTS: tuple[tuple[str, Stage, str, tuple[str, ...]], ...] = (
    ("hades-hierarchy", topics.STAGE, "clusters", ("centroid",)),
    ("hades-bridges", bridges.STAGE, "bridge_cache", ("from_cluster", "to_cluster")),
    ("hades-exam", exam.STAGE, "", ("text",)),  # of a file
)
SNAPSHOT_MODEL = "hades-snapshot"
MODELS = (registry.WEIGHTS_MODEL, *(model for model, *_ in _PARTS), SNAPSHOT_MODEL)


def register_parts(context: BuildContext, tracker: Tracker, folder: Path) -> None:
    """Register the parts of a snapshot and its manifest, and let `champion` name them; known data is logged once."""
    (contents, manifest_hash), counts = manifest.load(folder), cache(context.store.counts)
    for model, stage, collection, takes in _PARTS:
        done = build_state.complete(context.store, stage.ledger or stage.name)
        if done is not None and done.generation:
            version = version_with_hash(tracker.versions(model), done.generation)
            if version is None:
                columns = declared(collection).schema.names if collection else ()
                rows = read_columns(context.store, collection, columns) if columns else exam.read_table(context.home)
                record = RunRecord(
                    f"{stage.name} {done.generation[:8]}",
                    metrics=stage.metrics(done.report),
                    tags={DATA_HASH: done.generation},
                    inputs=describe_datasets(context, stage.reads, done.digest, counts()),
                    signature=(
                        [one for one in rows.schema if one.name in takes],
                        [one for one in rows.schema if one.name not in takes],
                    ),
                )
                name = f"{model.removeprefix('hades-')}.parquet"
                version = registry.log_version(
                    tracker, model, record, name, partial(pq.write_table, rows, compression="zstd")
                )
            registry.promote(tracker, version, folder.name, model)
    version = version_with_hash(tracker.versions(SNAPSHOT_MODEL), manifest_hash)
    if version is None:
        rows_of = {**contents.nodes, **contents.edges, "documents": contents.documents}
        size = sum(one.bytes for one in contents.files.values())
        record = RunRecord(
            folder.name,
            params=contents.parts,
            metrics={"bytes": size, **{f"rows.{name}": float(count) for name, count in rows_of.items() if count}},
            tags={DATA_HASH: manifest_hash},
            artifacts=[folder / manifest.MANIFEST],
            inputs=describe_datasets(context, STAGE.reads, manifest_hash, counts()),
        )
        version = tracker.register(SNAPSHOT_MODEL, tracker.log_run(SNAPSHOT_MODEL, record), manifest.MANIFEST)
    registry.promote(tracker, version, folder.name, SNAPSHOT_MODEL)


def release_if(changed: bool, context: BuildContext, as_of: datetime, keep: int | None) -> dict[str, Any] | None:
    """The report of a release where something changed, else None."""
    return release(context, as_of, keep) if changed else None


def publish_now(context: BuildContext, now: datetime, keep: int | None) -> dict[str, Any]:
    """Publish what the store holds, if every contract holds; stages that were built before are brought up to date."""
    moment = default_moment(now)
    if build_state.complete(context.store, build_state.HIERARCHY) is not None:
        topics.build_topics(context, moment)
    if build_state.complete(context.store, build_state.WEIGHTS) is not None:
        weights.weigh(context, moment)
    if build_state.complete(context.store, build_state.BRIDGES) is not None:
        bridges.bridge(context, moment)
    check_contracts(context, CONTRACT_NAMES[:-1]).require()
    return release(context, moment, keep)


def _describe(report: Report) -> str:
    told = f"{report['snapshot']} serves, weights version {report['weights_version']}"
    if "kept_as" in report:
        told = f"{report['snapshot']} is kept as {report['kept_as']}: compare it, then promote or discard it"
    standing = report["standing"]
    return f"{told}; {standing['changed']} of {standing['asked']} standing answers changed" if standing else told


STAGE = Stage(
    "released",
    "publish snapshot",
    lambda context, ingest, night: release(context, night.as_of, night.keep, night.accepted),
    _describe,
    reads=(*TEXTS, *EDGE_COLLECTIONS, *TOPICS, "bridge_cache"),
    writes=("snapshot",),
    is_light=True,
)


@dataclass(frozen=True)
class RollbackReport:
    """What serves now, and how long readers waited for it."""

    snapshot: str
    pointer_seconds: float
    weights_version: str | None
    restored: int = 0
    missing: int = 0
    note: str = ""
    ranker_version: str | None = None
    bridges: int | None = None


def roll_back_graph(context: BuildContext, to: str | None) -> RollbackReport:
    """Let an older snapshot serve at once; then give the store the weights and the ranker it was published with."""
    began = time.perf_counter()
    snapshot = rollback(context.home, to)
    seconds = time.perf_counter() - began
    tracker = context.open_tracker()
    ranker = _restore_ranker(context, tracker, snapshot)
    version = registry.version_of(tracker, snapshot)
    for model in MODELS:
        if (served := registry.version_of(tracker, snapshot, model)) is not None:
            registry.promote(tracker, served, snapshot, model)
    if version is None:
        note = "the registry holds no weights of this snapshot; the store keeps those it has"
        return RollbackReport(snapshot, seconds, None, note=note, ranker_version=ranker)
    return RollbackReport(snapshot, seconds, version, ranker_version=ranker, **_restore(context, tracker, version))


def promote_snapshot(context: BuildContext, snapshot: str) -> RollbackReport:
    """Let a snapshot that is there serve, if its files are sound; it needs no pin any more."""
    root = root_of(context.home)
    manifest.verify(root / snapshot, manifest.load(root / snapshot)[0].files)
    found = roll_back_graph(context, snapshot)
    for name in [name for name, pinned in manifest.pins(root).items() if pinned == snapshot]:
        manifest.pin(context.home, name, None)
    return found


def roll_back_weights(context: BuildContext, to: str | None) -> RollbackReport:
    """Give the store older weights and publish them; the rest of the graph stays as it is."""
    tracker = context.open_tracker()
    if (version := to or registry.version_before(tracker)) is None:
        raise weights.WeightError("no older weights have served; name the version to go to")
    restored = _restore(context, tracker, version)
    return RollbackReport(*_publish_again(context, tracker, version), version, **restored)


def roll_back_ranker(context: BuildContext, to: str | None) -> RollbackReport:
    """Let an older ranker, or with `none` weights by hand, serve in a snapshot of the graph as it is."""
    tracker = context.open_tracker()
    if to is None and tracker.alias(registry.RANKER_MODEL, registry.CHAMPION) is None:
        raise registry.RankerError("no ranker serves; train one with `hades run train_ranker`")
    version = to or registry.version_before(tracker, registry.RANKER_MODEL) or registry.NONE
    is_shipped = version in (registry.NONE, registry.FIRST)
    if is_shipped:
        registry.record_ranker(context.store, "", None, {})
    else:
        registry.promote_ranker(context.store, context.home, tracker, version, None)
    snapshot, seconds = _publish_again(context, tracker)
    told = "questions are judged by hand" if is_shipped else f"the ranker of version {version} serves"
    weighed = registry.version_of(tracker, snapshot)
    return RollbackReport(snapshot, seconds, weighed, note=told, ranker_version=version)


def _publish_again(context: BuildContext, tracker: Tracker, weights_version: str | None = None) -> tuple[str, float]:
    """Publish and register what the store holds now; the snapshot, and how long readers waited for it."""
    began = time.perf_counter()
    published = publish(context.store, context.home)
    seconds = time.perf_counter() - began
    if weights_version is not None:
        registry.promote(tracker, weights_version, published.snapshot)
    register_parts(context, tracker, published.path)
    return published.snapshot, seconds


def roll_back(context: BuildContext, what: str, to: str | None) -> RollbackReport:
    """Go back as told: the graph, its weights or its ranker."""
    ways = {"graph": roll_back_graph, "weights": roll_back_weights, "ranker": roll_back_ranker}
    return ways[what](context, to)


def _restore(context: BuildContext, tracker: Tracker, version: str) -> dict[str, Any]:
    """Give the store older weights, and bridges by them where any were built: the next publishing finds both."""
    found: dict[str, Any] = {**registry.restore_weights(context.store, tracker, version)}
    if build_state.complete(context.store, build_state.BRIDGES) is None:
        return found
    count = int(bridges.bridge(context, default_moment(utc_now()))["bridges"])
    return {**found, "bridges": count, "note": f"{count:,} bridges were built again by the restored weights"}


def _restore_ranker(context: BuildContext, tracker: Tracker, snapshot: str) -> str | None:
    """Let the store name the ranker of a snapshot again, so that the next publishing agrees with it; its version."""
    contents, _ = manifest.load(root_of(context.home) / snapshot)
    generation = contents.parts.get(registry.RANKER, "")
    known = tracker.versions(registry.RANKER_MODEL) if generation else ()
    version = next((one.version for one in known if one.tags.get(registry.GENERATION) == generation), None)
    if version is not None:
        try:
            registry.promote_ranker(context.store, context.home, tracker, version, None)
        except registry.RankerError:  # this version cannot use it: the shipped weights rank
            version, generation = None, ""
    if not generation:
        registry.record_ranker(context.store, "", None, {})
    return version


def last_alerts(home: Path, limit: int = 20) -> list[dict[str, str]]:
    """The newest alerts first; a line that is not JSON is passed over."""
    path = home / "logs" / "alerts.jsonl"
    try:
        lines = path.read_text("utf-8").splitlines()[-limit:]
    except OSError:
        return []
    alerts = []
    for line in reversed(lines):
        with suppress(ValueError):
            alerts.append(json.loads(line))
    return alerts


def append_alert(home: Path, at: datetime, what: str, subject: str, detail: str) -> Path:
    """Keep one alert; the file it stands in."""
    line = {"at": iso(at), "what": what, "subject": subject, "detail": detail}
    return append_line(home / "logs" / "alerts.jsonl", line)
