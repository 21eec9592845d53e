"""MLflow's registry file read and written as the SQLite file it is, without loading MLflow, which takes seconds.

Only a file whose tables have the form that is known here is treated so, and only for what the nights of a home do: more
runs of an experiment that exists, more versions of a name that exists. Anything else is left to MLflow itself. A test
compares every row with the rows that MLflow writes.
"""

from __future__ import annotations

import math
import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hades.ports.tracking import DATA_HASH, TrackingError, Version
from hades.providers.mlflow_tracker import (
    ARTIFACT,
    LONGEST_PARAM,
    RETIRED,
    SHA256,
    WRITER,
    MlflowTracker,
    hash_artifacts,
    is_ours,
)

KNOWN_FORM = "dc11669786a5"  # the migration of MLflow's tables that this module knows
_DELETED = "Deleted_Internal"
_WORKSPACE = "default"
_EXPERIMENT = (
    "SELECT experiment_id, artifact_location FROM experiments WHERE name = ? AND workspace = ? "
    "AND lifecycle_stage = 'active'"
)
_LOGGED = """
SELECT run_uuid FROM runs JOIN tags USING (run_uuid) WHERE experiment_id = ? AND status = 'FINISHED'
  AND lifecycle_stage = 'active' AND tags.key = ? AND tags.value = ?
  AND run_uuid NOT IN (SELECT run_uuid FROM tags WHERE key = ?) ORDER BY start_time DESC, run_uuid"""
_BURY = """
UPDATE runs SET status = 'KILLED', end_time = ? WHERE experiment_id = ? AND status = 'RUNNING'
  AND run_uuid IN (SELECT run_uuid FROM tags WHERE key = ? AND value = ?)"""
_RUN = """
INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time,
  source_version, lifecycle_stage, artifact_uri, experiment_id)
VALUES (?, ?, 'UNKNOWN', '', '', 'unknown', 'FINISHED', ?, ?, '', 'active', ?, ?)"""
_METRIC = "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, 0, 0)"
_LATEST = "INSERT INTO latest_metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, 0, 0)"
_VERSION = """
INSERT INTO model_versions (name, version, creation_time, last_updated_time, current_stage, source, run_id, status,
  storage_location, workspace)
VALUES (?1, ?2, ?3, ?3, 'None', ?4, ?5, 'READY', ?4, ?6)"""
_VERSION_TAG = "INSERT OR REPLACE INTO model_version_tags (key, value, name, version, workspace) VALUES (?, ?, ?, ?, ?)"
_REDACT = """
UPDATE model_versions SET current_stage = ?, last_updated_time = ?, description = NULL, user_id = NULL,
  source = 'REDACTED-SOURCE-PATH', run_id = 'REDACTED-RUN-ID', run_link = 'REDACTED-RUN-LINK', status_message = NULL
WHERE name = ? AND version = ? AND workspace = ?"""


class _LeftToMlflow(Exception):
    """The file has another form, or something must be created that only MLflow creates."""


