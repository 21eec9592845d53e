"""Keep a graph up to date with a folder: ingest and publish after each burst of changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from watchfiles import DefaultFilter, watch
from watchfiles.main import FileChange

from hades.errors import HadesError
from hades.ingest.sources.workspace import holds_mostly_code
from schemas.record import JsonObject

_STEP_MS = 200
_LONGEST_BURST = 5  # quiet times after which a folder that never rests is read all the same
_CODE_MARKS = (
    ".git",
    "pyproject.toml",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
)


@dataclass(frozen=True)
class FolderUpdate:
    """One update of the graph: what changed on disk, what was done, or why it failed."""

    changed: tuple[str, ...]
    seconds: float
    report: JsonObject | None = None
    problem: str = ""


def watch_folder(
    path: Path,
    update_graph: Callable[[], JsonObject],
    *,
    quiet_seconds: float = 1.0,
    ignored: Path | None = None,
    stop: Event | None = None,
) -> Iterator[FolderUpdate]:
    """Update the graph once, then after each burst of changes that is followed by `quiet_seconds`
    without one.

    `update_graph` is `Hades.refresh_folder` of `hades/api.py` where `hades watch` runs. What
    changes during an update starts the next one. An update that fails is reported and the next
    change tries again: an editor may have left half a file.
    """
    root = path.resolve()
    only = DefaultFilter(ignore_paths=[ignored.resolve()] if ignored is not None else None)
    changes = watch(
        root,
        watch_filter=only,
        step=_STEP_MS,
        rust_timeout=_STEP_MS,
        yield_on_timeout=True,
        stop_event=stop,
    )
    next(changes, None)  # listens from here on, before the first update reads the folder
    yield _timed_update(update_graph, ())

    for changed in _quiet_bursts(changes, quiet_seconds):
        names = {_relative(Path(name), root) for name in changed}
        yield _timed_update(update_graph, tuple(sorted(names)))


def source_kind_of(path: Path) -> str:
    """`workspace` for a folder with a mark of a project or mostly code, `documents` for anything
    else.
    """
    is_project = path.is_dir() and any((path / mark).exists() for mark in _CODE_MARKS)
    if is_project or (path.is_dir() and holds_mostly_code(path)):
        return "workspace"

    return "documents"


def _quiet_bursts(
    changes: Iterator[set[FileChange]],
    quiet_seconds: float,
) -> Iterator[frozenset[str]]:
    """The files that changed together; `changes` gives an empty set for each step without one."""
    burst: set[str] = set()

    began = last = 0.0
    for change in changes:
        now = time.monotonic()
        if change:
            began = began if burst else now
            last = now
            burst |= {name for _, name in change}

        is_quiet = now - last >= quiet_seconds
        is_long = now - began >= _LONGEST_BURST * max(1.0, quiet_seconds)
        if burst and (is_quiet or is_long):
            yield frozenset(burst)
            burst.clear()


def _timed_update(
    update_graph: Callable[[], JsonObject],
    changed: tuple[str, ...],
) -> FolderUpdate:
    began = time.perf_counter()
    try:
        report = update_graph()
    except HadesError as error:
        return FolderUpdate(
            changed,
            time.perf_counter() - began,
            problem=str(error),
        )

    return FolderUpdate(
        changed,
        time.perf_counter() - began,
        report,
    )


def _relative(path: Path, root: Path) -> str:
    if path.is_relative_to(root) and path != root:
        return str(path.relative_to(root))
    return path.name
