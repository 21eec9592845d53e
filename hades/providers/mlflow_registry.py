"""The registry in MLflow: a file under HADES_HOME, or a team's server. The only module that imports
it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from hades.files import hold_lock, sha256_of
from hades.ports.services import (
    DATA_HASH,
    Dataset,
    RunRecord,
    Tracker,
    TrackingError,
    Version,
    check_file,
    version_with_hash,
)
from hades.settings.load import keep_libraries_quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Experiment, Run
    from mlflow.entities.model_registry import ModelVersion


# Files are plain (Parquet, pictures): no model flavour and no pickle, so reading an old version
# runs nobody's code.
logger = logging.getLogger(__name__)
WRITER = "hades.writer"
RETIRED = "hades.retired"
ARTIFACT = "hades.artifact"
SHA256 = "sha256."
PARENT = "mlflow.parentRunId"
_PAGE = 1_000
_LONGEST_PARAM = 500
_LONGEST_DIGEST = 36
_HEALTH_SECONDS = 5.0
_LONGEST_NAME = 250
_NO_PARENT: Mapping[str, str] = {}
_OF_NO_RUN = "destination_type = 'RUN' AND destination_id NOT IN (SELECT run_uuid FROM runs)"
_UNREAD_INPUTS = (
    "DELETE FROM input_tags WHERE input_uuid IN "
    f"(SELECT input_uuid FROM inputs WHERE {_OF_NO_RUN})",
    f"DELETE FROM inputs WHERE {_OF_NO_RUN}",
    "DELETE FROM datasets WHERE dataset_uuid NOT IN (SELECT source_id FROM inputs)",
)
P = ParamSpec("P")
R = TypeVar("R")
_Method = Callable[Concatenate["MlflowTracker", P], R]


def _tell_failure(method: _Method[P, R]) -> _Method[P, R]:
    """The same method; what MLflow refuses or does not answer is a `TrackingError`."""

    @wraps(method)
    def call(tracker: MlflowTracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        from mlflow.exceptions import MlflowException

        try:
            return method(tracker, *args, **kwargs)
        except MlflowException as error:
            raise TrackingError(
                f"MLflow at {tracker.address} did not do what was asked ({error}); see that it "
                "answers (`hades doctor`), then repeat the command"
            ) from error

    return call


def valid_name(name: str) -> str:
    """The name of a metric, parameter or tag as MLflow takes it: other characters become `_`."""
    return re.sub(r"[^\w.: -]", "_", name, flags=re.ASCII).strip(". ")[:_LONGEST_NAME] or "_"


def _hash_tag(artifact: str) -> str:
    """The tag of a run that holds the hash of one of its files."""
    return valid_name(f"{SHA256}{artifact}")


class MlflowTracker(Tracker):
    """A `Tracker`. `artifacts` is where files are kept when no server keeps them; `lock` is held by
    whoever writes.

    Of a server that tenants share, each sees its own part: every experiment and every model carries
    the tenant's name.
    """

    def __init__(
        self,
        uri: str,
        lock: Path,
        artifacts: Path | None = None,
        tenant: str | None = None,
    ) -> None:
        self._uri, self._lock, self._artifacts = uri, lock, artifacts
        self._tags = {} if tenant is None else {"tenant": tenant}
        self._prefix = "" if tenant is None else f"{tenant}."

    @property
    def address(self) -> str:
        """Where the registry is, without the password that an address may hold."""
        return re.sub(r"//[^/@]*@", "//", self._uri)

    @_tell_failure
    def log_run(self, experiment: str, record: RunRecord) -> str:
        data_hash = record.tags.get(DATA_HASH)
        if not data_hash:
            raise TrackingError(
                f"run {record.name!r} of {experiment!r} has no tag {DATA_HASH!r}; give the hash of "
                "its data"
            )

        with hold_lock(self._lock):
            where = self._experiment(self._prefix + experiment)
            # Whoever holds the lock knows that nobody is at work on runs that a killed process left
            # open.
            open_runs = f"attributes.status = 'RUNNING' and tags.`{WRITER}` = '{self._writer}'"
            for run in self._client.search_runs(
                [where],
                open_runs,
                max_results=_PAGE,
            ):
                self._client.set_terminated(run.info.run_id, status="KILLED")

            same = f"attributes.status = 'FINISHED' and {_equals(f'tags.{DATA_HASH}', data_hash)}"
            runs = self._client.search_runs(
                [where],
                same,
                max_results=_PAGE,
            )
            known = (str(run.info.run_id) for run in runs if RETIRED not in run.data.tags)
            return next(known, None) or self._log_whole(where, record)

    @_tell_failure
    def register(
        self,
        name: str,
        run: str,
        artifact: str,
        about: str = "",
    ) -> str:
        with hold_lock(self._lock):
            tags = {
                key: value
                for key, value in self._client.get_run(run).data.tags.items()
                if not key.startswith("mlflow.") and key != WRITER
            }
            if _hash_tag(artifact) not in tags:
                raise TrackingError(
                    f"run {run} has no file {artifact!r}; log it with the run before registering it"
                )

            same = version_with_hash(self.versions(name), tags[DATA_HASH])
            if same is not None:
                return same

            full = self._prefix + name
            self._describe_model(full, about)
            # Where MLflow looks for the signature.
            folder = self._client.get_run(run).info.artifact_uri
            model_version = self._client.create_model_version(
                full,
                folder,
                run,
                tags={**tags, ARTIFACT: artifact},
            )
            return str(model_version.version)

    def _describe_model(self, name: str, about: str) -> None:
        """Make the registered model where there is none; what a person wrote about it stays."""
        known = self._client.search_registered_models(_equals("name", name))
        if not known:
            self._client.create_registered_model(
                name,
                description=about or None,
            )
        elif about and not known[0].description:
            self._client.update_registered_model(name, about)

    @_tell_failure
    def versions(self, name: str) -> list[Version]:
        where = _equals("name", self._prefix + name)
        models = self._client.search_registered_models(where)
        if not models:
            return []

        aliases: dict[str, list[str]] = {}
        for alias, version in sorted(models[0].aliases.items()):
            aliases.setdefault(str(version), []).append(str(alias))

        versions = []
        token = None
        while True:
            page = self._client.search_model_versions(
                where,
                max_results=_PAGE,
                page_token=token,
            )
            versions += [
                _version(
                    name,
                    version,
                    aliases.get(str(version.version), ()),
                )
                for version in page
            ]
            token = page.token

            if not token:
                return sorted(versions, key=lambda version: -int(version.version))

    @_tell_failure
    def tag(
        self,
        name: str,
        version: str,
        tags: Mapping[str, str],
    ) -> None:
        self.known(name, version)
        for key, value in tags.items():
            self._client.set_model_version_tag(
                self._prefix + name,
                version,
                key,
                value,
            )

    @_tell_failure
    def set_alias(self, name: str, alias: str, version: str) -> None:
        self.known(name, version)
        self._client.set_registered_model_alias(
            self._prefix + name,
            alias,
            version,
        )

    @_tell_failure
    def delete_alias(self, name: str, alias: str) -> None:
        if self.alias(name, alias) is not None:
            self._client.delete_registered_model_alias(self._prefix + name, alias)

    @_tell_failure
    def fetch(self, name: str, version: str) -> Path:
        known = self.known(name, version)
        artifact = known.tags[ARTIFACT]
        return check_file(
            known,
            self._path(known.run, artifact),
            known.tags[_hash_tag(artifact)],
        )

    @_tell_failure
    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`. On a server the file stays until its own garbage
        collection.
        """
        with hold_lock(self._lock):
            known = self.unnamed(name, version)
            self._client.set_tag(
                known.run,
                RETIRED,
                known.version,
            )  # its data may be logged again
            self._client.delete_model_version(self._prefix + name, version)

            if self._artifacts is not None:
                self._path(known.run, known.tags[ARTIFACT]).unlink(missing_ok=True)

    @_tell_failure
    def trim_runs(
        self,
        experiment: str,
        keep: int,
        *,
        needed: Collection[str],
        models: Sequence[str],
    ) -> None:
        """See `Tracker.trim_runs`. On a server they are deleted for its own garbage collection."""
        with hold_lock(self._lock):
            where = self._experiment(self._prefix + experiment)
            runs = self._search([where], f"tags.`{PARENT}` IS NULL")
            if len(runs) <= keep:
                return

            oldest = runs[keep - 1].info.start_time
            for run in runs[keep:]:
                if run.data.params.get("snapshot") not in needed:
                    parts = self._search([where], _equals(f"tags.`{PARENT}`", run.info.run_id))
                    self._remove([*parts, run])

            known = []
            for model in models:
                if self.versions(model):
                    known.append(model)

            places = []
            for model in known:
                places.append(self._experiment(self._prefix + model))

            retired = f"tags.`{RETIRED}` != '' and attributes.start_time < {oldest}"
            self._remove(self._search(places, retired))

    def _search(self, experiments: list[str], condition: str) -> list[Run]:
        """Every run of these experiments that meets a condition, the newest first."""
        runs: list[Run] = []
        token = None

        while True:
            page = self._client.search_runs(
                experiments,
                condition,
                max_results=_PAGE,
                order_by=["attributes.start_time DESC"],
                page_token=token,
            )
            runs += page
            token = page.token

            if not token:
                return runs

    def _remove(self, runs: Sequence[Run]) -> None:
        """Delete runs; where the registry is a file of this home, with all that it has of them."""
        for run in runs:
            identifier = str(run.info.run_id)
            self._client.delete_run(identifier)
            if self._artifacts is not None:
                self._client._tracking_client.store._hard_delete_run(identifier)
                shutil.rmtree(self._artifacts / identifier, ignore_errors=True)

        if runs and self._artifacts is not None:
            self._remove_unread_inputs()

    def _remove_unread_inputs(self) -> None:
        """Remove the datasets that only deleted runs had read, which MLflow leaves."""
        with self._client._tracking_client.store.ManagedSessionMaker(read_only=False) as session:
            for statement in _UNREAD_INPUTS:
                session.connection().exec_driver_sql(statement)

    @cached_property
    def _client(self) -> MlflowClient:
        """Made by one process at a time: the first creates the tables, and two at once would trip
        over each other.
        """
        with hold_lock(self._lock.with_name(f"{self._lock.name}.setup")):
            client = _quiet_client(self._uri, self._artifacts)
            client.get_experiment_by_name("Default")
            return client

    @property
    def _writer(self) -> str:
        """Who writes under this lock; the same in every process of this home, another on every
        other machine.
        """
        address = f"{socket.gethostname()}:{self._lock.resolve()}"
        return hashlib.sha256(address.encode()).hexdigest()[:16]

    def _experiment(self, name: str) -> str:
        """The experiment of that name; one whose files belong to a folder that was moved or copied
        is left alone.
        """
        if self._artifacts is None:
            place = None
        else:
            place = self._artifacts.resolve().as_uri()

        for candidate in (name, f"{name} in {place}"):
            experiment: Experiment | None = self._client.get_experiment_by_name(candidate)
            if experiment is None:
                return str(
                    self._client.create_experiment(
                        candidate,
                        artifact_location=place,
                    )
                )
            if place is None or experiment.artifact_location == place:
                return str(experiment.experiment_id)

        raise TrackingError(
            f"experiment {name!r} keeps its files elsewhere than {place}; rename it in MLflow"
        )

    def _log_whole(
        self,
        experiment: str,
        record: RunRecord,
        parent: Mapping[str, str] = _NO_PARENT,
    ) -> str:
        """The run and its parts, each with its own times; one that fails half-way is deleted."""
        hashes = {}
        for path in record.artifacts:
            hashes[_hash_tag(path.name)] = sha256_of(path)

        tags = {
            **record.tags,
            **hashes,
            **parent,
            **self._tags,
            WRITER: self._writer,
        }
        created = self._client.create_run(
            experiment,
            _milliseconds(record.began),
            tags=tags,
            run_name=record.name,
        )
        run = str(created.info.run_id)

        try:
            self._log_contents(run, record)
            for part in record.parts:
                self._log_whole(experiment, part, {PARENT: run})

            self._client.set_terminated(
                run,
                record.status,
                _milliseconds(record.ended),
            )
        except BaseException:
            self._discard(experiment, run)
            raise

        for child in record.children:
            if PARENT not in self._client.get_run(child).data.tags:
                self._client.set_tag(child, PARENT, run)

        return run

    def _discard(self, experiment: str, run: str) -> None:
        """Delete a run that could not be logged whole, with its parts, as far as MLflow answers."""
        from mlflow.exceptions import MlflowException

        with suppress(MlflowException):
            parts = self._client.search_runs([experiment], _equals(f"tags.`{PARENT}`", run))
            for part in parts:
                self._client.delete_run(part.info.run_id)

            self._client.delete_run(run)

    def _log_contents(self, run: str, record: RunRecord) -> None:
        from mlflow.entities import Metric, Param

        # When it was logged, which is about the run and not about the data.
        now = int(time.time() * 1000)
        metrics = [
            Metric(valid_name(key), float(value), now, 0)
            for key, value in sorted(record.metrics.items())
        ]
        params = [
            Param(valid_name(key), str(value)[:_LONGEST_PARAM])
            for key, value in sorted(record.params.items())
        ]
        self._client.log_batch(
            run,
            metrics=metrics,
            params=params,
        )

        if record.inputs:
            self._client.log_inputs(run, [_dataset(dataset) for dataset in record.inputs])

        for path in record.artifacts:
            self._client.log_artifact(run, str(path))

        if record.signature is not None:
            self._client.log_text(
                run,
                _signature(record.artifacts[0].name, *record.signature),
                SIGNATURE_FILE,
            )

        for name, rows in record.tables.items():
            if rows:
                columns = {}
                for column in rows[0]:
                    columns[column] = _values_of(column, rows)

                with warnings.catch_warnings(action="ignore"):  # MLflow asks pandas in an older way
                    self._client.log_table(run, columns, f"{name}.json")

    def _path(self, run: str, artifact: str) -> Path:
        """Kept files are found by the run and not by the address the registry noted: a home may be
        moved.
        """
        if self._artifacts is not None:
            return self._artifacts / run / "artifacts" / artifact
        return Path(self._client.download_artifacts(run, artifact))