class MlflowFileTracker(MlflowTracker):
    """A `Tracker` over the file of a home; its rows are those that MLflow would have written."""

    def __init__(self, database: Path, lock: Path, artifacts: Path) -> None:
        super().__init__(f"sqlite:///{database}", lock, artifacts)
        self._database, self._place = database, artifacts

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
        try:
            if not tags.get(DATA_HASH) or not all(math.isfinite(value) for value in metrics.values()):
                raise _LeftToMlflow
            with self._writing(), self._changing() as rows:
                where = self._find_experiment(rows, experiment)
                rows.execute(_BURY, (_now(), where, WRITER, self._writer))
                known = rows.execute(_LOGGED, (where, DATA_HASH, tags[DATA_HASH], RETIRED)).fetchone()
                if known is not None:
                    return str(known[0])
                run = uuid.uuid4().hex
                self._keep_files(run, artifacts)
                told = {**tags, **hash_artifacts(artifacts), WRITER: self._writer, "mlflow.runName": name}
                self._insert_run(rows, run, where, name, told, params, metrics)
                return run
        except _LeftToMlflow:
            return super().log_run(experiment, name, params=params, metrics=metrics, artifacts=artifacts, tags=tags)

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`."""
        try:
            with self._writing(), self._changing() as rows:
                found = rows.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run,)).fetchall()
                tags = {key: value for key, value in found if is_ours(key)}
                if f"{SHA256}{artifact}" not in tags:
                    raise TrackingError(
                        f"run {run} has no file {artifact!r}; log it with the run before registering it"
                    )
                for known in _versions(rows, name):
                    if known.tags.get(DATA_HASH) == tags[DATA_HASH]:
                        return known.version
                return self._insert_version(rows, name, run, artifact, tags)
        except _LeftToMlflow:
            return super().register(name, run, artifact)

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        try:
            with self._changing("BEGIN") as rows:
                return _versions(rows, name)
        except _LeftToMlflow:
            return super().versions(name)

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        self._known(name, version)
        try:
            with self._changing() as rows:
                told = [(key, value, name, version, _WORKSPACE) for key, value in tags.items()]
                rows.executemany(_VERSION_TAG, told)
        except _LeftToMlflow:
            super().tag(name, version, tags)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        self._known(name, version)
        try:
            with self._changing() as rows:
                told = (alias, version, name, _WORKSPACE)
                rows.execute("INSERT OR REPLACE INTO registered_model_aliases VALUES (?, ?, ?, ?)", told)
        except _LeftToMlflow:
            super().set_alias(name, alias, version)

    def _retire(self, known: Version) -> None:
        try:
            with self._changing() as rows:
                told = (RETIRED, known.version, known.run)
                rows.execute("INSERT OR REPLACE INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", told)
                now = _now()
                rows.execute(_REDACT, (_DELETED, now, known.name, known.version, _WORKSPACE))
                _touch(rows, known.name, now)
        except _LeftToMlflow:
            super()._retire(known)

    @contextmanager
    def _changing(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """One transaction over a file of the known form."""
        if not self._database.is_file():
            raise _LeftToMlflow
        with closing(sqlite3.connect(self._database, timeout=60, isolation_level=None)) as rows:
            rows.execute(begin)
            try:
                if _form_of(rows) != [(KNOWN_FORM,)]:
                    raise _LeftToMlflow
                yield rows
            except BaseException:
                rows.execute("ROLLBACK")
                raise
            rows.execute("COMMIT")

    def _find_experiment(self, rows: sqlite3.Connection, name: str) -> int:
        place = self._place.resolve().as_uri()
        for one in (name, f"{name} in {place}"):
            found = rows.execute(_EXPERIMENT, (one, _WORKSPACE)).fetchone()
            if found is None:
                raise _LeftToMlflow
            if found[1] == place:
                return int(found[0])
        raise _LeftToMlflow

    def _keep_files(self, run: str, artifacts: Sequence[Path]) -> None:
        """Files before the rows that name them."""
        folder = self._place / run / "artifacts"
        folder.mkdir(parents=True)
        for path in artifacts:
            shutil.copyfile(path, folder / path.name)

    def _insert_run(
        self,
        rows: sqlite3.Connection,
        run: str,
        experiment: int,
        name: str,
        tags: Mapping[str, str],
        params: Mapping[str, object],
        metrics: Mapping[str, float],
    ) -> None:
        now, place = _now(), f"{self._place.resolve().as_uri()}/{run}/artifacts"
        rows.execute(_RUN, (run, name, now, now, place, experiment))
        tagged = [(key, value, run) for key, value in tags.items()]
        rows.executemany("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", tagged)
        given = [(key, str(value)[:LONGEST_PARAM], run) for key, value in sorted(params.items())]
        rows.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)", given)
        measured = [(key, float(value), now, run) for key, value in sorted(metrics.items())]
        for statement in (_METRIC, _LATEST):
            rows.executemany(statement, measured)

    def _insert_version(
        self, rows: sqlite3.Connection, name: str, run: str, artifact: str, tags: Mapping[str, str]
    ) -> str:
        now = _now()
        if not _touch(rows, name, now):
            raise _LeftToMlflow
        last = rows.execute(
            "SELECT coalesce(max(version), 0) FROM model_versions WHERE name = ? AND workspace = ?", (name, _WORKSPACE)
        )
        version = int(last.fetchone()[0]) + 1
        rows.execute(_VERSION, (name, version, now, f"runs:/{run}/{artifact}", run, _WORKSPACE))
        told = [(key, value, name, version, _WORKSPACE) for key, value in {**tags, ARTIFACT: artifact}.items()]
        rows.executemany(_VERSION_TAG, told)
        return str(version)


def _form_of(rows: sqlite3.Connection) -> list[tuple[str]]:
    try:
        return rows.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.OperationalError:  # a file that MLflow has not set up yet
        return []


def _touch(rows: sqlite3.Connection, name: str, now: int) -> bool:
    """Note that a registered name changed; whether there is one."""
    touched = rows.execute(
        "UPDATE registered_models SET last_updated_time = ? WHERE name = ? AND workspace = ?", (now, name, _WORKSPACE)
    )
    return touched.rowcount > 0


def _versions(rows: sqlite3.Connection, name: str) -> list[Version]:
    aliases: dict[int, list[str]] = {}
    named = "SELECT alias, version FROM registered_model_aliases WHERE name = ? AND workspace = ? ORDER BY alias"
    for alias, version in rows.execute(named, (name, _WORKSPACE)):
        aliases.setdefault(int(version), []).append(str(alias))
    tags: dict[int, dict[str, str]] = {}
    tagged = "SELECT version, key, value FROM model_version_tags WHERE name = ? AND workspace = ?"
    for version, key, value in rows.execute(tagged, (name, _WORKSPACE)):
        tags.setdefault(int(version), {})[key] = value
    listed = (
        "SELECT version, creation_time, run_id FROM model_versions WHERE name = ? AND workspace = ? "
        "AND current_stage != ? ORDER BY version DESC"
    )
    return [
        Version(
            name,
            str(version),
            datetime.fromtimestamp(created / 1000, UTC),
            str(run),
            tags.get(version, {}),
            tuple(aliases.get(version, ())),
        )
        for version, created, run in rows.execute(listed, (name, _WORKSPACE, _DELETED)).fetchall()
    ]


def _now() -> int:
    """Milliseconds since 1970: when it was logged, which is about the run and not about the data."""
    return int(time.time() * 1000)
