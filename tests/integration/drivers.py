"""Runs a driver program beside these tests: it does the work in processes that are killed, and
prints a report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hades.stores.arango.build_lease import BuildLease
from tests.patience import HANG_SECONDS


def run_driver(
    programs: Path,
    driver: str,
    *arguments: object,
    log: Path | None = None,
    seconds: int = 2 * HANG_SECONDS,
) -> dict[str, Any]:
    """The JSON that `driver` prints, a copy of the warm process; when it fails, the end of its
    errors and of `log`.
    """
    words = [str(Path(__file__).with_name(driver)), *map(str, arguments)]
    done = subprocess.run(
        [str(programs / "python"), "-"],
        input=f"import runpy, sys\nsys.argv = {words!r}\nrunpy.run_path(sys.argv[0], "
        "run_name='__main__')\n",
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    written = log.read_text()[-2000:] if log is not None and log.is_file() else ""
    assert done.returncode == 0, done.stderr[-3000:] + written
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def hasten_leases(times: int) -> None:
    """Nobody waits long for a killed builder here."""
    BuildLease.__init__.__defaults__ = tuple(
        one / times for one in BuildLease.__init__.__defaults__
    )  # type: ignore


def in_child(work: object) -> None:
    """Run in a forked child, so that this process never holds the file or Arrow's threads."""
    child = os.fork()
    if child == 0:
        work()  # type: ignore[operator]
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"a child ended with status {status}")
