"""MLflow, server or file."""

from __future__ import annotations

import hashlib
import logging
import math
import shutil
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hades.ports.services import DATA_HASH, TrackingError, Version, delete_older, version_with_hash
from hades.providers.file_registry import hold_lock
from hades.settings.load import keep_libraries_quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment
    from mlflow.entities.model_registry import ModelVersion


# The registry in MLflow: a file under HADES_HOME, or a team's server. The only module that imports it. Files are
# plain (Parquet, pictures): no model flavour and no pickle, so reading an old version runs nobody's code.


WRITER = "hades.writer"
RETIRED = "hades.retired"
ARTIFACT = "hades.artifact"
SHA256 = "sha256."
_PAGE = 1_000
LONGEST_PARAM = 500


class MlflowTracker:
    """A `Tracker`. `artifacts` is where files are kept when no server keeps them; `lock` is held by whoever writes."""

    def __init__(self, uri: str, lock: Path, artifacts: Path | None = None) -> None:
        self._uri, self._lock, self._artifacts = uri, lock, artifacts

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
        if not tags.get(DATA_HASH):
            raise TrackingError(f"run {name!r} of {experiment!r} has no tag {DATA_HASH!r}; give the hash of its data")
        with self._writing():
            where = self._experiment(experiment)
            self._bury(where)
            if logged := self._log(where, tags[DATA_HASH]):
                return logged
            told = {**tags, **hash_artifacts(artifacts), WRITER: self._writer}
            run = self._client.create_run(where, tags=told, run_name=name).info.run_id
            self._fill(str(run), params, metrics, artifacts)
            self._client.set_terminated(run, status="FINISHED")
            return str(run)

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`."""
        with self._writing():
            tags = {key: value for key, value in self._client.get_run(run).data.tags.items() if is_ours(key)}
            if f"{SHA256}{artifact}" not in tags:
                raise TrackingError(f"run {run} has no file {artifact!r}; log it with the run before registering it")
            for known in self.versions(name):
                if known.tags.get(DATA_HASH) == tags[DATA_HASH]:
                    return known.version
            self._ensure_model(name)
            made = self._client.create_model_version(
                name, f"runs:/{run}/{artifact}", run, tags={**tags, ARTIFACT: artifact}
            )
            return str(made.version)

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        models = self._client.search_registered_models(_where("name", name))
        if not models:
            return []
        aliases: dict[str, list[str]] = {}
        for alias, version in sorted(models[0].aliases.items()):
            aliases.setdefault(str(version), []).append(str(alias))
        found, token = [], None
        while True:
            page = self._client.search_model_versions(_where("name", name), max_results=_PAGE, page_token=token)
            found += [_version(one, aliases.get(str(one.version), ())) for one in page]
            token = page.token
            if not token:
                return sorted(found, key=lambda one: -int(one.version))

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        return version_with_hash(self.versions(name), data_hash)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`."""
        return delete_older(self, name, keep, needed)

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        self._known(name, version)
        for key, value in tags.items():
            self._client.set_model_version_tag(name, version, key, value)

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return next((one.version for one in self.versions(name) if alias in one.aliases), None)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        self._known(name, version)
        self._client.set_registered_model_alias(name, alias, version)

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        known = self._known(name, version)
        artifact = known.tags[ARTIFACT]
        path = self._path(known.run, artifact)
        if not path.is_file():
            raise TrackingError(f"{name} version {version}: {path} is gone; choose another of its versions")
        if _sha256(path) != known.tags[f"{SHA256}{artifact}"]:
            raise TrackingError(f"{name} version {version}: {path} was changed after it was logged; choose another")
        return path

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`. On a server the file stays until its own garbage collection."""
        with self._writing():
            known = self._known(name, version)
            if known.aliases:
                raise TrackingError(
                    f"{name} version {version} is named by {', '.join(known.aliases)}; let the alias name another first"
                )
            self._retire(known)
            if self._artifacts is not None:
                self._path(known.run, known.tags[ARTIFACT]).unlink(missing_ok=True)

    def _retire(self, known: Version) -> None:
        """Delete a version and tag its run, so that its data may be logged again."""
        self._client.set_tag(known.run, RETIRED, known.version)
        self._client.delete_model_version(known.name, known.version)

    @cached_property
    def _client(self) -> MlflowClient:
        """Made by one process at a time: the first creates the tables, and two at once would trip over each other."""
        with hold_lock(self._lock.with_name(f"{self._lock.name}.setup")):
            client = _quiet_client(self._uri)
            client.get_experiment_by_name("Default")
            return client

    @property
    def _writer(self) -> str:
        """Who writes under this lock; the same in every process of this home, another on every other machine."""
        return hashlib.sha256(f"{socket.gethostname()}:{self._lock.resolve()}".encode()).hexdigest()[:16]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only one of this home who writes."""
        with hold_lock(self._lock):
            yield

    def _experiment(self, name: str) -> str:
        """The experiment of that name; one whose files belong to a folder that was moved or copied is left alone."""
        place = None if self._artifacts is None else self._artifacts.resolve().as_uri()
        for one in (name, f"{name} in {place}"):
            found: Experiment | None = self._client.get_experiment_by_name(one)
            if found is None:
                return str(self._client.create_experiment(one, artifact_location=place))
            if place is None or found.artifact_location == place:
                return str(found.experiment_id)
        raise TrackingError(f"experiment {name!r} keeps its files elsewhere than {place}; rename it in MLflow")

    def _bury(self, experiment: str) -> None:
        """Mark runs that a killed process left open. Whoever holds the lock knows that nobody is at work on them."""
        mine = f"attributes.status = 'RUNNING' and tags.`{WRITER}` = '{self._writer}'"
        for run in self._client.search_runs([experiment], mine, max_results=_PAGE):
            self._client.set_terminated(run.info.run_id, status="KILLED")

    def _log(self, experiment: str, data_hash: str) -> str | None:
        same = f"attributes.status = 'FINISHED' and {_where(f'tags.{DATA_HASH}', data_hash)}"
        runs = self._client.search_runs([experiment], same, max_results=_PAGE)
        return next((str(run.info.run_id) for run in runs if RETIRED not in run.data.tags), None)

    def _fill(
        self, run: str, params: Mapping[str, object], metrics: Mapping[str, float], artifacts: Sequence[Path]
    ) -> None:
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)  # when it was logged, which is about the run and not about the data
        self._client.log_batch(
            run,
            metrics=[Metric(key, float(value), now, 0) for key, value in sorted(metrics.items())],
            params=[Param(key, str(value)[:LONGEST_PARAM]) for key, value in sorted(params.items())],
        )
        for path in artifacts:
            self._client.log_artifact(run, str(path))

    def _ensure_model(self, name: str) -> None:
        if not self._client.search_registered_models(_where("name", name)):
            self._client.create_registered_model(name)

    def _known(self, name: str, version: str) -> Version:
        versions = self.versions(name)
        for one in versions:
            if one.version == version:
                return one
        listed = ", ".join(one.version for one in versions) or "none"
        raise TrackingError(f"{name} has no version {version}; registered: {listed}")

    def _path(self, run: str, artifact: str) -> Path:
        """Kept files are found by the run and not by the address the registry noted: a home may be moved."""
        if self._artifacts is not None:
            return self._artifacts / run / "artifacts" / artifact
        return Path(self._client.download_artifacts(run, artifact))


def _quiet_client(uri: str) -> MlflowClient:
    """A client that neither phones home nor tells of its migrations."""
    keep_libraries_quiet()
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _version(found: ModelVersion, aliases: Sequence[str]) -> Version:
    created = datetime.fromtimestamp(found.creation_timestamp / 1000, UTC)
    tags = {str(key): str(value) for key, value in found.tags.items()}
    return Version(str(found.name), str(found.version), created, str(found.run_id), tags, tuple(aliases))


def _where(column: str, value: str) -> str:
    if "'" in value:
        raise TrackingError(f"{value!r} holds a quote, which the registry cannot search for; choose another name")
    return f"{column} = '{value}'"


def hash_artifacts(artifacts: Sequence[Path]) -> dict[str, str]:
    """The tag of each file of a run, which says its hash."""
    return {f"{SHA256}{path.name}": _sha256(path) for path in artifacts}


def is_ours(tag: str) -> bool:
    """Whether a tag of a run is about its data, and so belongs to its versions."""
    return not tag.startswith("mlflow.") and tag != WRITER


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# MLflow's registry file read and written as the SQLite file it is, without loading MLflow, which takes seconds.
# Only a file whose tables have the form that is known here is treated so, and only for what the nights of a home
# do: more runs of an experiment that exists, more versions of a name that exists. Anything else is left to MLflow
# itself. A test compares every row with the rows that MLflow writes.


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
