"""Registry without MLflow; waiting writes; tenants."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hades.ports.services import DATA_HASH, Tracker, TrackingError, Version, delete_older, version_with_hash

# The registry of fitted things in one SQLite file and a folder, for an installation without MLflow.


_TABLES = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, experiment TEXT, name TEXT, data_hash TEXT, tags TEXT,
  params TEXT, metrics TEXT, files TEXT, created TEXT);
CREATE TABLE IF NOT EXISTS versions (name TEXT, version INTEGER, run TEXT, artifact TEXT, tags TEXT, created TEXT,
  PRIMARY KEY (name, version));
CREATE TABLE IF NOT EXISTS aliases (name TEXT, alias TEXT, version INTEGER, PRIMARY KEY (name, alias));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, last INTEGER);
"""


class FileTracker:
    """See `Tracker`. Every change is one transaction; files are written before the row that names them."""

    def __init__(self, database: Path, folder: Path) -> None:
        self._database, self._folder = database, folder

    def log_run(
        self,
        experiment: str,
        name: str,
        *,
        params: Mapping[str, object],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        tags: Mapping[str, str],
    ) -> str:
        """See `Tracker.log_run`."""
        with self._changing() as rows:
            known = rows.execute(
                "SELECT id FROM runs WHERE experiment = ? AND data_hash = ?", (experiment, tags[DATA_HASH])
            ).fetchone()
            if known is not None:
                return str(known[0])
            run = hashlib.sha256(f"{experiment}\n{tags[DATA_HASH]}".encode()).hexdigest()[:32]
            place = self._folder / run
            place.mkdir(parents=True, exist_ok=True)
            for path in artifacts:
                shutil.copyfile(path, place / path.name)
            files = {path.name: _sha256(place / path.name) for path in artifacts}
            told = (json.dumps(dict(tags)), json.dumps(dict(params), default=str), json.dumps(dict(metrics)))
            values = (run, experiment, name, tags[DATA_HASH], *told, json.dumps(files), _now())
            rows.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            return run

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`."""
        with self._changing() as rows:
            found = rows.execute("SELECT tags, files FROM runs WHERE id = ?", (run,)).fetchone()
            if found is None or artifact not in json.loads(found[1]):
                raise TrackingError(f"run {run} has no file {artifact!r}; log it with the run before registering it")
            tags = json.loads(found[0])
            for one in _versions(rows, name):
                if one.tags.get(DATA_HASH) == tags[DATA_HASH]:
                    return one.version
            rows.execute("INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1", (name,))
            (version,) = rows.execute("SELECT last FROM counters WHERE name = ?", (name,)).fetchone()
            values = (name, version, run, artifact, json.dumps(tags), _now())
            rows.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", values)
            return str(version)

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        with self._changing() as rows:
            return _versions(rows, name)

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        return version_with_hash(self.versions(name), data_hash)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`."""
        return delete_older(self, name, keep, needed)

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        with self._changing() as rows:
            known = _known(rows, name, version)
            rows.execute(
                "UPDATE versions SET tags = ? WHERE name = ? AND version = ?",
                (json.dumps({**known.tags, **tags}), name, version),
            )

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return next((one.version for one in self.versions(name) if alias in one.aliases), None)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        with self._changing() as rows:
            _known(rows, name, version)
            rows.execute("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", (name, alias, version))

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        with self._changing() as rows:
            known = _known(rows, name, version)
            (artifact,) = rows.execute(
                "SELECT artifact FROM versions WHERE name = ? AND version = ?", (name, version)
            ).fetchone()
            (files,) = rows.execute("SELECT files FROM runs WHERE id = ?", (known.run,)).fetchone()
        path = self._folder / known.run / str(artifact)
        if not path.is_file():
            raise TrackingError(f"{name} version {version}: {path} is gone; choose another of its versions")
        if _sha256(path) != json.loads(files)[artifact]:
            raise TrackingError(f"{name} version {version}: {path} was changed after it was logged; choose another")
        return path

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`."""
        with self._changing() as rows:
            known = _known(rows, name, version)
            if known.aliases:
                named = ", ".join(known.aliases)
                raise TrackingError(
                    f"{name} version {version} is named by {named}; let the alias name another version first"
                )
            rows.execute("DELETE FROM versions WHERE name = ? AND version = ?", (name, version))
            if rows.execute("SELECT 1 FROM versions WHERE run = ?", (known.run,)).fetchone() is None:
                rows.execute("DELETE FROM runs WHERE id = ?", (known.run,))
                shutil.rmtree(self._folder / known.run, ignore_errors=True)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._database, timeout=60, isolation_level=None)) as rows:
            rows.executescript(_TABLES)
            rows.execute("BEGIN IMMEDIATE")
            try:
                yield rows
            except BaseException:
                rows.execute("ROLLBACK")
                raise
            rows.execute("COMMIT")


