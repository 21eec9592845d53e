"""A watched folder is read at the start and after each burst of changes."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

from hades.errors import HadesError
from hades.night.watch import source_kind_of, watch_folder


def test_what_changes_during_an_update_starts_the_next_one(tmp_path: Path) -> None:
    stop = Event()
    runs: list[str] = []

    def update_graph() -> dict[str, Any]:
        runs.append("run")
        (tmp_path / f"saved_in_run{len(runs)}.md").write_text("text")
        if len(runs) == 2:
            raise HadesError("half a file")
        return {"runs": len(runs)}

    watched = watch_folder(tmp_path, update_graph, quiet_seconds=0.2, stop=stop)
    first, second, third, fourth = (next(watched) for _ in range(4))
    assert (first.changed, first.report) == ((), {"runs": 1})
    assert (second.changed, second.problem) == (("saved_in_run1.md",), "half a file")
    assert (third.changed, third.report) == (("saved_in_run2.md",), {"runs": 3})
    assert fourth.changed == ("saved_in_run3.md",)
    stop.set()
    assert list(watched) == []


def test_changes_of_the_home_inside_the_folder_start_no_update(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    watched = watch_folder(tmp_path, dict, quiet_seconds=0.2, ignored=home)
    next(watched)
    (home / "graph.db").write_text("written by the update itself")
    (tmp_path / "note.md").write_text("text")
    assert next(watched).changed == ("note.md",)
    watched.close()


def test_a_folder_that_never_rests_is_read_all_the_same(tmp_path: Path) -> None:
    stop = Event()

    def write() -> None:
        while not stop.wait(0.05):
            (tmp_path / "growing.log").write_text("one more line")

    writer = Thread(target=write)
    watched = watch_folder(tmp_path, dict, quiet_seconds=0.5, stop=stop)
    next(watched)
    writer.start()
    assert next(watched).changed == ("growing.log",)
    stop.set()
    writer.join()


def test_a_folder_of_mostly_code_is_a_workspace_and_one_of_mostly_pages_is_not(
    tmp_path: Path,
) -> None:
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
