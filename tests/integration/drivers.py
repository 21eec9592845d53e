"""Runs a driver program beside these tests: it does the work in processes that are killed, and prints a report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import HANG_SECONDS


def run_driver(program: str, *arguments: object, log: Path | None = None) -> dict[str, Any]:
    """The JSON that `program` prints; when it fails, the end of its errors and of `log`."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program)), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=2 * HANG_SECONDS,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    written = log.read_text()[-2000:] if log is not None and log.is_file() else ""
    assert done.returncode == 0, done.stderr[-3000:] + written
    report: dict[str, Any] = json.loads(done.stdout)
    return report
