"""A watched folder is read at the start and after each burst of changes."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from hades.build.watch import source_kind_of, watch_folder
from hades.errors import HadesError


def test_a_change_refreshes_and_a_failed_refresh_does_not_end_the_watch(tmp_path: Path) -> None:
    stop = Event()
    calls: list[int] = []

    def refresh() -> dict[str, Any]:
        calls.append(len(calls))
        if len(calls) == 2:
            raise HadesError("half a file")
        return {"calls": len(calls)}

    (tmp_path / "home").mkdir()
    watched = watch_folder(tmp_path, refresh, quiet_seconds=0.2, ignored=tmp_path / "home", stop=stop)
    first = next(watched)
    assert (first.changed, first.report) == ((), {"calls": 1})
    writer = _writes_until(tmp_path, stop)
    second = next(watched)
    assert second.problem == "half a file"
    assert second.changed[0].startswith("note")
    third = next(watched)
    assert third.report == {"calls": 3}
    stop.set()
    assert list(watched) == []
    writer.join()


def _writes_until(folder: Path, stop: Event) -> Any:
    """Keeps changing the folder, because a watcher that is still starting misses a change."""
    from threading import Thread

    def write() -> None:
        number = 0
        while not stop.wait(0.7):
            number += 1
            (folder / "home" / f"own{number}").write_text("ignored")
            (folder / f"note{number}.md").write_text("text")

    thread = Thread(target=write)
    thread.start()
    return thread


def test_a_folder_of_mostly_code_is_a_workspace_and_one_of_mostly_pages_is_not(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text("x = 1\n")
    (tmp_path / "guide.md").write_text("# Guide\n")
    assert source_kind_of(tmp_path) == "workspace"
    (tmp_path / "more.rst").write_text("More\n")
    assert source_kind_of(tmp_path) == "documents"
    (tmp_path / "writer.py").write_text("y = 1\n")
    (tmp_path / "page.html").write_text("<p>Only documents read it.</p>")
    assert source_kind_of(tmp_path) == "documents"


def test_a_folder_with_a_project_file_is_a_workspace(tmp_path: Path) -> None:
    assert source_kind_of(tmp_path) == "documents"
    (tmp_path / "pyproject.toml").write_text("")
    assert source_kind_of(tmp_path) == "workspace"


def test_the_makefile_and_settings_of_a_manual_do_not_make_it_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "index.rst").write_text("Manual\n======\n")
    (tmp_path / "install.rst").write_text("Install\n=======\n")
    (tmp_path / "conf.py").write_text("project = 'manual'\n")
    (tmp_path / "Makefile").write_text("html:\n\tsphinx-build . out\n")
    assert source_kind_of(tmp_path) == "documents"
