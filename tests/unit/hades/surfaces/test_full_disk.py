"""A full disk is named as one, and what is there can still be read."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hades.errors import StoreError
from hades.stores.sqlite.store import translate
from hades.surfaces.cli import ingest
from tests.command_line import run, run_json


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one memory, on a disk that has become full."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    run_json("memory", "add", "mill", "Ada runs the mill.")
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    return tmp_path / "home"


def test_memory_is_read_without_a_byte_for_the_store(home: Path) -> None:
    before = sorted(home.glob("graph.db*"))
    content = (home / "graph.db").read_bytes()
    state = run_json("memory", "latest", "mill")["state"]
    assert state["content"] == "Ada runs the mill."
    assert "Ada runs the mill." in run("memory", "search", "mill").output
    assert run_json("status")["counts"]["memory_states"] == 1
    assert sorted(home.glob("graph.db*")) == before
    assert (home / "graph.db").read_bytes() == content


@pytest.mark.parametrize("text", ["disk I/O error", "database or disk is full"])
def test_the_store_says_that_the_disk_is_full(home: Path, text: str) -> None:
    with (
        pytest.raises(StoreError, match=r"the disk of HADES_HOME is full \(0 bytes free at "),
        translate(home / "graph.db"),
    ):
        raise sqlite3.OperationalError(text)


def test_a_damaged_disk_that_has_room_is_not_called_full(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="disk I/O error"), translate(tmp_path / "graph.db"):
        raise sqlite3.OperationalError("disk I/O error")


def test_a_command_says_that_the_disk_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(home / "hades.yaml"))

    monkeypatch.setattr(ingest, "write_whole", refuse)
    (home.parent / "notes").mkdir()
    done = run("init", "--path", "notes", "--home", "graph", "--llm-url", "")
    assert done.exit_code == 1
    assert f"the disk is full at {home}; free some space there" in done.output
