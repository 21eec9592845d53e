"""The registry of fitted things in one SQLite file and a folder, for an installation without
MLflow.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hades.files import sha256_of
from hades.ports.services import (
    DATA_HASH,
    RunRecord,
    Tracker,
    TrackingError,
    Version,
    check_file,
    version_with_hash,
)
from schemas.ids import iso

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, experiment TEXT, name TEXT, data_hash TEXT, tags TEXT,
  params TEXT, metrics TEXT, files TEXT, created TEXT);
CREATE TABLE IF NOT EXISTS versions (
  name TEXT, version INTEGER, run TEXT, artifact TEXT, tags TEXT, created TEXT,
  PRIMARY KEY (name, version));
CREATE TABLE IF NOT EXISTS aliases (
  name TEXT, alias TEXT, version INTEGER, PRIMARY KEY (name, alias));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, last INTEGER);
"""


class FileTracker(Tracker):
    """See `Tracker`. Every change is one transaction; files are written before the row that names
    them.
    """

    def __init__(self, database: Path, folder: Path) -> None:
        self._database, self._folder = database, folder

    def log_run(self, experiment: str, record: RunRecord) -> str:
        """See `Tracker.log_run`. Times, inputs, parts and status are kept as tags."""
        data_hash = record.tags[DATA_HASH]
        artifacts = record.artifacts

        with self._transaction() as connection:
            known = connection.execute(
                "SELECT id FROM runs WHERE experiment = ? AND data_hash = ?",
                (experiment, data_hash),
            ).fetchone()
            if known is not None:
                return str(known[0])

            run = hashlib.sha256(f"{experiment}\n{data_hash}".encode()).hexdigest()[:32]
            place = self._folder / run
            place.mkdir(parents=True, exist_ok=True)

            for path in artifacts:
                shutil.copyfile(path, place / path.name)

            for table, listed in record.tables.items():
                (place / f"{table}.json").write_text(
                    json.dumps(listed, default=str),
                    encoding="utf-8",
                )

            files = {path.name: sha256_of(place / path.name) for path in artifacts}
            parts = (_tags(record), dict(record.params), dict(record.metrics))
            texts = [json.dumps(part, default=str) for part in parts]
            values = (run, experiment, record.name, data_hash, *texts, json.dumps(files), _now())
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            return run

    def register(
        self,
        name: str,
        run: str,
        artifact: str,
        about: str = "",
    ) -> str:
        """See `Tracker.register`. Nobody browses this registry, so nothing is described."""
        with self._transaction() as connection:
            row = connection.execute("SELECT tags, files FROM runs WHERE id = ?", (run,)).fetchone()
            if row is None or artifact not in json.loads(row[1]):
                raise TrackingError(
                    f"run {run} has no file {artifact!r}; log it with the run before registering it"
                )

            tags = json.loads(row[0])
            same = version_with_hash(_versions(connection, name), tags[DATA_HASH])
            if same is not None:
                return same

            connection.execute(
                "INSERT INTO counters VALUES (?, 1) "
                "ON CONFLICT (name) DO UPDATE SET last = last + 1",
                (name,),
            )
            counter = connection.execute("SELECT last FROM counters WHERE name = ?", (name,))
            (version,) = counter.fetchone()
            values = (name, version, run, artifact, json.dumps(tags), _now())
            connection.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", values)
            return str(version)

    def versions(self, name: str) -> list[Version]:
        with self._transaction() as connection:
            return _versions(connection, name)

    def tag(
        self,
        name: str,
        version: str,
        tags: Mapping[str, str],
    ) -> None:
        self.known(name, version)
        added = "UPDATE versions SET tags = json_patch(tags, ?) WHERE name = ? AND version = ?"
        with self._transaction() as connection:
            connection.execute(added, (json.dumps(dict(tags)), name, version))

    def set_alias(self, name: str, alias: str, version: str) -> None:
        self.known(name, version)
        with self._transaction() as connection:
            known = "SELECT name, ?, version FROM versions WHERE name = ? AND version = ?"
            connection.execute(
                f"INSERT OR REPLACE INTO aliases {known}",
                (alias, name, version),
            )

    def delete_alias(self, name: str, alias: str) -> None:
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM aliases WHERE name = ? AND alias = ?",
                (name, alias),
            )

    def fetch(self, name: str, version: str) -> Path:
        known = self.known(name, version)
        query = (
            "SELECT artifact, files FROM versions JOIN runs ON id = run "
            "WHERE versions.name = ? AND version = ?"
        )
        with self._transaction() as connection:
            artifact, files = connection.execute(query, (name, version)).fetchone()

        path = self._folder / known.run / str(artifact)
        return check_file(known, path, json.loads(files)[artifact])

    def delete_version(self, name: str, version: str) -> None:
        known = self.unnamed(name, version)
        with self._transaction() as connection:
            free = "(name, version) NOT IN (SELECT name, version FROM aliases)"
            connection.execute(
                f"DELETE FROM versions WHERE name = ? AND version = ? AND {free}",
                (name, version),
            )
            remaining = connection.execute("SELECT 1 FROM versions WHERE run = ?", (known.run,))

            if remaining.fetchone() is None:
                connection.execute("DELETE FROM runs WHERE id = ?", (known.run,))
                shutil.rmtree(self._folder / known.run, ignore_errors=True)

    def trim_runs(
        self,
        experiment: str,
        keep: int,
        *,
        needed: Collection[str],
        models: Sequence[str],
    ) -> None:
        """See `Tracker.trim_runs`. The run of a version went with it, whatever the model."""
        older = "SELECT id, params FROM runs WHERE experiment = ? ORDER BY created DESC, rowid DESC"
        with self._transaction() as connection:
            rows = connection.execute(f"{older} LIMIT -1 OFFSET ?", (experiment, keep)).fetchall()
            for run, params in rows:
                if json.loads(params).get("snapshot") not in needed:
                    connection.execute("DELETE FROM runs WHERE id = ?", (run,))
                    shutil.rmtree(self._folder / run, ignore_errors=True)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with closing(
            sqlite3.connect(
                self._database,
                timeout=60,
                isolation_level=None,
            )
        ) as connection:
            connection.executescript(_TABLES)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise

            connection.execute("COMMIT")