def _values_of(column: str, rows: Sequence[Mapping[str, object]]) -> list[object]:
    return [row.get(column) for row in rows]


def log_feedback(
    uri: str,
    query_id: str,
    judged: Mapping[str, Any],
    who: str,
) -> None:
    """Judgements as assessments of the trace of a turn; a warning where the server has no such
    trace or is down.
    """
    client = _quiet_client(uri)
    import httpx
    from mlflow.entities import AssessmentSource, Feedback
    from mlflow.exceptions import MlflowException
    from mlflow.tracing.client import TracingClient

    try:
        # The client would try for minutes.
        httpx.get(f"{uri}/health", timeout=_HEALTH_SECONDS).raise_for_status()
        places = []
        for experiment in client.search_experiments():
            places.append(experiment.experiment_id)

        where = f"span.attributes.hades.query_id LIKE '%{query_id}%'"
        traces = client.search_traces(
            locations=places,
            filter_string=where,
            max_results=1,
            include_spans=False,
        )
        for name, ranks in judged.items() if traces else ():
            feedback = Feedback(
                name=name,
                value=ranks,
                source=AssessmentSource("HUMAN", who),
            )
            TracingClient(uri).log_assessment(traces[0].info.trace_id, feedback)
    except (MlflowException, httpx.HTTPError) as error:
        logger.warning(
            "the judgement of %s was not sent to %s: %s",
            query_id,
            uri,
            error,
        )
        return

    if not traces:
        logger.warning(
            "MLflow at %s has no trace of %s; the judgement is kept in the store alone",
            uri,
            query_id,
        )


