"""What is kept of past nights: reports, runs and rankers of the newest, and of every snapshot that
is there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hades.errors import SnapshotError
from hades.night.context import BuildContext
from hades.night.model_versions import ABOUT, RANKER, retain_rankers
from hades.night.night_log import REPORTS, STOPPED_PREFIX
from hades.snapshot import manifest, pointer
from hades.snapshot.pointer import PAST_NIGHT, root_of

NIGHTS = "hades-nightly"  # the experiment of the runs of nights


def trim_nights(context: BuildContext) -> None:
    """Remove what older nights left: pages and reports, runs with their files, rankers.

    What serves, what a tag names and what `hades rollback` can go back to are snapshots that are
    there, so their nights stay, whatever their age.
    """
    root = root_of(context.home)
    snapshots = pointer.folders(root)
    trim_reports(
        context.home,
        context.nights_kept,
        snapshots,
    )
    tracker = context.open_tracker()
    retain_rankers(
        tracker,
        context.nights_kept,
        _rankers_of(root, snapshots),
    )
    tracker.trim_runs(
        NIGHTS,
        context.nights_kept,
        needed=snapshots,
        models=tuple(ABOUT),
    )


def _rankers_of(root: Path, snapshots: Collection[str]) -> set[str]:
    """The rankers that these snapshots were published with; a damaged one serves no more."""
    generations = set()
    for snapshot in snapshots:
        with suppress(SnapshotError):
            contents, _ = manifest.load(root / snapshot)
            generations.add(contents.parts.get(RANKER, ""))

    return generations


def trim_reports(
    home: Path,
    keep: int,
    snapshots: Collection[str],
) -> None:
    """Remove the reports of all but the newest nights and those of these snapshots, and pages of
    past nights whose snapshot was let go.
    """
    for name, paths in _files_of_nights(home)[keep:]:
        if _snapshot_of(home / REPORTS / f"{name}.json") not in snapshots:
            for path in paths:
                path.unlink(missing_ok=True)

    pinned = pointer.pins(root_of(home))
    for path in (home / REPORTS).glob(f"{PAST_NIGHT}*.html"):
        if path.stem not in pinned:
            path.unlink(missing_ok=True)


def size_of_nights(home: Path) -> Mapping[str, int]:
    """How many nights have a report, and the bytes of reports and of the registry."""
    registry = [home / "mlflow.db", home / "registry.db", home / "artifacts"]
    return {
        "nights": len(_files_of_nights(home)),
        "report_bytes": _size_of(home / REPORTS),
        "registry_bytes": sum(map(_size_of, registry)),
    }


def _files_of_nights(home: Path) -> list[tuple[str, list[Path]]]:
    """The names of nights, newest first, each with its files."""
    nights: dict[str, list[Path]] = {}
    for path in (home / REPORTS).glob("*nightly-*"):
        nights.setdefault(path.stem.removeprefix(STOPPED_PREFIX), []).append(path)

    return sorted(nights.items(), reverse=True)


def _snapshot_of(report: Path) -> str:
    """The snapshot that a night published; empty where it published none."""
    try:
        body: Any = json.loads(report.read_text("utf-8"))
    except (OSError, ValueError):
        return ""

    if isinstance(body, dict):
        return str(body.get("snapshot", ""))

    return ""


def _size_of(path: Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
