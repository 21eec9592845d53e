"""What HADES keeps of a person's texts is for that person alone, unless the home was shared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hades.settings.load import load_settings
from hades.wiring import hold_build, open_hades
from tests.command_line import run, run_json


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one page on a machine where files are readable by everybody unless told."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADES_HOME", "graph/home")
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


def rights_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def readable_by_others(home: Path) -> list[str]:
    """Files and folders, the home among them, that have any right for another user."""
    everything = [home, *home.rglob("*")]
    return [str(path) for path in everything if not path.is_symlink() and rights_of(path) & 0o077]


def test_a_home_is_made_for_its_owner_alone(folder: Path) -> None:
    home = folder / "graph" / "home"
    run_json("ingest", "documents", "notes")
    run_json("publish")
    run_json("query", "Where does the Rhine flow?")
    assert readable_by_others(home) == []
    rights = next(check for check in run_json("doctor")["checks"] if check["name"] == "rights")
    assert rights["status"] == "ok"


def test_a_restored_home_is_for_its_owner_alone(folder: Path) -> None:
    run_json("ingest", "documents", "notes")
    run_json("backup", "copy")
    run_json("restore", "copy", HADES_HOME="elsewhere")
    assert readable_by_others(folder / "elsewhere") == []


def test_python_makes_a_home_for_its_owner_alone(folder: Path) -> None:
    with open_hades():
        assert rights_of(folder / "graph" / "home") == 0o700
    with hold_build("test", load_settings({"HADES_HOME": "second"}, folder)):
        assert rights_of(folder / "second") == 0o700


def test_a_home_that_was_opened_to_a_group_stays_so(folder: Path) -> None:
    home = folder / "graph" / "home"
    home.mkdir(parents=True)
    home.chmod(0o2750)
    run_json("ingest", "documents", "notes")
    assert rights_of(home) == 0o2750
    assert rights_of(home / "graph.db") & stat.S_IRGRP


def test_doctor_names_a_home_that_everybody_may_read(folder: Path) -> None:
    home = folder / "graph" / "home"
    home.mkdir(parents=True)
    home.chmod(0o755)
    done = run("doctor")
    assert "the home has the rights 0755" in done.output
    assert "chmod -R go-rwx" in done.output
