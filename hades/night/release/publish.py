"""Check, publish, register, roll back."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

import pyarrow.parquet as pq

from hades import stage_ledger
from hades.files import append_line, write_whole
from hades.night import model_versions as versions
from hades.night.bridges import stage as bridges
from hades.night.context import (
    BUILD_CHECKS,
    BuildContext,
    default_moment,
    describe_datasets,
    read_columns,
)
from hades.night.contracts.check import (
    CONTRACT_NAMES,
    check_contract,
    check_contracts,
    require_contracts,
)
from hades.night.exam import stage as exam
from hades.night.history import resolve_snapshot
from hades.night.keep_history import keep_history
from hades.night.stage import EDGES as EDGE_COLLECTIONS
from hades.night.stage import TEXTS, TOPICS, NightStage, Report
from hades.night.standing import ask_standing
from hades.night.topics import stage as topics
from hades.night.weights import stage as weights
from hades.ports.services import (
    DATA_HASH,
    RunRecord,
    Tracker,
    TrackingError,
    utc_now,
    version_with_hash,
)
from hades.snapshot import manifest, pointer
from hades.snapshot.pointer import PAST_NIGHT, prune, rollback, root_of, snapshots
from hades.snapshot.publish import publish
from schemas.catalogue import declared
from schemas.ids import iso
from schemas.record import JsonObject

logger = logging.getLogger(__name__)


def release(
    context: BuildContext,
    as_of: datetime,
    keep: int | None,
    accepted: Sequence[str] = (),
) -> JsonObject:
    """Publish behind the contracts, let the registry's champion serve, keep the newest few of both
    (None: keep all).

    Killed before the pointer moves, the old graph serves; killed after it, the next release finds
    the same snapshot and only sets the champion. A graph that was never weighed has no weights to
    register.

    In the report `is_new` is false where the same snapshot was there already, `standing` says which
    answers of standing questions changed, and why, and `accepted` are broken rules that a person
    accepted, which also stand in `about.json` of the snapshot. `not_registered` says what the
    registry lacks, where it failed after the graph was published.
    """
    weighed = stage_ledger.last_completion(context.store, stage_ledger.WEIGHTS)
    if weighed is not None and weighed.as_of is not None:
        tracker = context.open_tracker()
    else:
        tracker = None

    version = None
    if tracker is not None and weighed is not None:
        inputs = describe_datasets(
            context,
            weights.STAGE.reads,
            weighed.digest,
            context.store.counts(),
        )
        broken = []
        for rule in accepted:
            if rule.startswith(f"{stage_ledger.WEIGHTS}."):
                broken.append(rule)

        version = versions.log_weights(
            context.store,
            tracker,
            as_of=as_of,
            inputs=inputs,
            accepted=broken,
        )

    standing: JsonObject = {}

    def approve(folder: Path) -> None:
        require_contracts(
            [
                check_contract(
                    context.store,
                    "snapshot",
                    snapshot=folder,
                    engine=context.engine,
                )
            ]
        )
        standing.update(
            ask_standing(
                context.store,
                context.open_tools,
                context.home,
                folder,
            )
        )
        if (require_build := BUILD_CHECKS.get(context.home.resolve())) is not None:
            require_build()

        if accepted:
            path = folder / manifest.ABOUT
            about = {
                **json.loads(path.read_bytes()),
                "accepted": [*accepted],
            }
            write_whole(path, json.dumps(about))

    with keep_history(context, "night", iso(as_of)):
        published = publish(
            context.store,
            context.home,
            created_at=as_of,
            approve=approve,
        )

    if keep is not None:
        removed = prune(context.home, keep=keep)
    else:
        removed = []

    if removed:
        # or they would go on saying what the removed snapshots said
        context.answer_cache.forget_everything()

    not_registered = ""
    if tracker is not None and version is not None:
        try:
            _register(
                context,
                tracker,
                version,
                published.path,
                keep,
            )
        except TrackingError as error:  # the graph serves: the next release registers it
            not_registered = warn_not_registered(
                context,
                published.snapshot,
                error,
            )

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
        "not_registered": not_registered,
    }


def _register(
    context: BuildContext,
    tracker: Tracker,
    weights_version: str,
    folder: Path,
    keep: int | None,
) -> None:
    """Let `champion` name the parts of a snapshot that serves, and keep the newest of each."""
    versions.promote(
        tracker,
        weights_version,
        folder.name,
    )
    register_parts(context, tracker, folder)

    if keep is None:
        return

    kept_snapshots = []
    for snapshot in snapshots(context.home):
        kept_snapshots.append(snapshot.snapshot)

    for model in MODELS:
        versions.retain(
            tracker,
            keep,
            snapshots=kept_snapshots,
            model=model,
        )


def warn_not_registered(
    context: BuildContext,
    subject: str,
    error: TrackingError,
) -> str:
    """Say in the log and among the alerts what the registry lacks of a graph that serves; the
    reason.
    """
    reason = f"{subject} is not in the registry: {error}"
    logger.warning("the graph is published, but %s", reason)
    append_alert(
        context.home,
        utc_now(),
        "not registered",
        subject,
        reason,
    )
    return reason


# What a snapshot was made of, as registered versions: the alias `champion` names those that serve.

# The columns by which the rows of a part are looked up are what its signature takes; the others are
# what it gives.
_PARTS: tuple[tuple[str, NightStage, str, tuple[str, ...]], ...] = (
    ("hades-hierarchy", topics.STAGE, "clusters", ("centroid",)),
    ("hades-bridges", bridges.STAGE, "bridge_cache", ("from_cluster", "to_cluster")),
    ("hades-exam", exam.STAGE, "", ("text",)),  # of a file
)
SNAPSHOT_MODEL = "hades-snapshot"
MODELS = (versions.WEIGHTS_MODEL, *(model for model, *_ in _PARTS), SNAPSHOT_MODEL)


def register_parts(
    context: BuildContext,
    tracker: Tracker,
    folder: Path,
) -> None:
    """Register the parts of a snapshot and its manifest, and let `champion` name them; known data
    is logged once.
    """
    (contents, manifest_hash), counts = manifest.load(folder), cache(context.store.counts)
    for model, stage, collection, takes in _PARTS:
        stage_record = stage_ledger.last_completion(context.store, stage.ledger or stage.name)
        if stage_record is None or not stage_record.generation:
            continue

        version = version_with_hash(tracker.versions(model), stage_record.generation)
        if version is None:
            if collection:
                columns = declared(collection).schema.names
                rows = read_columns(context.store, collection, columns)
            else:
                rows = exam.read_table(context.home)

            record = RunRecord(
                f"{stage.name} {stage_record.generation[:8]}",
                metrics=stage.metrics(stage_record.report),
                tags={DATA_HASH: stage_record.generation},
                inputs=describe_datasets(
                    context,
                    stage.reads,
                    stage_record.digest,
                    counts(),
                ),
                signature=versions.signature_of(rows.schema, takes),
            )
            name = f"{model.removeprefix('hades-')}.parquet"
            write_file = partial(pq.write_table, rows, compression="zstd")
            version = versions.log_version(
                tracker,
                model,
                record,
                name,
                write_file,
            )

        versions.promote(
            tracker,
            version,
            folder.name,
            model,
        )

    version = version_with_hash(tracker.versions(SNAPSHOT_MODEL), manifest_hash)
    if version is None:
        row_counts = {
            **contents.nodes,
            **contents.edges,
            "documents": contents.documents,
        }
        metrics = {"bytes": float(sum(file.bytes for file in contents.files.values()))}
        metrics |= {f"rows.{name}": float(count) for name, count in row_counts.items() if count}
        record = RunRecord(
            folder.name,
            params=contents.parts,
            metrics=metrics,
            tags={DATA_HASH: manifest_hash},
            artifacts=[folder / manifest.MANIFEST],
            inputs=describe_datasets(
                context,
                STAGE.reads,
                manifest_hash,
                counts(),
            ),
        )
        run = tracker.log_run(SNAPSHOT_MODEL, record)
        about = versions.ABOUT[SNAPSHOT_MODEL]
        version = tracker.register(
            SNAPSHOT_MODEL,
            run,
            manifest.MANIFEST,
            about,
        )

    versions.promote(
        tracker,
        version,
        folder.name,
        SNAPSHOT_MODEL,
    )


def release_if(
    changed: bool,
    context: BuildContext,
    as_of: datetime,
    keep: int | None,
) -> JsonObject | None:
    """The report of a release where something changed, else None."""
    return release(context, as_of, keep) if changed else None


def publish_now(
    context: BuildContext,
    now: datetime,
    keep: int | None,
) -> JsonObject:
    """Publish what the store holds, if every contract holds; stages that were built before are
    brought up to date.
    """
    moment = default_moment(now)
    if stage_ledger.last_completion(context.store, stage_ledger.HIERARCHY) is not None:
        topics.build_topics(context, moment)
    if stage_ledger.last_completion(context.store, stage_ledger.WEIGHTS) is not None:
        weights.weigh(context, moment)
    if stage_ledger.last_completion(context.store, stage_ledger.BRIDGES) is not None:
        bridges.bridge(context, moment)
    if stage_ledger.last_completion(context.store, exam.EXAM) is not None:
        exam.build_exam(context)  # a file, which an export of the store does not hold

    check_contracts(context, CONTRACT_NAMES[:-1]).require()
    return release(context, moment, keep)


def _describe(report: Report) -> str:
    sentence = f"{report['snapshot']} serves, weights version {report['weights_version']}"
    if "kept_as" in report:
        place = f"{report['snapshot']} is kept as {report['kept_as']}"
        sentence = f"{place}: compare it, then promote or discard it"

    if standing := report["standing"]:
        changed = f"{standing['changed']} of {standing['asked']}"
        sentence += f"; {changed} standing answers changed"

    return sentence


STAGE = NightStage(
    "released",
    "publish snapshot",
    lambda context, ingest, night: release(
        context,
        night.as_of,
        night.keep,
        night.accepted,
    ),
    _describe,
    reads=(*TEXTS, *EDGE_COLLECTIONS, *TOPICS, "bridge_cache"),
    writes=("snapshot",),
    figures=("standing.asked", "standing.changed"),
    is_light=True,
)


@dataclass(frozen=True)
class RollbackReport:
    """What serves now, and how long readers waited for it."""

    snapshot: str
    pointer_seconds: float
    weights_version: str | None
    restored: int = 0
    weighed: int = 0
    missing: int = 0
    note: str = ""
    ranker_version: str | None = None
    bridges: int | None = None


def roll_back_graph(
    context: BuildContext,
    to: str | None,
    act: str = "rollback",
) -> RollbackReport:
    """Let an older snapshot serve at once; then give the store the weights and the ranker it was
    published with.
    """
    if to is None:
        snapshot = None
    else:
        snapshot = resolve_snapshot(context.home, to)

    with keep_history(context, act):
        began = time.perf_counter()
        snapshot = rollback(context.home, snapshot)
        seconds = time.perf_counter() - began

    tracker = context.open_tracker()
    ranker = _restore_ranker(context, tracker, snapshot)
    version = versions.version_of(tracker, snapshot)

    for model in MODELS:
        if (served := versions.version_of(tracker, snapshot, model)) is not None:
            versions.promote(tracker, served, snapshot, model)

    if version is None:
        note = "the registry holds no weights of this snapshot; the store keeps those it has"
        return RollbackReport(
            snapshot,
            seconds,
            None,
            note=note,
            ranker_version=ranker,
        )

    return RollbackReport(
        snapshot,
        seconds,
        version,
        ranker_version=ranker,
        **_restore(context, tracker, version),
    )


def promote_snapshot(context: BuildContext, snapshot: str) -> RollbackReport:
    """Let a snapshot that is there serve, if its files are sound; only its tags stay."""
    root = root_of(context.home)
    snapshot = resolve_snapshot(context.home, snapshot)
    folder = pointer.folder_of(root, snapshot)
    manifest.verify(folder, manifest.load(folder)[0].files)
    restored = roll_back_graph(context, snapshot, "promote")

    for name, pinned in pointer.pins(root).items():
        if pinned == snapshot and name.startswith(PAST_NIGHT):
            pointer.pin(context.home, name, None)

    return restored


def roll_back_weights(context: BuildContext, to: str | None) -> RollbackReport:
    """Give the store older weights and publish them; the rest of the graph stays as it is."""
    tracker = context.open_tracker()
    if (version := to or versions.version_before(tracker)) is None:
        raise weights.WeightError("no older weights have served; name the version to go to")

    restored = _restore(context, tracker, version)
    # Where the graph has other edges than the version, what serves is a version of its own.
    served = versions.log_weights(
        context.store,
        tracker,
        as_of=default_moment(utc_now()),
    )
    return RollbackReport(
        *_publish_again(context, tracker, served),
        served,
        **restored,
    )


def roll_back_ranker(context: BuildContext, to: str | None) -> RollbackReport:
    """Let an older ranker, or with `none` weights by hand, serve in a snapshot of the graph as it
    is.
    """
    tracker = context.open_tracker()
    if to is None and tracker.alias(versions.RANKER_MODEL, versions.CHAMPION) is None:
        raise versions.RankerError("no ranker serves; train one with `hades run train_ranker`")

    version = to or versions.version_before(tracker, versions.RANKER_MODEL) or versions.NONE
    if version in (versions.NONE, versions.FIRST):
        versions.demote_ranker(context.store, tracker)
        note = "the weights that come with the library rank; no version of hades-ranker serves"
    else:
        versions.promote_ranker(
            context.store,
            context.home,
            tracker,
            version,
            None,
        )
        note = versions.describe_ranker(tracker, version)

    snapshot, seconds = _publish_again(context, tracker)
    weighed = versions.version_of(tracker, snapshot)
    return RollbackReport(
        snapshot,
        seconds,
        weighed,
        note=note,
        ranker_version=version,
    )


def _publish_again(
    context: BuildContext,
    tracker: Tracker,
    weights_version: str | None = None,
) -> tuple[str, float]:
    """Publish and register what the store holds now; the snapshot, and how long readers waited for
    it.
    """
    with keep_history(context):
        began = time.perf_counter()
        published = publish(context.store, context.home)
        seconds = time.perf_counter() - began

    if weights_version is not None:
        versions.promote(
            tracker,
            weights_version,
            published.snapshot,
        )

    register_parts(context, tracker, published.path)
    return published.snapshot, seconds


def roll_back(
    context: BuildContext,
    part: str,
    to: str | None,
) -> RollbackReport:
    """Go back as told: the graph, its weights or its ranker."""
    ways = {
        "graph": roll_back_graph,
        "weights": roll_back_weights,
        "ranker": roll_back_ranker,
    }
    return ways[part](context, to)


def _restore(
    context: BuildContext,
    tracker: Tracker,
    version: str,
) -> JsonObject:
    """Give the store older weights, and bridges by them where any were built: the next publishing
    finds both.
    """
    restored: JsonObject = {**versions.restore_weights(context, tracker, version)}
    if stage_ledger.last_completion(context.store, stage_ledger.BRIDGES) is None:
        return restored

    count = int(bridges.bridge(context, default_moment(utc_now()))["bridges"])
    return {
        **restored,
        "bridges": count,
        "note": f"{count:,} bridges were built again by the restored weights",
    }


def _restore_ranker(
    context: BuildContext,
    tracker: Tracker,
    snapshot: str,
) -> str | None:
    """Let the store name the ranker of a snapshot again, so that the next publishing agrees with
    it; its version.
    """
    contents, _ = manifest.load(root_of(context.home) / snapshot)
    generation = contents.parts.get(versions.RANKER, "")
    version = None

    for registered in tracker.versions(versions.RANKER_MODEL) if generation else ():
        if registered.tags.get(versions.GENERATION) == generation:
            version = registered.version  # the newest comes first
            break

    if version is not None:
        try:
            versions.promote_ranker(
                context.store,
                context.home,
                tracker,
                version,
                None,
            )
        except versions.RankerError:  # this version cannot use it: the shipped weights rank
            version, generation = None, ""

    if not generation:
        versions.demote_ranker(context.store, tracker)

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


def append_alert(
    home: Path,
    at: datetime,
    kind: str,
    subject: str,
    detail: str,
) -> Path:
    """Keep one alert; the file it stands in."""
    line = {
        "at": iso(at),
        "what": kind,
        "subject": subject,
        "detail": detail,
    }
    return append_line(home / "logs" / "alerts.jsonl", line)