def _quiet_client(uri: str, artifacts: Path | None = None) -> MlflowClient:
    """A client that neither phones home nor tells of its migrations.

    `artifacts` is where a registry that is made now keeps the files of MLflow's own experiment
    `Default`; without it MLflow takes the working directory.
    """
    keep_libraries_quiet()
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)

    if artifacts is not None:
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        SqlAlchemyStore(uri, artifacts.resolve().as_uri())  # type: ignore[no-untyped-call]

    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _version(
    name: str,
    model_version: ModelVersion,
    aliases: Sequence[str],
) -> Version:
    created = datetime.fromtimestamp(model_version.creation_timestamp / 1000, UTC)
    tags = {str(key): str(value) for key, value in model_version.tags.items()}
    return Version(
        name=name,
        version=str(model_version.version),
        created=created,
        run=str(model_version.run_id),
        tags=tags,
        aliases=tuple(aliases),
    )


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def _dataset(dataset: Dataset) -> DatasetInput:
    """The dataset in the words of `mlflow.data`, which needs no data to describe it."""
    from mlflow.entities import Dataset as Described
    from mlflow.entities import DatasetInput, InputTag

    columns = _columns(dataset.columns)
    described = Described(
        name=dataset.name,
        digest=dataset.digest[:_LONGEST_DIGEST],
        source_type="local",
        source=json.dumps({"uri": dataset.source}),
        schema=json.dumps({"mlflow_colspec": columns}) if columns else None,
        profile=None if dataset.rows is None else json.dumps({"num_rows": dataset.rows}),
    )
    return DatasetInput(described, [InputTag("mlflow.data.context", "input")])


