"""The commands on a real store in a temporary home."""

import json
import os
from pathlib import Path

import pytest

from hades.surfaces.cli import ingest as demo
from hades.surfaces.cli.ingest import PACKAGES, QUESTIONS
from schemas.catalogue import COLLECTIONS
from tests.command_line import run


@pytest.fixture
def hades(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HADES_", "ARANGO_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return run


def test_status_of_an_empty_home_counts_zero_and_writes_nothing(hades, tmp_path):
    done = hades("status", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 0
    assert document["provisioned"] is False
    assert document["counts"] == {collection.name: 0 for collection in COLLECTIONS}
    assert list(tmp_path.iterdir()) == []


def test_provision_creates_once(hades, tmp_path):
    first = json.loads(hades("provision", "--json").stdout)
    second = json.loads(hades("provision", "--json").stdout)
    assert {collection.name for collection in COLLECTIONS} <= set(first["created"])
    assert second["created"] == []
    assert (tmp_path / ".hades/graph.db").is_file()
    assert json.loads(hades("status", "--json").stdout)["provisioned"] is True
    assert "nothing to create" in hades("provision").stdout


def test_doctor_before_provisioning_warns_and_names_the_next_step(hades, tmp_path):
    done = hades("doctor", "--json")
    document = json.loads(done.stdout)
    store = next(check for check in document["checks"] if check["name"] == "store")
    assert (store["status"], store["next"]) == ("warn", "hades provision")
    assert list(tmp_path.iterdir()) == []


def test_doctor_after_provisioning_is_content(hades):
    hades("provision")
    done = hades("doctor", "--deep", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 0
    assert document["ok"] is True
    assert document["store"]["mode"] == "ro"
    assert {check["status"] for check in document["checks"]} == {"ok"}
    assert document["versions"]["prefect"] == "3.8.8"


def test_doctor_masks_secrets(hades, monkeypatch):
    monkeypatch.setenv("HADES_ARANGO_PASSWORD", "s3cret")
    for arguments in (["doctor"], ["doctor", "--json"]):
        done = hades(*arguments)
        assert "HADES_ARANGO_PASSWORD" in done.stdout
        assert "s3cret" not in done.output


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("HADES_STORE", "oracle", "settings"),
        ("HADES_STORE", "arango", "store"),
        ("HADES_EMBEDDER", "openai", "embedder"),
    ],
)
def test_doctor_fails_on_what_cannot_work(hades, monkeypatch, variable, value, name):
    monkeypatch.setenv(variable, value)
    done = hades("doctor", "--json")
    failed = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "fail"]
    assert done.exit_code == 1
    assert [check["name"] for check in failed] == [name]
    assert failed[0]["next"]


def test_doctor_fails_on_a_home_that_is_a_file(hades, tmp_path):
    (tmp_path / ".hades").write_text("not a folder")
    done = hades("doctor", "--json")
    assert done.exit_code == 1
    assert any(
        check["name"] == "home" and check["status"] == "fail"
        for check in json.loads(done.stdout)["checks"]
    )


def test_status_shows_only_what_holds_something_and_what_to_do_next(hades, tmp_path):
    assert "Next: hades ingest documents PATH" in hades("status").stdout
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Lake Orin\n\nLake Orin is fed by the river Sel.\n")
    (tmp_path / "notes" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    assert hades("ingest", "documents", str(tmp_path / "notes")).exit_code == 0
    told = hades("status").stdout
    assert "doc_chunks" in told
    assert "memory_states" not in told
    assert "broken.pdf" in told
    assert "nothing was built yet. Next: hades build" in told
    assert "cost: 0" in told
    document = json.loads(hades("status", "--json").stdout)
    assert [Path(one["uri"]).name for one in document["set_aside"]] == ["broken.pdf"]
    assert document["counts"]["memory_states"] == 0
    assert document["nightly"]["stages"]["topics"] is None
    assert document["nightly"]["cost"]["price"] == 0.0


@pytest.mark.parametrize("option", [None, "--json", "--debug"])
def test_an_error_is_a_message_and_a_traceback_only_with_debug(hades, monkeypatch, option):
    monkeypatch.setenv("HADES_STORE", "oracle")
    done = hades("status", *([option] if option else []))
    assert done.exit_code == 1
    assert "HADES_STORE" in done.stderr
    assert ("Traceback" in done.stderr) == (option == "--debug")
    assert (
        json.loads(done.stdout)["error"]["type"] == "SettingsError"
        if option == "--json"
        else done.stdout == ""
    )


def test_a_damaged_file_is_reported_not_dumped(hades, tmp_path):
    (tmp_path / ".hades").mkdir()
    (tmp_path / ".hades/graph.db").write_bytes(b"this is no database, and never was one" * 100)
    done = hades("status", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["type"] == "StoreDamaged"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["stat"], ["status", "--nope"], ["provision", "extra"]])
