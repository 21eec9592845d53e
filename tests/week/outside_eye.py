"""What a person sees who knows nothing of HADES' code: MLflow's client, Great Expectations, the
Prefect API, and the bytes of files.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import blake3
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from tests.e2e.prefect_site import PrefectSite
from tests.patience import wait_until
from tests.week.home_of_the_week import Ended, HomeOfTheWeek

NIGHTS = "hades-nightly"
PARENT = "mlflow.parentRunId"
MODELS = ("hades-snapshot", "hades-hierarchy", "hades-weights", "hades-bridges", "hades-exam")
RANKER, RANKER_FILE = "hades-ranker", "ranker.arrow"


class OutsideEye:
    """Looks at a home after each night and remembers the runs that it has seen."""

    def __init__(self, home: HomeOfTheWeek) -> None:
        self._home = home
        self._seen: set[str] = set()
        self._stopped: set[str] = set()

    def look_after_night(self, night: Ended) -> None:
        """A night that ended well: one run of it, the snapshot whole, the aliases right."""
        self.look_at_run(night)
        self.look_at_what_serves()
        doctor = self._home.run("doctor", "--deep", "--json").read()
        assert doctor["ok"], doctor

    # MLflow

    @property
    def client(self) -> MlflowClient:
        uri = f"sqlite:///{self._home.home / 'mlflow.db'}"
        return MlflowClient(uri, uri)

    def new_nights(self) -> list[Run]:
        """Runs of nights that were not there at the last look, oldest first."""
        found = [run for run in self._runs(NIGHTS) if PARENT not in run.data.tags]
        fresh = [run for run in found if run.info.run_id not in self._seen]
        self._seen |= {run.info.run_id for run in fresh}
        return fresh

    def look_at_stopped_night(self) -> None:
        """A night that a contract stopped is one run that failed, with its parts."""
        (run,) = self.new_nights()
        assert run.info.status == "FAILED"
        assert run.info.end_time
        parts = [part for part in self._runs(NIGHTS) if is_part(part, run)]
        self._stopped |= {part.info.run_id for part in (run, *parts)}

    def look_at_run(self, night: Ended) -> None:
        """One run, finished, that began and ended while the command ran; none is left open."""
        (run,) = self.new_nights()
        assert run.info.status == "FINISHED"
        assert night.began * 1000 - 1 <= run.info.start_time <= run.info.end_time
        assert run.info.end_time <= night.ended * 1000 + 1
        assert run.data.params["snapshot"] == self._home.served()
        parts = [part for part in self._runs(NIGHTS) if is_part(part, run)]
        assert {part.info.run_name for part in parts} >= {"sources", "weights", "released"}
        for experiment in self.client.search_experiments():
            for other in self._runs(experiment.name):
                is_whole = other.info.status == "FINISHED" or other.info.run_id in self._stopped
                assert is_whole, (experiment.name, other.info)

    def _runs(self, experiment: str) -> list[Run]:
        """Every run of an experiment, oldest first; a restored home goes on in one of its own,
        called after it and its folder.
        """
        client = self.client
        names = (experiment, f"{experiment} in file://{self._home.home}/artifacts")
        ids = [known.experiment_id for known in client.search_experiments() if known.name in names]
        runs: list[Run] = list(client.search_runs(ids, max_results=1_000)) if ids else []
        return sorted(runs, key=lambda run: run.info.start_time)

    def champion(self, model: str) -> Any:
        """The version of a model that its alias names, or None."""
        try:
            return self.client.get_model_version_by_alias(model, "champion")
        except MlflowException:
            return None

    # files

    def look_at_what_serves(self) -> None:
        """Every file is what the manifest says, and the registry's aliases name this snapshot."""
        served = self._home.served()
        folder = self._home.home / "snapshots" / served
        files = read_manifest(folder)["files"]
        for name, stated in files.items():
            content = (folder / name).read_bytes()
            assert (len(content), blake3.blake3(content).hexdigest()) == (
                stated["bytes"],
                stated["blake3"],
            ), f"{name} of {served} is not what its manifest says"
        for model in MODELS:
            version = self.champion(model)
            if version is None:
                assert model == "hades-exam", f"{model} has no champion"
                continue
            assert f"snapshot.{served}" in version.tags or version.tags["snapshot"] == served, model
        has_ranker = RANKER_FILE in files
        assert (self.champion(RANKER) is not None) == has_ranker, "the ranker that serves"

    def look_at_contracts(self, folder: Path) -> None:
        """Every rule holds by Great Expectations alone."""
        self._home.run("contracts", "export", str(folder))
        hidden = {"PYTHONPATH": "", "HADES_HOME": str(folder / "no-home")}
        ran = subprocess.run(
            [sys.executable, str(folder / "check.py")],
            cwd=folder,
            env=self._home.environment | hidden,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.splitlines()[-1] == "every rule holds"

    def look_for(self, *texts: str) -> list[str]:
        """Files of the home that hold one of these texts, packed or plain."""
        wanted = [text.encode() for text in texts]
        files = [path for path in sorted(self._home.home.rglob("*")) if path.is_file()]
        return [str(path) for path in files if holds(path, wanted)]

    # Prefect

    def look_at_prefect(self, site: PrefectSite) -> None:
        """The server knows the night: completed, no task failed, and what people are shown."""
        wait_until(lambda: ended_nights(site))
        (run,) = ended_nights(site)
        assert run["state_type"] == "COMPLETED", site.logs(run["id"])
        wanted = {"task_runs": {"flow_run_id": {"any_": [run["id"]]}}, "limit": 200}
        tasks = site.api.post("/task_runs/filter", json=wanted).raise_for_status().json()
        assert tasks
        assert {task["state_type"] for task in tasks} == {"COMPLETED"}
        (page,) = [artifact for artifact in site.artifacts() if artifact["key"] == "nightly"]
        assert "| snapshot before |" in page["data"]
        assert "### What changed" in page["data"]
        self.look_at_names_and_logs(run, tasks, site.logs(run["id"]))

    def look_at_names_and_logs(
        self, run: dict[str, Any], tasks: list[dict[str, Any]], logs: str
    ) -> None:
        """The one place for what names of runs, names of tasks and the log of a night must say."""
        graph = self._home.home.name
        assert re.fullmatch(rf"nightly \d{{4}}-\d\d-\d\d of {graph}", run["name"])
        assert f"graph:{graph}" in run["tags"]
        names = {task["name"] for task in tasks}
        assert {"build topics", "check nodes and chunks"} <= names
        assert not [name for name in names if "(" in name or "_" in name]
        assert "build topics: started" in logs
        assert re.search(r"check nodes and chunks: (\d+) of \1 rules hold", logs)


def ended_nights(site: PrefectSite) -> list[dict[str, Any]]:
    """Runs of the flow that the server knows to have ended."""
    wanted = {"flows": {"name": {"any_": ["nightly"]}}, "limit": 200}
    runs = site.api.post("/flow_runs/filter", json=wanted).raise_for_status().json()
    return [run for run in runs if run["end_time"]]


def is_part(run: Run, night: Run) -> bool:
    """Whether a run is nested in that of a night."""
    return bool(run.data.tags.get(PARENT) == night.info.run_id)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a snapshot says of itself."""
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


# Files that name topics. A topic keeps the key that it had the night before, so they differ by it
# from those of a new home; `topics_of` and `bridges_of` compare them. The ranker is fitted to
# questions of earlier nights, and a new home has none.
OF_TOPICS = (
    "bridge.arrow",
    "edge.arrow",
    "entity.arrow",
    "into.arrow",
    "lexical.clusters.arrow",
    "node.arrow",
    "node_id.arrow",
    "out.arrow",
    "vector.clusters.0.arrow",
)


def differing_files(first: HomeOfTheWeek, second: HomeOfTheWeek) -> list[str]:
    """Files of two served snapshots that differ in a byte or are in one alone, and parts that
    differ.
    """
    folders = [home.home / "snapshots" / home.served() for home in (first, second)]
    manifests = [read_manifest(folder) for folder in folders]
    files = [{**manifest["files"]} for manifest in manifests]
    names = sorted({*files[0], *files[1]} - {RANKER_FILE, *OF_TOPICS})
    differing = [name for name in names if files[0].get(name) != files[1].get(name)]
    counted = ("nodes", "edges", "documents", "models", "types", "node_types")
    differing += [name for name in counted if manifests[0][name] != manifests[1][name]]
    if manifests[0]["parts"]["weights"] != manifests[1]["parts"]["weights"]:
        differing.append("weights")
    return differing


def topics_of(home: HomeOfTheWeek, folder: Path) -> list[tuple[object, ...]]:
    """Every topic with what a person sees of it, and its members, whatever its key is."""
    home.run("export", str(folder), "--only", "graph")
    rows = read_lines(folder / "clusters.jsonl")
    names = {f"clusters/{row['_key']}": row["name"] for row in rows}
    members: dict[str, list[str]] = {identifier: [] for identifier in names}
    for edge in read_lines(folder / "cluster_edges.jsonl"):
        if edge["type"] in ("PART_OF", "SUBTOPIC_OF"):
            members[edge["_to"]].append(names.get(edge["_from"], edge["_from"]))
    topics = [
        (row["level"], row["name"], row["summary"], *sorted(members[f"clusters/{row['_key']}"]))
        for row in rows
    ]
    return sorted(topics, key=repr)


def bridges_of(folder: Path) -> dict[frozenset[str], set[frozenset[str]]]:
    """The bridges of an exported graph: the edges of each, by the names of the topics it joins."""
    topics = {row["_key"]: row["name"] for row in read_lines(folder / "clusters.jsonl")}
    bridges: dict[frozenset[str], set[frozenset[str]]] = {}
    for row in read_lines(folder / "bridge_cache.jsonl"):
        joined = frozenset((topics[row["from_cluster"]], topics[row["to_cluster"]]))
        bridges.setdefault(joined, set()).add(frozenset(row["edges"]))
    return bridges


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def holds(path: Path, texts: Sequence[bytes]) -> bool:
    """Whether a file holds any of these, packed or plain."""
    return any(text in content for content in contents_of(path) for text in texts)


def contents_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and what it holds packed: rows of Arrow and Parquet, arrays, gzip."""
    yield path.read_bytes()
    if path.suffix == ".parquet":
        yield words_of(pq.read_table(path))
    elif path.suffix == ".arrow":
        with pa.memory_map(str(path)) as source:
            yield words_of(pa.ipc.open_file(source).read_all())
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                yield arrays[name].tobytes()
    elif path.suffix == ".gz":
        yield gzip.decompress(path.read_bytes())


def words_of(table: pa.Table) -> bytes:
    """Every column of a table but vectors."""
    columns = [field.name for field in table.schema if not is_vector(field.type)]
    return repr(table.select(columns).to_pylist()).encode()


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column holds numbers alone."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return is_vector(kind.value_type)
    return bool(pa.types.is_primitive(kind))
