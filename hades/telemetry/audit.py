"""Who touched the graph: one line a call, what reads and what writes in files of their own (requirements B35, B55)."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

logger = logging.getLogger(__name__)

CallMode = Literal["RO", "RW"]


def _now() -> datetime:
    return datetime.now(UTC)


class Audit:
    """Appends {at, mode, path, status, ms} to `audit_ro.jsonl` or `audit_rw.jsonl` in a folder.

    A line is one write to the end of the file, so that processes that share it never mix theirs.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime] = _now) -> None:
        self._folder, self._now = folder, now

    @contextmanager
    def call(self, mode: CallMode, path: str) -> Iterator[None]:
        """Write the line when the call ends, whichever way it ends; an error keeps its way to the caller."""
        began, status = time.perf_counter(), "ok"
        try:
            yield
        except BaseException as error:
            status = type(error).__name__
            raise
        finally:
            self.write(mode, path, status, (time.perf_counter() - began) * 1000)

    def write(self, mode: CallMode, path: str, status: str, ms: float, **more: str) -> None:
        """Append the line of a call that has ended; `more` says who it was and which turn, where that is known."""
        line = {"at": self._now().isoformat(), "mode": mode, "path": path, "status": status, "ms": round(ms, 3), **more}
        logger.debug("call", extra=line)
        try:
            self._append(f"audit_{mode.lower()}.jsonl", json.dumps(line).encode() + b"\n")
        except OSError as error:  # a full or read-only disk must not cost the caller its answer
            logger.warning("the audit line of %s %s could not be written: %s", mode, path, error)

    def _append(self, name: str, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            file = os.open(self._folder / name, flags, 0o640)
        except FileNotFoundError:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / name, flags, 0o640)
        try:
            os.write(file, line)
        finally:
            os.close(file)
