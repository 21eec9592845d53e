"""Which snapshot people mean: by id, pin, night, day or moment."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hades.errors import SnapshotError
from hades.night.report import last_runs
from hades.snapshot.open import SnapshotEntry, snapshots
from schemas.ids import iso

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHORTEST_ID = 5  # characters of an id that is cut short: `g` and four digits
_RUNS = 1_000
Find = Callable[[Path, list[SnapshotEntry], str], str]


def resolve_snapshot(home: Path, name: str) -> str:
    """The id of the snapshot that a name means; `SnapshotError` where it means none.

    A name is an id or its beginning, a pin, a night (`nightly-20260131T020000`), or a day or a
    moment, which means the graph of the last night that stood at it or before.
    """
    entries = [entry for entry in snapshots(home) if entry.problem is None]
    for find in _WAYS:
        if snapshot := find(home, entries, name):
            return snapshot
    days = sorted({entry.created_at[:10] for entry in entries if entry.created_at})
    known = f"{days[0]} to {days[-1]}" if days else "none"
    raise SnapshotError(
        f"{name!r} names no snapshot; expected an id, a pin, a night or a day ({known}): "
        "`hades snapshots` lists them"
    )


def _by_id(home: Path, entries: list[SnapshotEntry], name: str) -> str:
    matches = [entry.snapshot for entry in entries if entry.snapshot.startswith(name)]
    if name in matches:
        return name
    return matches[0] if len(matches) == 1 and len(name) >= _SHORTEST_ID else ""


def _by_pin(home: Path, entries: list[SnapshotEntry], name: str) -> str:
    return next((entry.snapshot for entry in entries if name in entry.pins), "")


def _by_night(home: Path, entries: list[SnapshotEntry], name: str) -> str:
    present = {entry.snapshot for entry in entries}
    for run in last_runs(home, _RUNS) if name.startswith("nightly-") else ():
        if run["build"] == name and run["snapshot"] in present:
            return str(run["snapshot"])
    return ""


def _by_moment(home: Path, entries: list[SnapshotEntry], name: str) -> str:
    """The newest graph whose night stood at this moment or before; a day counts to its end."""
    try:
        moment = datetime.fromisoformat(name)
    except ValueError:
        return ""
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if _DAY.fullmatch(name):
        moment += timedelta(days=1, microseconds=-1)
    latest = iso(moment)
    dated = [entry for entry in entries if entry.created_at and entry.created_at <= latest]
    newest = max((entry.created_at or "" for entry in dated), default="")
    return next((entry.snapshot for entry in dated if entry.created_at == newest), "")


_WAYS: tuple[Find, ...] = (_by_id, _by_pin, _by_night, _by_moment)