def _versions(rows: sqlite3.Connection, name: str) -> list[Version]:
    aliases: dict[int, list[str]] = {}
    for alias, version in rows.execute("SELECT alias, version FROM aliases WHERE name = ? ORDER BY alias", (name,)):
        aliases.setdefault(int(version), []).append(alias)
    found = rows.execute(
        "SELECT version, run, tags, created FROM versions WHERE name = ? ORDER BY version DESC", (name,)
    ).fetchall()
    return [
        Version(
            name, str(version), datetime.fromisoformat(created), run, json.loads(tags), tuple(aliases.get(version, ()))
        )
        for version, run, tags, created in found
    ]


def _known(rows: sqlite3.Connection, name: str, version: str) -> Version:
    found = next((one for one in _versions(rows, name) if one.version == version), None)
    if found is None:
        raise TrackingError(f"{name} has no version {version}; `hades snapshots` lists the versions")
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat()


# Where the registry's file believes its artifacts to be, and telling it that they have moved. MLflow writes whole
# paths into its database. A home that is restored or moved to another place would otherwise look for the files of
# old weights where they were.


_EXPERIMENTS = "SELECT DISTINCT artifact_location FROM experiments WHERE artifact_location LIKE 'file://%'"
_MOVE_EXPERIMENTS = "UPDATE experiments SET artifact_location = ?2 WHERE artifact_location = ?1"
_MOVE_RUNS = """
UPDATE runs SET artifact_uri = ?2 || substr(artifact_uri, length(?1) + 1)
WHERE substr(artifact_uri, 1, length(?1) + 1) = ?1 || '/'
"""


def relocate_artifacts(database: Path, artifacts: Path) -> int:
    """Make every run of the registry's file look for its files below `artifacts`; how many runs had another place."""
    here = artifacts.resolve().as_uri()
    moved = 0
    with closing(sqlite3.connect(database)) as registry, registry:
        for (there,) in registry.execute(_EXPERIMENTS).fetchall():
            if there != here and there.endswith(f"/{artifacts.name}"):
                moved += registry.execute(_MOVE_RUNS, (there, here)).rowcount
                registry.execute(_MOVE_EXPERIMENTS, (there, here))
    return moved


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it. The system lets go of it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stamp_of(database: Path) -> list[int]:
    """Size and time of the last change of the registry's file; zeros where there is none."""
    try:
        found = database.stat()
    except FileNotFoundError:
        return [0, 0]
    return [found.st_size, found.st_mtime_ns]


# A registry whose writes wait in files until something is read from it. Where MLflow must be loaded, that takes
# four seconds of processor time, more than the rest of a night after a small change, and most nights only write to
# it: a run, a version, its tags, the alias. These wait in order in a folder and are delivered by the next process
# that reads the registry, or when `MOST_RUNS` runs wait. Version numbers are given out ahead: they are known as
# long as nobody else has written to the registry's file.


MOST_RUNS = 7
_KNOWN = "known.json"
_WAITING = "waiting-"  # begins the id of a run that is not delivered yet
Operation = dict[str, Any]


