"""Progress bars on a terminal, each with the time that remains; none with `--quiet`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hades.ports.progress import Progress


QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def show_progress() -> Iterator[Progress | None]:
    """Bars while work reports progress; nothing where stderr is not a terminal, so that logs and pipes stay clean."""
    if QUIET.get() or not sys.stderr.isatty():
        yield None
        return
    bars: list[Any] = []
    tasks: dict[str, Any] = {}

    def show(phase: str, done: int, total: int | None) -> None:
        if not bars:
            bars.append(_start_bars())
        if phase not in tasks:
            tasks[phase] = bars[0].add_task(phase, total=total)
        bars[0].update(tasks[phase], completed=done, total=total)

    try:
        yield show
    finally:
        for one in bars:
            one.stop()


def _start_bars() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    bars = Progress(*columns, console=Console(stderr=True))
    bars.start()
    return bars
