"""`hades doctor` finds what is wrong with a graph that worked once, says so in one line, and names
the next step.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.night.release.publish import append_alert
from hades.settings.load import load_settings
from hades.surfaces.cli import doctor as machine
from hades.surfaces.cli import doctor as ways_in
from hades.surfaces.cli.doctor import (
    check_home,
    check_nights,
    check_servers,
    check_snapshot,
    check_sockets,
    check_tokens,
    check_versions,
    installed,
)
from tests.homes import publish_pages
from tests.loopback import answering

NOON = datetime(2026, 2, 2, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    pages = {"page.md": "# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n"}
    return publish_pages(tmp_path_factory.mktemp("doctored"), pages).home


@pytest.fixture
def home(published, tmp_path) -> Path:
    shutil.copytree(published, tmp_path / "home")
    return tmp_path / "home"


def snapshot_checks(home: Path, *, model: str | None = None, deep: bool = False):
    return {check.name: check for check in check_snapshot(home, model, NOON, deep=deep)}


def test_a_sound_snapshot_is_named(home):
    (check,) = check_snapshot(home, "hashing@2/256", NOON, deep=True)
    assert check.status == "ok"
    assert "every byte was read" in check.found
    assert not list((home / "snapshots").glob("*/.verified*"))


@pytest.mark.parametrize(
    ("damage", "deep", "told"),
    [
        ("pointer", False, "does not say which snapshot serves"),
        ("no pointer", False, "none serves"),
        ("folder", False, "cannot be read"),
        ("cut", False, "bytes, expected"),
        ("changed", True, "was damaged"),
    ],
)
def test_what_serves_and_is_not_whole_fails_with_the_way_out(home, damage, deep, told):
    root = home / "snapshots"
    (folder,) = (path for path in root.glob("g*"))
    victim = max(folder.glob("*.bin"), key=lambda path: path.stat().st_size, default=None) or max(
        (path for path in folder.iterdir() if path.suffix != ".json"),
        key=lambda path: path.stat().st_size,
    )
    if damage == "pointer":
        (root / "current").write_text("{")
    elif damage == "no pointer":
        (root / "current").unlink()
    elif damage == "folder":
        (folder / "manifest.json").unlink()
    elif damage == "cut":
        victim.write_bytes(victim.read_bytes()[:-1])
    else:
        victim.write_bytes(bytes([victim.read_bytes()[0] ^ 1]) + victim.read_bytes()[1:])
    check = snapshot_checks(home, deep=deep)["snapshot"]
    assert check.status == "fail"
    assert told in check.found
    assert "hades publish" in check.next


def test_vectors_of_another_model_are_noticed(home):
    check = snapshot_checks(home, model="other@1/8")["vectors"]
    assert (check.status, "reembed" in check.next) == ("warn", True)


def test_a_publisher_that_died_is_told_from_one_at_work(home):
    root = home / "snapshots"
    (root / ".building-1").mkdir()
    (root / ".lock").touch()
    assert snapshot_checks(home)["publishing"].status == "warn"
    with (root / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert snapshot_checks(home)["publishing"].status == "ok"


def test_a_night_that_did_not_come_and_what_was_alerted_since(tmp_path):
    (tmp_path / "reports").mkdir()
    body = {
        "build": "nightly-20260201T020000",
        "as_of": "2026-02-01",
        "snapshot": "g1",
        "seconds": {"edges": 4.0},
    }
    (tmp_path / "reports/nightly-20260201T020000.json").write_text(json.dumps(body))
    night = datetime(2026, 2, 1, 2, tzinfo=UTC)
    assert [check.status for check in check_nights(tmp_path, night + timedelta(hours=20))] == ["ok"]
    append_alert(tmp_path, night - timedelta(hours=1), "contract broken", "old", "")
    append_alert(tmp_path, night + timedelta(hours=1), "nightly failed", "brave-otter", "")
    late, alert = check_nights(tmp_path, night + timedelta(hours=40))
    assert (late.status, "hades-nightly.timer" in late.next) == ("warn", True)
    assert "brave-otter" in alert.found


def test_versions_known_to_break_prefect_fail(monkeypatch):
    versions = installed() | {"fastapi": "0.151.0", "SQLAlchemy": "2.1.0"}
    failed = {check.name for check in check_versions(versions) if check.status == "fail"}
    assert failed == {"fastapi", "SQLAlchemy"}
    assert not [check for check in check_versions(installed()) if check.status == "fail"]


def test_a_disk_without_room_for_the_next_build_warns(home, monkeypatch):
    monkeypatch.setattr(machine, "LOW_DISK_BYTES", 2**62)
    (check,) = check_home(home)
    assert (check.status, "--prune 1" in check.next) == ("warn", True)


def test_tokens_that_others_can_read_fail(tmp_path):
    assert list(check_tokens(tmp_path)) == []
    (tmp_path / "tokens.json").write_text("{}")
    (tmp_path / "tokens.json").chmod(0o640)
    (check,) = check_tokens(tmp_path)
    assert (check.status, check.next) == ("fail", f"chmod 600 {tmp_path / 'tokens.json'}")
    (tmp_path / "tokens.json").chmod(0o600)
    assert [check.status for check in check_tokens(tmp_path)] == ["ok"]


@pytest.mark.parametrize(
    ("variable", "rights", "status"),
    [
        ("ARANGO_RO_UDS", 0o660, "ok"),
        ("ARANGO_RO_UDS", 0o666, "fail"),
        ("ARANGO_RW_UDS", 0o600, "ok"),
        ("ARANGO_RW_UDS", 0o660, "fail"),
    ],
)
def test_a_socket_lets_in_nobody_it_is_not_for(tmp_path, monkeypatch, variable, rights, status):
    monkeypatch.setattr(ways_in, "SERVED", {})
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(rights)
        (check,) = check_sockets(load_settings({variable: str(path)}, tmp_path))
    assert check.status == status
    assert bool(check.next) == (status == "fail")


def test_a_socket_that_is_not_there_or_is_none_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(ways_in, "SERVED", {"read-only": tmp_path / "nobody"})
    (tmp_path / "file").write_text("")
    settings = load_settings(
        {"ARANGO_RO_UDS": str(tmp_path / "gone"), "ARANGO_RW_UDS": str(tmp_path / "file")}, tmp_path
    )
    gone, none = check_sockets(settings)
    assert "cannot be seen" in gone.found
    assert "is no socket" in none.found


def test_servers_are_greeted_and_silence_is_told(tmp_path):
    with answering(
        lambda path, *_: (200 if path in ("/api/health", "/health") else 404, {}, [])
    ) as url:
        variables = {
            "PREFECT_API_URL": f"{url}/api",
            "HADES_MLFLOW_URI": url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        }
        alive = [check.status for check in check_servers(load_settings(variables, tmp_path))]
    silent = {check.name: check for check in check_servers(load_settings(variables, tmp_path))}
    assert alive == ["ok", "ok", "ok"]
    assert {name: check.status for name, check in silent.items()} == {
        "prefect": "fail",
        "mlflow": "fail",
        "collector": "warn",
    }
    assert all(check.next for check in silent.values())