def _tags(record: RunRecord) -> dict[str, str]:
    times = {}
    for name, at in (("began", record.began), ("ended", record.ended)):
        if at is not None:
            times[name] = iso(at)

    inputs = {f"input.{dataset.name}": dataset.digest for dataset in record.inputs}
    parts = {}
    for part in record.parts:
        parts[f"part.{part.name}"] = json.dumps([_tags(part), dict(part.metrics)])

    if record.children:
        children = {"children": " ".join(record.children)}
    else:
        children = {}

    if record.status == "FINISHED":
        status = {}
    else:
        status = {"status": record.status}

    return {
        **record.tags,
        **times,
        **inputs,
        **parts,
        **children,
        **status,
    }


def _versions(connection: sqlite3.Connection, name: str) -> list[Version]:
    aliases: dict[int, list[str]] = {}
    for alias, version in connection.execute(
        "SELECT alias, version FROM aliases WHERE name = ? ORDER BY alias",
        (name,),
    ):
        aliases.setdefault(int(version), []).append(alias)

    rows = connection.execute(
        "SELECT version, run, tags, created FROM versions WHERE name = ? ORDER BY version DESC",
        (name,),
    ).fetchall()
    return [
        Version(
            name=name,
            version=str(version),
            created=datetime.fromisoformat(created),
            run=run,
            tags=json.loads(tags),
            aliases=tuple(aliases.get(version, ())),
        )
        for version, run, tags, created in rows
    ]


def _now() -> str:
    return datetime.now(UTC).isoformat()