class DeferredTracker:
    """A `Tracker` over another one. `stamp` changes with every write to the file of the inner registry."""

    def __init__(self, inner: Tracker, folder: Path, stamp: Callable[[], list[int]]) -> None:
        self._inner, self._folder, self._stamp = inner, folder, stamp
        self._is_open = False

    def log_run(
        self,
        experiment: str,
        name: str,
        *,
        params: Mapping[str, object],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        tags: Mapping[str, str],
    ) -> str:
        """See `Tracker.log_run`."""
        told: Operation = {"experiment": experiment, "name": name, "metrics": dict(metrics), "tags": dict(tags)}
        told["params"] = {key: str(value) for key, value in params.items()}
        if not self._may_wait() or self._is_full():
            return self._open().log_run(**{**told, "artifacts": artifacts})
        for number, one in self._waiting():
            if one["do"] == "log_run" and one["experiment"] == experiment and _hash(one) == tags.get(DATA_HASH):
                return f"{_WAITING}{number}"
        number = self._append({"do": "log_run", **told, "artifacts": [path.name for path in artifacts]}, artifacts)
        return f"{_WAITING}{number}"

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`. Of a run that waits, the number that the registry is going to give."""
        if self._is_open or not run.startswith(_WAITING):
            version = self._open().register(name, run, artifact)
            self._note(name)
            return version
        data_hash = _hash(dict(self._waiting())[run.removeprefix(_WAITING)])
        known = self.version_of(name, data_hash)
        if known is not None:
            return known
        version = str(self._last(name) + 1)
        told = {"name": name, "run": run, "artifact": artifact, "version": version, "data_hash": data_hash}
        self._append({"do": "register", **told})
        return version

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        if not self._may_wait():
            return self._open().version_of(name, data_hash)
        for _, one in self._waiting():
            if one["do"] == "register" and one["name"] == name and one["data_hash"] == data_hash:
                return str(one["version"])
        known: str | None = self._known()["models"].get(name, {}).get("hashes", {}).get(data_hash)
        return known

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        if self._may_wait() and self._is_known(name, version):
            self._append({"do": "tag", "name": name, "version": version, "tags": dict(tags)})
            return
        self._open().tag(name, version, tags)
        self._note(name)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        if self._may_wait() and self._is_known(name, version):
            self._append({"do": "set_alias", "name": name, "alias": alias, "version": version})
            return
        self._open().set_alias(name, alias, version)
        self._note(name)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`. What waits to be removed is not named."""
        if self._may_wait():
            self._append({"do": "keep_newest", "name": name, "keep": keep, "needed": list(needed)})
            return []
        gone = self._open().keep_newest(name, keep, needed)
        self._note(name)
        return gone

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        return self._open().versions(name)

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return self._open().alias(name, alias)

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        return self._open().fetch(name, version)

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`."""
        self._open().delete_version(name, version)
        self._note(name)

    def deliver(self) -> int:
        """Write everything that waits to the registry, in order; how many operations. Repeating it changes nothing."""
        with hold_lock(self._folder / ".lock"):
            waiting = self._waiting()
            runs: dict[str, str] = {}
            numbers: dict[tuple[str, str], str] = {}
            for number, one in waiting:
                self._apply(number, one, runs, numbers)
            for name in sorted({one["name"] for _, one in waiting if one["do"] != "log_run"}):
                self._note(name)
            for number, _ in waiting:
                (self._folder / f"{number}.json").unlink()
                shutil.rmtree(self._folder / number, ignore_errors=True)
        return len(waiting)

    def _apply(self, number: str, one: Operation, runs: dict[str, str], numbers: dict[tuple[str, str], str]) -> None:
        """One operation; `numbers` are those the registry gave where it gave others than were expected."""
        told = {key: value for key, value in one.items() if key not in ("do", "data_hash")}
        if one["do"] == "log_run":
            told["artifacts"] = [self._folder / number / name for name in one["artifacts"]]
            runs[f"{_WAITING}{number}"] = self._inner.log_run(**told)
        elif one["do"] == "register":
            made = self._inner.register(one["name"], runs[one["run"]], one["artifact"])
            numbers[one["name"], one["version"]] = made
        else:
            if "version" in told:
                told["version"] = numbers.get((one["name"], one["version"]), one["version"])
            getattr(self._inner, one["do"])(**told)

    def _open(self) -> Tracker:
        """The inner registry, after everything that waits was written to it."""
        if not self._is_open:
            self.deliver()
            self._is_open = True
        return self._inner

    def _may_wait(self) -> bool:
        """Whether a write can wait: nothing was read yet, and the state of the registry is known."""
        return not self._is_open and bool(self._known()["stamp"] == self._stamp())

    def _is_full(self) -> bool:
        return len([number for number, one in self._waiting() if one["do"] == "log_run"]) >= MOST_RUNS

    def _is_known(self, name: str, version: str) -> bool:
        return version.isdigit() and int(version) <= self._last(name)

    def _last(self, name: str) -> int:
        """The last version number that was given out or promised."""
        promised = [
            int(one["version"]) for _, one in self._waiting() if one["do"] == "register" and one["name"] == name
        ]
        return max([int(self._known()["models"].get(name, {}).get("last", 0)), *promised])

    def _note(self, name: str) -> None:
        """Remember the versions of a name, so that the next process need not load the registry to know them."""
        found, known = self._inner.versions(name), self._known()
        last = max([int(known["models"].get(name, {}).get("last", 0)), *(int(one.version) for one in found)])
        hashes = {one.tags.get(DATA_HASH, ""): one.version for one in reversed(found)}
        known["models"][name] = {"last": last, "hashes": hashes}
        self._write(_KNOWN, {**known, "stamp": self._stamp()})

    def _known(self) -> Operation:
        try:
            known: Operation = json.loads((self._folder / _KNOWN).read_text())
        except (OSError, ValueError):  # nothing noted yet: the registry is opened and says
            return {"stamp": None, "models": {}}
        return known

    def _waiting(self) -> list[tuple[str, Operation]]:
        return [(path.stem, json.loads(path.read_text())) for path in self._files()]

    def _files(self) -> list[Path]:
        """What waits, in order."""
        return sorted(self._folder.glob("[0-9]*.json"))

    def _append(self, operation: Operation, artifacts: Sequence[Path] = ()) -> str:
        """Keep an operation, its files before the line that names them; its number."""
        with hold_lock(self._folder / ".lock"):
            taken = [int(path.stem) for path in self._files()]
            number = f"{max(taken, default=0) + 1:06d}"
            if artifacts:
                (self._folder / number).mkdir(parents=True, exist_ok=True)
                for path in artifacts:
                    shutil.copyfile(path, self._folder / number / path.name)
            self._write(f"{number}.json", operation)
        return number

    def _write(self, name: str, contents: Operation) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f"{name}.partial"
        partial.write_text(json.dumps(contents))
        partial.replace(self._folder / name)


