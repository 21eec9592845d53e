"""Both registries: what is logged once stays findable, killed runs are buried, and aliases protect
what they name.
"""

import json
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from hades.ports.services import Dataset, RunRecord, Tracker, TrackingError
from hades.providers.file_registry import FileTracker
from hades.providers.mlflow_registry import MlflowTracker
from tests.unit.hades.night.weights.graphs import mlflow_registry
from tests.warm_process import start_program

NAME = "things"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(params=["file", "mlflow"])
def tracker(request: pytest.FixtureRequest, home: Path) -> Tracker:
    home.mkdir()
    return (
        mlflow_registry(home)
        if request.param == "mlflow"
        else FileTracker(home / "registry.db", home / "artifacts")
    )


@pytest.fixture
def mlflow(home: Path) -> MlflowTracker:
    return mlflow_registry(home)


def logged(tracker: Tracker, folder: Path, data: str) -> str:
    """A version whose file holds the data; its number."""
    path = folder / "thing.bin"
    path.write_text(data)
    tags = {"data_hash": data}
    run = tracker.log_run(
        NAME, RunRecord(f"of {data}", {"p": 1}, {"m": 0.5}, tags, artifacts=[path])
    )
    return tracker.register(NAME, run, "thing.bin")


def test_a_version_gives_back_the_bytes_that_were_logged(tracker: Tracker, tmp_path: Path) -> None:
    assert [logged(tracker, tmp_path, data) for data in ("one", "two", "one")] == ["1", "2", "1"]
    assert tracker.fetch(NAME, "1").read_text() == "one"
    newest, oldest = tracker.versions(NAME)
    assert (newest.version, oldest.version) == ("2", "1")
    assert oldest.tags["data_hash"] == "one"


def test_tables_and_datasets_are_what_mlflow_reads_back(mlflow: MlflowTracker) -> None:
    record = RunRecord(
        "measured",
        tags={"data_hash": "one"},
        tables={"recall": [{"recipe": "auto", "2": 0.5}, {"recipe": "hipporag", "2": 0.75}]},
        inputs=[Dataset("questions", "abc", "questions.jsonl", 3, [pa.field("text", pa.string())])],
    )
    run = mlflow.log_run(NAME, record)
    found = mlflow._client.get_run(run)
    assert json.loads(found.data.tags["mlflow.loggedArtifacts"]) == [
        {"path": "recall.json", "type": "table"}
    ]
    table = json.loads(Path(mlflow._client.download_artifacts(run, "recall.json")).read_text())
    assert table == {"columns": ["recipe", "2"], "data": [["auto", 0.5], ["hipporag", 0.75]]}
    (read,) = (one.dataset for one in found.inputs.dataset_inputs)
    assert (read.name, read.digest, json.loads(read.profile)) == (
        "questions",
        "abc",
        {"num_rows": 3},
    )
    assert json.loads(read.schema)["mlflow_colspec"][0]["name"] == "text"


def test_an_alias_moves_in_one_step_and_protects_what_it_names(
    tracker: Tracker, tmp_path: Path
) -> None:
    for data in ("one", "two"):
        logged(tracker, tmp_path, data)
    assert tracker.alias(NAME, "champion") is None
    tracker.set_alias(NAME, "champion", "2")
    tracker.set_alias(NAME, "champion", "1")
    assert tracker.alias(NAME, "champion") == "1"
    tracker.delete_alias(NAME, "challenger")  # names nothing
    tracker.delete_alias(NAME, "champion")
    assert tracker.alias(NAME, "champion") is None
    tracker.set_alias(NAME, "champion", "1")
    with pytest.raises(TrackingError, match="things version 1 is named by champion"):
        tracker.delete_version(NAME, "1")
    assert tracker.fetch(NAME, "1").read_text() == "one"


def test_a_deleted_version_is_gone_and_its_data_may_be_logged_again(
    tracker: Tracker, tmp_path: Path
) -> None:
    logged(tracker, tmp_path, "one")
    path = tracker.fetch(NAME, "1")
    tracker.delete_version(NAME, "1")
    assert not path.exists()
    assert tracker.versions(NAME) == []
    assert tracker.fetch(NAME, logged(tracker, tmp_path, "one")).read_text() == "one"


def test_a_file_that_was_changed_or_lost_is_refused(tracker: Tracker, tmp_path: Path) -> None:
    logged(tracker, tmp_path, "one")
    path = tracker.fetch(NAME, "1")
    path.write_text("other")
    with pytest.raises(TrackingError, match="was changed after it was logged"):
        tracker.fetch(NAME, "1")
    path.unlink()
    with pytest.raises(TrackingError, match="is gone; choose another"):
        tracker.fetch(NAME, "1")


def test_what_is_not_there_is_named_with_what_is(tracker: Tracker, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="things has no version 9; registered: none"):
        tracker.fetch(NAME, "9")
    logged(tracker, tmp_path, "one")
    with pytest.raises(TrackingError, match="things has no version 9; registered: 1"):
        tracker.set_alias(NAME, "champion", "9")