def test_bad_usage_is_exit_2(hades, arguments):
    assert hades(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("packages", "files", "chunks"),
    [
        (("html", "json", "tomllib"), 12, 100),
        pytest.param(PACKAGES, 100, 2_000, marks=pytest.mark.soak),
    ],
)
def test_demo_builds_publishes_and_answers_and_repeats_in_no_time(
    hades, tmp_path, monkeypatch, packages, files, chunks
):
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setattr(demo, "PACKAGES", packages)
    first = json.loads(hades("demo", "--json").stdout)
    assert first["counts"]["files"] >= files
    assert first["counts"]["doc_chunks"] >= chunks
    assert first["night"]["topics"]["topics"] >= 5
    assert [answer["query"] for answer in first["answers"]] == list(QUESTIONS)
    assert all(answer["passages"] for answer in first["answers"])
    assert any(answer["paths"] for answer in first["answers"])
    assert first["answers"][-1]["passages"][0]["document"].startswith("json/")
    assert Path(first["night"]["report"]).is_file()
    assert first["explorer"] == "http://127.0.0.1:8377/"
    assert not (tmp_path / ".hades/graph.db").exists()
    second = json.loads(hades("demo", "--json").stdout)
    assert second["snapshot"] == first["snapshot"]
    assert second["report"]["embedded"] == second["report"]["chunks"] == 0
    assert second["night"]["topics"]["mode"] == "skipped"


def test_ingest_forget_and_publish_a_folder(hades, tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "one.md").write_text("# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage.\n")
    (pages / "two.md").write_text(
        "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine.\n"
    )
    (pages / "bad.txt").write_bytes(b"\x00\x01\x02" * 100)
    done = json.loads(hades("ingest", "documents", "pages", "--json").stdout)
    assert done["documents"]["new"] == 2
    assert sum(done["quarantined"].values()) == 1
    again = json.loads(hades("ingest", "documents", "pages", "--json").stdout)
    assert again["documents"]["unchanged"] == 2
    assert json.loads(hades("status", "--json").stdout)["stale"] == {
        "documents to cut": 0,
        "chunks to embed": 0,
    }
    (pages / "three.md").write_text("# London\n\nLondon is where they met.\n")
    hades("ingest", "documents", "pages", "--phase", "nodes")
    assert json.loads(hades("status", "--json").stdout)["stale"]["documents to cut"] == 1
    hades("ingest", "documents", "pages")
    snapshot = json.loads(hades("publish", "--json").stdout)["snapshot"]
    certificate = json.loads(hades("forget", "one.md", "--json").stdout)
    assert certificate["complete"] is True
    assert certificate["snapshots_from_before"] == [snapshot]
    assert hades("forget", "one.md").exit_code == 1
    assert hades("ingest", "documents", "pages", "--phase", "nonsense").exit_code == 2
    without = json.loads(hades("ingest", "documents", "pages", "--edges=0", "--json").stdout)
    assert set(without["seconds"]) == {"nodes", "chunks", "embeddings"}
    assert hades("ingest", "documents", "nowhere").exit_code == 1
