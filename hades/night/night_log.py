"""The nights of a home as a log: what each changed, how long it took, what serves, and where one
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from hades.files import write_whole
from hades.night.history import Move, moves_of
from hades.night.stage import Night, Report, leaves_of
from hades.night.summary import describe_stop
from hades.snapshot import pointer
from hades.snapshot.pointer import root_of, served
from schemas.ids import iso

_NIGHT = "nightly-%Y%m%dT%H%M%S"
_STOPPED = "stopped-{}.json"
REPORTS = "reports"
Entry = dict[str, Any]


def write_stopped(home: Path, night: Night, report: Report, error: BaseException) -> Path:
    """Keep that a night stopped, where and why."""
    body = {
        "build": night.name,
        "began": iso(datetime.fromtimestamp(night.began, UTC)),
        "as_of": night.as_of.isoformat(),
        "kind": "failed" if isinstance(error, Exception) else "cancelled",
        "problem": f"{describe_stop(report, error)}: {type(error).__name__}: {error}",
        "seconds": {name: report[name]["took"] for name in report["began"] if name in report},
    }
    path = home / REPORTS / _STOPPED.format(night.name)
    return write_whole(path, json.dumps(body, indent=1, sort_keys=True) + "\n")


def night_log(home: Path, limit: int) -> list[Entry]:
    """The newest nights and moves first; a night that changed nothing has a line too."""
    entries = {}
    for move in moves_of(home):
        entries[f"{move.at} {move.snapshot}"] = _entry_of(move)
    for body in _bodies(home):
        _add_night(entries, body)
    ordered = sorted(entries.values(), key=lambda entry: str(entry["at"]))
    for older, newer in pairwise([entry for entry in ordered if entry["settings"]]):
        newer["changed_settings"] = changed_settings(older["settings"], newer["settings"])
    return [_describe(home, entry) for entry in reversed(ordered[-limit:])]


def changed_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The settings that differ, each with both values."""
    before, after = dict(leaves_of(old)), dict(leaves_of(new))
    changes = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            changes.append(f"{name}: {before.get(name)} -> {after.get(name)}")
    return changes


def _entry_of(move: Move) -> Entry:
    return {
        "at": move.at,
        "kind": move.act,
        "build": "",
        "as_of": move.moment,
        "snapshot": move.snapshot,
        "seconds": None,
        **dict.fromkeys(("documents", "entities", "relations"), None),
        **(move.counts or {}),
        "settings": move.settings or {},
        "changed_settings": [],
        "problem": "",
    }


def _bodies(home: Path) -> Iterator[Report]:
    """What nights wrote of themselves, oldest first; one that cannot be read is passed over."""
    for path in sorted((home / REPORTS).glob("*nightly-*.json"), key=lambda path: path.name[-20:]):
        try:
            body = json.loads(path.read_text("utf-8"))
        except (ValueError, OSError):
            continue
        if isinstance(body, dict) and body.get("build"):
            yield body


def _add_night(entries: dict[str, Entry], body: Report) -> None:
    """Give the move that a night made its name and duration; a night without one gets a line."""
    named = iso(datetime.strptime(body["build"], _NIGHT).replace(tzinfo=UTC))
    began = body.get("began", named)
    snapshot = body.get("snapshot", "")
    moved = [
        entry
        for entry in entries.values()
        if entry["snapshot"] == snapshot
        and entry["kind"] in ("night", "publish")
        and entry["at"] >= began
        and not entry["build"]
    ]
    entry = moved[0] if moved and snapshot else _entry_of(Move(began, snapshot))
    entry |= {
        "kind": body.get("kind", "night"),
        "build": body["build"],
        "as_of": body.get("as_of", ""),
        "seconds": round(sum(body.get("seconds", {}).values()), 1),
        "problem": body.get("problem", ""),
    }
    entries[f"{entry['at']} {snapshot}"] = entry


def _describe(home: Path, entry: Entry) -> Entry:
    """An entry with what is true of its snapshot now."""
    root, snapshot = root_of(home), entry["snapshot"]
    tags = []
    for name, tagged in pointer.pins(root).items():
        if tagged == snapshot:
            tags.append(name)
    known = {name: value for name, value in entry.items() if name != "settings"}
    return {
        **known,
        "tags": tags,
        "serves": bool(snapshot) and snapshot == served(home),
        "is_kept": bool(snapshot) and (root / snapshot).is_dir(),
    }