def test_tags_that_two_give_at_once_are_all_kept(home: Path, tmp_path: Path) -> None:
    tracker = FileTracker(home / "registry.db", home / "artifacts")
    home.mkdir()
    version = logged(tracker, tmp_path, "one")
    with ThreadPoolExecutor(8) as people:
        list(people.map(lambda number: tracker.tag(NAME, version, {f"t{number}": "x"}), range(48)))
    assert {f"t{number}" for number in range(48)} <= tracker.known(NAME, version).tags.keys()


def test_a_run_without_the_hash_of_its_data_is_refused(mlflow: MlflowTracker) -> None:
    with pytest.raises(TrackingError, match="give the hash of its data"):
        mlflow.log_run(NAME, RunRecord("nameless"))


def test_whatever_a_metric_a_parameter_or_a_file_is_called_it_can_be_logged(
    mlflow: MlflowTracker, tmp_path: Path
) -> None:
    path = tmp_path / "my questions (copy), 2.jsonl"
    path.write_text("one")
    names = ("sets.exam, answerable.decided", "../up", "//", "ärger?", "." * 300, "n" * 300)
    record = RunRecord(
        "odd",
        params=dict.fromkeys(names, 1),
        metrics=dict.fromkeys(names, 0.5),
        tags={"data_hash": "odd"},
        artifacts=[path],
    )
    run = mlflow.log_run(NAME, record)
    found = mlflow._client.get_run(run)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["sets.exam_ answerable.decided"] == 0.5
    assert mlflow.register(NAME, run, path.name, "things that are odd") == "1"
    assert mlflow.fetch(NAME, "1").read_text() == "one"
    assert mlflow._client.get_registered_model(NAME).description == "things that are odd"


def test_a_run_that_cannot_be_logged_whole_is_not_there(
    mlflow: MlflowTracker, tmp_path: Path
) -> None:
    lost = RunRecord("second", artifacts=[tmp_path / "nowhere.json"])
    record = RunRecord("night", tags={"data_hash": "one"}, parts=[RunRecord("first"), lost])
    with pytest.raises(FileNotFoundError):
        mlflow.log_run(NAME, record)
    experiment = mlflow._client.get_experiment_by_name(NAME)
    assert mlflow._client.search_runs([experiment.experiment_id]) == []
    assert mlflow.log_run(NAME, RunRecord("night", tags={"data_hash": "one"}))


def test_what_mlflow_refuses_is_an_error_of_the_registry(mlflow: MlflowTracker) -> None:
    with pytest.raises(TrackingError, match=r"MLflow at sqlite:.*did not do what was asked"):
        mlflow.log_run("", RunRecord("nowhere", tags={"data_hash": "one"}))


def test_a_home_can_be_copied_and_neither_writes_into_the_other(
    mlflow: MlflowTracker, home: Path, tmp_path: Path
) -> None:
    logged(mlflow, tmp_path, "one")
    moved = tmp_path / "moved"
    shutil.copytree(home, moved)
    other = MlflowTracker(
        f"sqlite:///{moved / 'mlflow.db'}", moved / "mlflow.lock", moved / "artifacts"
    )
    files = sorted(home.rglob("*"))
    assert other.fetch(NAME, "1").is_relative_to(moved)
    logged(other, tmp_path, "two")
    assert other.fetch(NAME, "2").is_relative_to(moved)
    assert sorted(home.rglob("*")) == files


SCRIPT = """
import os, signal, sys
from pathlib import Path
from hades.ports.services import RunRecord
from hades.providers.mlflow_registry import MlflowTracker

home, data, dies = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "dies"

class Dying(MlflowTracker):
    def _log_contents(self, *given):
        super()._log_contents(*given)
        os.kill(os.getpid(), signal.SIGKILL)

tracker = Dying if dies else MlflowTracker
made = tracker(f"sqlite:///{home / 'mlflow.db'}", home / "mlflow.lock", home / "artifacts")
path = home / f"{os.getpid()}" / "thing.bin"
path.parent.mkdir()
path.write_text(data)
run = made.log_run("things", RunRecord(data, artifacts=[path], tags={"data_hash": data}))
print(made.register("things", run, "thing.bin"))
"""


def started(programs: Path, home: Path, data: str, fate: str = "lives") -> subprocess.Popen[str]:
    return start_program(
        programs, SCRIPT, home, data, fate, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_run_killed_in_the_middle_is_marked_and_logged_anew(
    mlflow: MlflowTracker, home: Path, tmp_path: Path, programs: Path
) -> None:
    process = started(programs, home, "one", "dies")
    process.communicate()
    assert process.returncode == 128 + signal.SIGKILL
    assert mlflow.versions(NAME) == []
    assert logged(mlflow, tmp_path, "one") == "1"
    (experiment,) = (one for one in mlflow._client.search_experiments() if one.name == NAME)
    statuses = sorted(
        run.info.status for run in mlflow._client.search_runs([experiment.experiment_id])
    )
    assert statuses == ["FINISHED", "KILLED"]


@pytest.mark.slow
def test_two_processes_that_begin_a_registry_at_once_make_one_version_and_no_noise(
    tmp_path: Path, programs: Path
) -> None:
    home = tmp_path / "fresh"
    home.mkdir()
    processes = [started(programs, home, "same") for _ in range(2)]
    answers = [process.communicate() for process in processes]
    assert [answer for answer, _ in answers] == ["1\n", "1\n"], answers
    assert [noise for _, noise in answers] == ["", ""]
