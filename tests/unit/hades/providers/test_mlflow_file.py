"""The registry file written without MLflow holds the rows that MLflow writes, and MLflow reads them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hades.ports.services import DATA_HASH, TrackingError
from hades.providers import mlflow_registry as mlflow_file
from hades.providers import mlflow_registry as mlflow_tracker
from hades.providers.mlflow_registry import MlflowFileTracker, MlflowTracker

NAME = "things"
METRICS = {"m": 0.5, "zero": 0.0, "large": 1e300}
PARAMS = {"p": 1, "text": "of a length " * 60, "none": None}


def by_mlflow(home: Path) -> MlflowTracker:
    return MlflowTracker(f"sqlite:///{home / 'mlflow.db'}", home / "mlflow.lock", home / "artifacts")


def by_file(home: Path) -> MlflowFileTracker:
    return MlflowFileTracker(home / "mlflow.db", home / "mlflow.lock", home / "artifacts")


def log(tracker: MlflowTracker, folder: Path, data: str) -> str:
    """A version whose file holds the data; its number."""
    path = folder / "thing.bin"
    path.write_text(data)
    tags = {DATA_HASH: data, "about": f"is {data}"}
    run = tracker.log_run(NAME, f"of {data}", params=PARAMS, metrics=METRICS, artifacts=[path], tags=tags)
    return tracker.register(NAME, run, "thing.bin")


def begin(home: Path, folder: Path) -> None:
    """A registry with one version, made by MLflow, and a run that a killed process left open."""
    home.mkdir()
    tracker = by_mlflow(home)
    log(tracker, folder, "first")
    experiment = tracker._client.get_experiment_by_name(NAME)
    tracker._client.create_run(experiment.experiment_id, tags={mlflow_tracker.WRITER: tracker._writer}, run_name="cut")


def live(tracker: MlflowTracker, folder: Path) -> list[Any]:
    """Some nights of a home; what the registry answered."""
    told: list[Any] = [log(tracker, folder, data) for data in ("one", "two", "one", "first")]
    tracker.tag(NAME, "2", {"snapshot": "g1"})
    tracker.tag(NAME, "2", {"snapshot": "g2", "snapshot.g2": "champion"})
    tracker.set_alias(NAME, "champion", "2")
    tracker.set_alias(NAME, "champion", "3")
    tracker.set_alias(NAME, "challenger", "3")
    told.append(tracker.keep_newest(NAME, 1, ["snapshot.g1"]))
    told += [log(tracker, folder, "one"), tracker.alias(NAME, "champion"), tracker.version_of(NAME, "two")]
    told += [(one.version, dict(one.tags), one.aliases) for one in tracker.versions(NAME)]
    return [*told, tracker.fetch(NAME, "3").read_text(), tracker.versions("others")]


def rows_of(home: Path) -> dict[str, list[Any]]:
    """All tables; runs by the order in which they began, times as whether there is one, folders without the home."""
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        runs = [run for (run,) in database.execute("SELECT run_uuid FROM runs ORDER BY rowid")]
        tables = {}
        for name in names:
            cursor = database.execute(f'SELECT * FROM "{name}"')
            columns = [one[0] for one in cursor.description]
            tables[name] = sorted(
                repr([(column, _plain(column, value, runs, home)) for column, value in zip(columns, row, strict=True)])
                for row in cursor
            )
    return tables


def _plain(column: str, value: object, runs: list[str], home: Path) -> object:
    if column.endswith("time") or column == "timestamp":
        return value is not None
    if not isinstance(value, str):
        return value
    for number, run in enumerate(runs):
        value = value.replace(run, f"run {number}")
    return value.replace(home.as_uri(), "HOME") if column != "artifact_location" else value.rpartition("/")[2]


def test_every_row_is_the_one_that_mlflow_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, homes = [], [tmp_path / name for name in ("by mlflow", "by file")]
    for home in homes:
        begin(home, tmp_path)
    told.append(live(by_mlflow(homes[0]), tmp_path))
    with monkeypatch.context() as without:
        without.setattr(mlflow_tracker, "_quiet_client", _refuse)
        told.append(live(by_file(homes[1]), tmp_path))
    # The tag of the writer is a hash of the home's place.
    writers = [tracker(home)._writer for tracker, home in zip((by_mlflow, by_file), homes, strict=True)]
    rows = [
        {name: [one.replace(writer, "writer") for one in table] for name, table in rows_of(home).items()}
        for home, writer in zip(homes, writers, strict=True)
    ]
    assert told[0] == told[1]
    assert rows[0] == rows[1]
    assert by_mlflow(homes[1]).fetch(NAME, "3").read_text() == "two"


def test_what_only_mlflow_creates_is_left_to_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert by_file(home).versions(NAME) == []
    assert log(by_file(home), tmp_path, "one") == "1"
    assert by_mlflow(home).fetch(NAME, "1").read_text() == "one"
    run = by_file(home).log_run(
        NAME, "no number", params={}, metrics={"m": float("nan")}, artifacts=[], tags={DATA_HASH: "nan"}
    )
    assert by_mlflow(home)._client.get_run(run).info.status == "FINISHED"


def test_a_file_of_another_form_is_left_to_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    begin(home, tmp_path)
    monkeypatch.setattr(mlflow_file, "KNOWN_FORM", "another")
    with monkeypatch.context() as without:
        without.setattr(mlflow_tracker, "_quiet_client", _refuse)
        for call in (
            lambda: log(by_file(home), tmp_path, "one"),
            lambda: by_file(home).versions(NAME),
            lambda: by_file(home).register(NAME, "run", "thing.bin"),
        ):
            with pytest.raises(AssertionError, match="MLflow was loaded"):
                call()
    assert live(by_file(home), tmp_path)[:4] == ["2", "3", "2", "1"]


def test_a_run_without_the_file_is_not_registered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    begin(home, tmp_path)
    with pytest.raises(TrackingError, match="run nowhere has no file"):
        by_file(home).register(NAME, "nowhere", "thing.bin")


def _refuse(uri: str) -> Any:
    raise AssertionError(f"MLflow was loaded for {uri}")
