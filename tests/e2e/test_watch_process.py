"""`hades watch` as people run it: what is saved while it updates is found without more changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hades.settings.load import load_settings
from hades.wiring import open_hades
from tests.patience import HANG_SECONDS

READY, UPDATED = "ready to be asked by words", "updated in"
SAVED_LATE = "\nThe quokka rota is signed by Ermintrude.\n"


def test_what_is_saved_in_the_first_pass_is_found_without_another_change(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    page = folder / "backfill.md"
    page.write_text("# Backfill\n\nA backfill runs the days that were left out.\n")
    (folder / "pools.md").write_text("# Pools\n\nA pool limits how many tasks run at once.\n")
    with watching(folder, tmp_path / "home") as lines:
        wait_for_line(lines, READY)  # the folder was read; vectors and edges are still to come
        page.write_text(page.read_text() + SAVED_LATE)
        assert " after " not in wait_for_line(lines, UPDATED)
        assert "after backfill.md: 1 changed" in wait_for_line(lines, UPDATED)
    variables = {"HADES_HOME": str(tmp_path / "home"), "HADES_EMBEDDER": "hashing"}
    with open_hades(load_settings(variables)) as hades:
        passages = hades.retrieve("Who signs the quokka rota?").passages
    assert any("Ermintrude" in passage.text for passage in passages)


@contextmanager
def watching(folder: Path, home: Path) -> Iterator[IO[str]]:
    """`hades watch` in a process of its own; the lines that it writes to stderr."""
    command = [sys.executable, "-m", "hades.surfaces.cli.commands", "watch", str(folder)]
    environment = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    process = subprocess.Popen(
        [*command, "--quiet-seconds", "0.2"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield process.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)


def wait_for_line(lines: IO[str], wanted: str) -> str:
    """The next line that holds these words; the process ended where there is none."""
    for line in lines:
        if wanted in line:
            return line
    raise AssertionError(f"hades watch ended without a line {wanted!r}")
