"""A backup that was restored answers the same questions with the same bytes, whatever was written
meanwhile.
"""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hades.night.release.backup import (
    MANIFEST,
    BackupError,
    back_up,
    dated,
    read,
    retain,
    seal,
    verify,
)
from hades.ports.store import Mode
from hades.snapshot.pointer import pin
from hades.stores.sqlite.store import SqliteStore, copy_as_of_now
from hades.wiring import open_answers, open_hades, open_store
from schemas.catalogue import collection_named
from tests.arango_double.server import ArangoDouble
from tests.command_line import run_json
from tests.homes import settings_of
from tests.patience import HANG_SECONDS
from tests.unit.hades.night.release.small_graphs import write_pages

NOON = datetime(2026, 2, 2, 12, tzinfo=UTC)
QUESTIONS = (
    ("Who worked with Charles Babbage?", "pathrag"),
    ("letters to Ada Lovelace in Vienna", "hirag_pathrag"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A home with a published graph, a pinned snapshot and a file of the registry."""
    folder = tmp_path_factory.mktemp("built")
    with open_hades(settings_of(folder / "home")) as hades:
        hades.ingest.documents(write_pages(folder / "pages", 12))
        snapshot = hades.publish().snapshot
    pin(folder / "home", "kept", snapshot)
    return folder / "home"


@pytest.fixture(scope="module")
def safe(built, tmp_path_factory) -> Path:
    """A backup of it."""
    folder = tmp_path_factory.mktemp("safe") / "safe"
    hades(built, "backup", str(folder))
    return folder


@pytest.fixture
def home(built, tmp_path) -> Path:
    shutil.copytree(built, tmp_path / "home")
    return tmp_path / "home"


def answers_of(home: Path) -> list[bytes]:
    """What each question is answered, as bytes; without the times that no two turns share."""
    with open_answers(settings_of(home)) as answers:
        found = [answers.retrieve(question, recipe=recipe) for question, recipe in QUESTIONS]
    moving = {"query_id", "telemetry", "conveyance"}
    return [
        json.dumps(one.model_dump(mode="json", exclude=moving), sort_keys=True).encode()
        for one in found
    ]


def rows_in(store, name: str) -> list[dict]:
    """Every row, free-form objects as values: a document store may write 1.0 as 1."""
    parsed = [column.name for column in collection_named(name).columns if column.is_json]
    rows = [row for batch in store.scan(name) for row in batch.to_pylist()]
    return [
        row | {column: row[column] and json.loads(row[column]) for column in parsed} for row in rows
    ]


def hades(home: Path, *arguments: str, code: int = 0, **more: str):
    environment = {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing", "HADES_STORE": "", **more}
    return run_json(*arguments, code=code, **environment)


def test_a_restored_home_answers_with_the_same_bytes(built, safe, tmp_path):
    written = read(safe).as_dict()
    restored = hades(tmp_path / "other", "restore", str(safe))
    assert restored["snapshot"] == written["snapshot"]
    assert answers_of(tmp_path / "other") == answers_of(built)
    with closing(open_store(settings_of(tmp_path / "other"), Mode.READ_ONLY)) as store:
        assert {name: rows for name, rows in store.counts().items() if rows} == written["rows"]
        assert store.check() == []
    assert (
        json.loads((tmp_path / "other/snapshots/pins/kept").read_text())["snapshot"]
        == written["snapshot"]
    )


def test_a_home_that_holds_logs_alone_is_restored_into(safe, tmp_path):
    """`hades provision` of a server leaves its audit there, and no graph."""
    audit = tmp_path / "other" / "logs" / "audit.jsonl"
    audit.parent.mkdir(parents=True)
    audit.write_text("{}\n")
    restored = hades(tmp_path / "other", "restore", str(safe))
    assert restored["snapshot"] == read(safe).as_dict()["snapshot"]
    assert [path.read_text() for path in tmp_path.glob("other/.before-restore.*/logs/audit.*")]


@pytest.mark.slow
def test_the_registry_comes_back_so_that_weights_can_be_gone_back_to(tmp_path):
    with open_hades(settings_of(tmp_path / "home")) as graph:
        graph.ingest.documents(write_pages(tmp_path / "pages", 12))
        built = graph.build(as_of=NOON)["released"]
    hades(tmp_path / "home", "backup", str(tmp_path / "safe"))
    shutil.rmtree(tmp_path / "home")
    hades(tmp_path / "other", "restore", str(tmp_path / "safe"))
    went = hades(tmp_path / "other", "rollback", "graph", "--to", built["snapshot"])
    assert (went["snapshot"], went["weights_version"], went["missing"]) == (
        built["snapshot"],
        built["weights_version"],
        0,
    )


def test_a_backup_during_writes_is_of_one_moment(home, tmp_path):
    """The writer commits 50 entities and 49 relations between them at a time; no backup has half of
    a batch.
    """
    store, stop, committed = (
        SqliteStore.open(home / "graph.db", Mode.READ_WRITE),
        threading.Event(),
        threading.Event(),
    )
    start = store.count("entities"), store.count("relations")

    def write() -> None:
        for number in range(10_000):
            if stop.is_set():
                return
            keys = [f"w{number}x{row}" for row in range(50)]
            names = [f"written {key}" for key in keys]
            ends = [f"entities/{key}" for key in keys]
            with store.transaction(["entities", "relations"]) as unit:
                unit.upsert(
                    "entities",
                    pa.table(
                        {"_key": keys, "name": names, "name_lower": names, "type": ["concept"] * 50}
                    ),
                )
                unit.upsert(
                    "relations",
                    pa.table(
                        {
                            "_key": keys[1:],
                            "_from": ends[:-1],
                            "_to": ends[1:],
                            "type": ["related_to"] * 49,
                        }
                    ),
                )
            committed.set()

    def taken_next(name: str) -> dict[str, int]:
        committed.clear()
        assert committed.wait(HANG_SECONDS)
        return hades(home, "backup", str(tmp_path / name))["rows"]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        taken = [taken_next(f"safe{number}") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    store.close()
    batches = [
        ((rows["entities"] - start[0]) / 50, (rows["relations"] - start[1]) / 49) for rows in taken
    ]
    assert all(entities == relations == int(entities) for entities, relations in batches)
    assert batches[-1][0] > batches[0][0] > 0, "nothing was written meanwhile"
    hades(tmp_path / "other", "restore", str(tmp_path / "safe2"))
    with closing(open_store(settings_of(tmp_path / "other"), Mode.READ_ONLY)) as copy:
        assert copy.check() == []


def test_rows_of_the_embedded_store_go_into_arangodb_and_back(home, tmp_path):
    before = answers_of(home)
    written = hades(home, "backup", str(tmp_path / "rows"), "--rows")
    with ArangoDouble(root_password="of the double") as double:
        server = {
            "HADES_STORE": "arango",
            "HADES_ARANGO_URL": double.url,
            "HADES_ARANGO_USER": "root",
            "HADES_ARANGO_PASSWORD": "of the double",
        }
        hades(tmp_path / "served", "restore", str(tmp_path / "rows"), **server)
        refused = hades(tmp_path / "twice", "restore", str(tmp_path / "rows"), code=1, **server)
        assert "--force" in refused["error"]["message"]
        again = hades(tmp_path / "served", "backup", str(tmp_path / "from-server"), **server)
    assert again["store"] == "rows"
    assert again["rows"] == written["rows"]
    hades(tmp_path / "home-again", "restore", str(tmp_path / "from-server"))
    assert answers_of(tmp_path / "home-again") == before
    with (
        closing(open_store(settings_of(home), Mode.READ_ONLY)) as old,
        closing(open_store(settings_of(tmp_path / "home-again"), Mode.READ_ONLY)) as new,
    ):
        for name in written["rows"]:
            assert rows_in(new, name) == rows_in(old, name)


def test_a_home_that_holds_a_graph_is_refused_and_with_force_set_aside(home, safe):
    with closing(open_store(settings_of(home), Mode.READ_WRITE)) as store:
        store.delete("relations", keys=[next(store.scan("relations")).column("_key")[0].as_py()])
        fewer = store.count("relations")
    refused = hades(home, "restore", str(safe), code=1)
    assert "--force" in refused["error"]["message"]
    restored = hades(home, "restore", str(safe), "--force")
    with closing(open_store(settings_of(home), Mode.READ_ONLY)) as store:
        assert store.count("relations") == fewer + 1
    with closing(
        SqliteStore.open(Path(restored["set_aside"]) / "graph.db", Mode.READ_ONLY)
    ) as aside:
        assert aside.count("relations") == fewer


@pytest.mark.parametrize("damage", ["change", "cut", "remove", "add"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(safe, tmp_path, damage):
    shutil.copytree(safe, tmp_path / "safe")
    victim = tmp_path / "safe/store/graph.db"
    if damage == "change":
        with victim.open("r+b") as file:
            file.seek(4096)
            file.write(b"x")
    elif damage == "cut":
        victim.write_bytes(victim.read_bytes()[:-1])
    elif damage == "remove":
        victim.unlink()
    else:
        (tmp_path / "safe/home/stranger").write_text("not of this backup")
    refused = hades(tmp_path / "other", "restore", str(tmp_path / "safe"), code=1)
    assert refused["error"]["type"] == "BackupError"
    assert "use another backup" in refused["error"]["message"]
    assert not (tmp_path / "other").exists()


def test_a_folder_that_holds_something_is_not_written_to(home, tmp_path):
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe/letter.txt").write_text("mine")
    assert "--dated" in hades(home, "backup", str(tmp_path / "safe"), code=1)["error"]["message"]
    assert [path.name for path in (tmp_path / "safe").iterdir()] == ["letter.txt"]
    assert "lies in" in hades(home, "backup", str(home / "backups"), code=1)["error"]["message"]


def test_a_backup_that_failed_leaves_nothing_that_looks_like_one(home, tmp_path):
    def full(folder: Path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        back_up(home, tmp_path / "safe", full, copy_as_of_now, at=NOON, hades="0")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_dated_backups_are_kept_newest_first_and_unfinished_ones_do_not_count(tmp_path):
    for hour in range(5):
        folder = dated(tmp_path, NOON.replace(hour=hour))
        folder.mkdir()
        if hour != 3:
            seal(folder, NOON, "0", "sqlite", {}, [])
    assert retain(tmp_path, 2) == ["hades-20260202T000000Z", "hades-20260202T010000Z"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "hades-20260202T020000Z",
        "hades-20260202T030000Z",
        "hades-20260202T040000Z",
    ]
    with pytest.raises(BackupError, match="at least the newest"):
        retain(tmp_path, 0)


def test_caches_locks_and_tenants_stay_out_and_logs_come_when_asked(home, tmp_path):
    for name in (
        "cache/models/x",
        "tenants/a/graph.db",
        "mlflow.lock",
        "logs/audit_ro.jsonl",
        "tokens.json",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    hades(home, "backup", str(tmp_path / "plain"))
    hades(home, "backup", str(tmp_path / "logged"), "--logs")
    plain, logged = set(read(tmp_path / "plain").files), set(read(tmp_path / "logged").files)
    assert logged - plain == {"home/logs/audit_ro.jsonl"}
    assert "home/tokens.json" in plain
    assert not [
        name for name in plain if "cache/" in name or "tenants/" in name or name.endswith(".lock")
    ]
    assert (tmp_path / "plain").stat().st_mode & 0o077 == 0


def test_a_manifest_of_a_later_format_is_refused(tmp_path):
    seal(tmp_path, NOON, "0", "sqlite", {}, [])
    body = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(body | {"format": 99}))
    with pytest.raises(BackupError, match="format 99"):
        verify(tmp_path)