def _hash(operation: Operation) -> str:
    return str(operation["tags"].get(DATA_HASH, ""))


# A tenant's part of a registry that several share: every experiment and every name carries the tenant's.


class TenantTracker:
    """A `Tracker` whose callers use plain names and reach no version of another tenant."""

    def __init__(self, tracker: Tracker, tenant: str) -> None:
        self._tracker, self._tenant = tracker, tenant

    def log_run(
        self,
        experiment: str,
        name: str,
        *,
        params: Mapping[str, object],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        tags: Mapping[str, str],
    ) -> str:
        """See `Tracker.log_run`."""
        mine = {**tags, "tenant": self._tenant}
        return self._tracker.log_run(
            self._mine(experiment), name, params=params, metrics=metrics, artifacts=artifacts, tags=mine
        )

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`."""
        return self._tracker.register(self._mine(name), run, artifact)

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        return [replace(one, name=name) for one in self._tracker.versions(self._mine(name))]

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        return version_with_hash(self.versions(name), data_hash)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`."""
        return delete_older(self, name, keep, needed)

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        self._tracker.tag(self._mine(name), version, tags)

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return self._tracker.alias(self._mine(name), alias)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        self._tracker.set_alias(self._mine(name), alias, version)

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        return self._tracker.fetch(self._mine(name), version)

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`."""
        self._tracker.delete_version(self._mine(name), version)

    def _mine(self, name: str) -> str:
        return f"{self._tenant}.{name}"
