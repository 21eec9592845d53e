"""Keep a graph up to date with a folder: ingest and publish after each burst of changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from watchfiles import DefaultFilter, watch

from hades.errors import HadesError
from hades.ingest.sources.workspace import holds_mostly_code

_STEP_MS = 200
_CODE_MARKS = (".git", "pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml")


@dataclass(frozen=True)
class Refresh:
    """One update of the graph: what changed on disk, what was done, or why it failed."""

    changed: tuple[str, ...]
    seconds: float
    report: dict[str, Any] | None = None
    problem: str = ""


def watch_folder(
    path: Path,
    refresh: Callable[[], dict[str, Any]],
    *,
    quiet_seconds: float = 1.0,
    ignored: Path | None = None,
    stop: Event | None = None,
) -> Iterator[Refresh]:
    """Refresh once, then after each burst of changes that is followed by `quiet_seconds` without one.

    A refresh that fails is reported and the next change tries again: an editor may have left half a file.
    """
    root = path.resolve()
    yield _refresh(refresh, ())
    only = DefaultFilter(ignore_paths=[ignored.resolve()] if ignored is not None else None)
    # The library collects changes while they come less than `step` apart, and at most `debounce` long.
    changes = watch(
        root,
        watch_filter=only,
        step=max(_STEP_MS, int(1000 * quiet_seconds)),
        debounce=max(5_000, int(5_000 * quiet_seconds)),
        stop_event=stop,
        raise_interrupt=False,
    )
    for burst in changes:
        yield _refresh(refresh, tuple(sorted({_relative(Path(changed), root) for _, changed in burst})))


def source_kind_of(path: Path) -> str:
    """`workspace` for a folder with a mark of a project or mostly code, `documents` for anything else."""
    is_project = path.is_dir() and any((path / mark).exists() for mark in _CODE_MARKS)
    return "workspace" if is_project or (path.is_dir() and holds_mostly_code(path)) else "documents"


def _refresh(refresh: Callable[[], dict[str, Any]], changed: tuple[str, ...]) -> Refresh:
    began = time.perf_counter()
    try:
        report = refresh()
    except HadesError as error:
        return Refresh(changed, time.perf_counter() - began, problem=str(error))
    return Refresh(changed, time.perf_counter() - began, report)


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) and path != root else path.name
