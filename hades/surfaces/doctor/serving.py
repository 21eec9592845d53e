"""What readers see: the snapshot that serves, whether it is whole, how old it is, and how the last nights went."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hades.errors import SnapshotError
from hades.snapshot import manifest, pointer
from hades.snapshot.file_hash import hash_file
from hades.snapshot.retention import snapshots
from hades.snapshot.verification import stamps_of
from hades.stages.forecast import last_runs
from hades.surfaces.doctor.finding import Check, hours

STALE_SECONDS = 36 * 3600  # a nightly that ran yesterday and not today
_LOCK = ".lock"


def check_snapshot(home: Path, model: str | None, now: datetime, *, deep: bool) -> Iterator[Check]:
    """The pointer, the files of what serves, who is at work on them, and whether its vectors fit the embedder."""
    root = pointer.root_of(home)
    if not root.is_dir() or not (held := snapshots(home)):
        yield Check("snapshot", "ok", "none yet")
        return
    yield from _check_leftovers(root)
    try:
        serving = pointer.read(root)
        if serving is None:
            yield Check("snapshot", "fail", f"{len(held)} are there, none serves", "hades publish")
            return
        contents = _sound(root / serving.snapshot, deep)
    except SnapshotError as error:
        step = "hades publish" if len(held) < 2 else "hades rollback graph, or hades publish"
        yield Check("snapshot", "fail", str(error), step)
        return
    created = next((one.created_at for one in held if one.serves), None)
    age = None if created is None else (now - _moment(created)).total_seconds()
    looked = "every byte was read" if deep else "complete"
    told = f"{serving.snapshot} serves, {looked}, {len(held)} kept"
    yield Check("snapshot", "ok", told + ("" if age is None else f", as of {hours(max(0.0, age))} ago"))
    tags = sorted({tag for kinds in contents.models.values() for tag in kinds})
    if model is not None and tags and model not in tags:
        found = f"vectors of {', '.join(tags)} serve, questions are embedded by {model}"
        yield Check("vectors", "warn", found, "set HADES_EMBEDDER back, or hades run reembed")


def check_nights(home: Path, now: datetime) -> Iterator[Check]:
    """When the last build ended, and what was alerted since."""
    runs = last_runs(home, 1)
    if not runs:
        yield Check("nightly", "ok", "none yet; `hades build` builds topics, weights and bridges")
        return
    ended = _moment(runs[0].build.removeprefix("nightly-"))
    age = (now - ended).total_seconds()
    told = f"last one {hours(age)} ago, {sum(runs[0].seconds.values()):.0f} s, published {runs[0].snapshot}"
    if age > STALE_SECONDS:
        yield Check("nightly", "warn", told, "is a worker or hades-nightly.timer running? by hand: hades build")
    else:
        yield Check("nightly", "ok", told)
    if alert := _last_alert(home, ended):
        yield Check("alerts", "warn", alert, "see logs/alerts.jsonl and the newest page of reports/")


def _sound(folder: Path, deep: bool) -> manifest.Manifest:
    """The manifest of a folder that holds every file at its size; with `deep`, every byte as it was written."""
    contents, _ = manifest.load(folder)
    stamps_of(folder, contents.arrays)
    for name, spec in contents.arrays.items() if deep else ():
        if hash_file(folder / name) != spec.hash:
            raise SnapshotError(f"snapshot {folder.name}: {name} was damaged after publishing; publish again")
    return contents


def _check_leftovers(root: Path) -> Iterator[Check]:
    """Folders of publishers: one that holds the lock is at work, one that does not has died."""
    left = sorted(path.name for path in root.glob(".*-*") if path.is_dir())
    lock = root / _LOCK
    if not left or not lock.is_file():
        return
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield Check("publishing", "ok", "a publish, rollback or prune is running")
            return
    yield Check("publishing", "warn", f"a publisher died and left {', '.join(left)}", "hades publish removes them")


def _last_alert(home: Path, since: datetime) -> str:
    """The newest alert after a moment, in a sentence; empty when there was none."""
    path = home / "logs" / "alerts.jsonl"
    if not path.is_file():
        return ""
    lines = path.read_text("utf-8").splitlines()[-50:]
    for line in reversed(lines):
        try:
            alert = json.loads(line)
            if _moment(alert["at"]) >= since:
                return f"{alert['what']}: {alert['subject']} ({alert['at']})"
        except (ValueError, KeyError, TypeError):  # a line that was cut by a full disk says nothing
            continue
    return ""


def _moment(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