# The signature of a registered version as MLflow's file `MLmodel`: what goes in and what comes out,
# by name and type. The file names no Python flavour, so nothing can be unpickled from it; MLflow
# reads the signature all the same.
SIGNATURE_FILE = "MLmodel"


def _signature(
    artifact: str,
    inputs: Sequence[pa.Field],
    outputs: Sequence[pa.Field],
) -> str:
    document = {
        "flavors": {"hades": {"file": artifact}},
        "signature": {
            "inputs": json.dumps(_columns(inputs)),
            "outputs": json.dumps(_columns(outputs)),
            "params": None,
        },
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"  # JSON is YAML


def _columns(fields: Sequence[pa.Field]) -> list[dict[str, object]]:
    columns = []
    for field in fields:
        columns.append(
            {
                "name": field.name,
                "required": not field.nullable,
                **_type_of(field.type),
            }
        )

    return columns


def _type_of(kind: pa.DataType) -> dict[str, object]:
    """The type of a column in the words of MLflow."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {
            "type": "array",
            "items": _type_of(kind.value_type),
        }
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "long"}
    if pa.types.is_float32(kind):
        return {"type": "float"}
    if pa.types.is_floating(kind):
        return {"type": "double"}

    return {"type": "string"}


def _equals(column: str, value: str) -> str:
    if "'" in value:
        raise TrackingError(
            f"{value!r} holds a quote, which the registry cannot search for; choose another name"
        )

    return f"{column} = '{value}'"
