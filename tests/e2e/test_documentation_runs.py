"""Every command and every program that the documentation shows is run, page by page, in a world of
its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.arango_double.server import ArangoDouble
from tests.e2e.documented import (
    COMMAND,
    ROOT,
    blocks,
    commands,
    elsewhere,
    make_world,
    pages,
    script_of,
)
from tests.patience import HANG_SECONDS
from tests.ports import free_port

pytestmark = [pytest.mark.integration, pytest.mark.slow]
DATABASE = "127.0.0.1:8529"


def environment(folder: Path, programs: Path) -> dict[str, str]:
    """As a reader has it who installed HADES: the commands on the path, a home in the folder, no
    model to export.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HADES_")}
    return kept | {
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "PYTHONPATH": str(ROOT),
        "HADES_HOME": ".hades",
        "HADES_EMBEDDER": "hashing",
        "PREFECT_HOME": str(folder / "prefect"),
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory, programs) -> tuple[Path, Path, str]:
    """The world every page starts from, where it stands while a page runs, and the id of the
    question that was asked of it.
    """
    folder = tmp_path_factory.mktemp("world") / "ledger"
    make_world(folder)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    late = folder / "docs" / "film.md"
    written = late.read_text(encoding="utf-8")
    late.unlink()
    _run(folder, programs, "hades ingest documents docs && hades run nightly").check_returncode()
    late.write_text(written, encoding="utf-8")
    _run(
        folder, programs, "hades run nightly"
    ).check_returncode()  # a second snapshot: one to go back to
    asked = _run(
        folder, programs, 'hades query "which store is the default?" --recipe pathrag --json'
    )
    kept = folder.rename(folder.with_name("kept"))
    return kept, folder, json.loads(asked.stdout)["query_id"]


@pytest.fixture(scope="module")
def database():
    with ArangoDouble(root_password="secret") as double:
        yield double


WITH_BLOCKS = [
    page for page in pages() if any(block.language in ("sh", "python") for block in blocks(page))
]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_shows_runs(page, world, programs, database):
    kept, folder, query_id = world
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder, symlinks=True)
    ports = set(re.findall(r"--port[ =](\d+)", page.read_text(encoding="utf-8")))
    replaced = {port: str(free_port()) for port in ports} | {
        DATABASE: database.url.removeprefix("http://")
    }
    ended = _run(folder, programs, script_of(page, query_id, replaced))
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_stands_in_a_block_that_is_run(page):
    """A command in a block of no language would be shown and never tried."""
    shown = [
        line
        for block in blocks(page)
        if block.language not in ("sh", "python")
        for line in block.text.splitlines()
    ]
    assert [line for line in shown if COMMAND.match(line)] == []


def test_what_is_left_out_is_really_there():
    """Targets of make, benchmarks and modules that a page names exist, though the page does not run
    them.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in pages():
        for block in blocks(page):
            for line in block.text.splitlines() if block.language == "sh" else ():
                if line.startswith("make "):
                    assert f"\n{line.split()[1]}:" in makefile, (page.name, line)


def test_the_reader_of_pages_leaves_out_only_what_it_says():
    assert commands("# a comment\nhades query \\\n  'x'  # why\nmake test\n") == [
        "hades query 'x'  # why"
    ]
    assert elsewhere("HADES_X=1 make up") == "make targets"
    assert elsewhere("hades status") is None


def _run(folder: Path, programs: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a bash script in the folder, and end whatever it put behind."""
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(folder, programs),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=HANG_SECONDS)
    finally:
        _end(process.pid)
    return subprocess.CompletedProcess(script, process.returncode, output, errors)


def _end(group: int) -> None:
    """Whatever a page put behind ends with it."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
