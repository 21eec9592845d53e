"""The nights of a home as a log: what each changed, how long it took, what serves, and where one
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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

_SECOND = "nightly-%Y%m%dT%H%M%S"  # of the name of a night, which may go on
SECOND_CHARACTERS = len("nightly-20260131T020000")
STOPPED_PREFIX = "stopped-"
REPORTS = "reports"
Entry = dict[str, Any]


def write_stopped(
    home: Path,
    night: Night,
    report: Report,
    error: BaseException,
) -> Path:
    """Keep that a night stopped, where and why."""
    body = {
        "build": night.name,
        "began": iso(datetime.fromtimestamp(night.began, UTC)),
        "as_of": night.as_of.isoformat(),
        "kind": "failed" if isinstance(error, Exception) else "cancelled",
        "problem": f"{describe_stop(report, error)}: {type(error).__name__}: {error}",
        "seconds": {name: report[name]["took"] for name in report["began"] if name in report},
    }
    path = home / REPORTS / f"{STOPPED_PREFIX}{night.name}.json"
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

    newest_first = ordered[::-1]
    serving = _serving(home, newest_first)
    return [_describe(home, entry, entry is serving) for entry in newest_first[:limit]]


def _serving(home: Path, newest_first: Sequence[Entry]) -> Entry | None:
    """The newest entry of what serves; after a rollback the night that was built has one too."""
    snapshot = served(home)
    entries = (entry for entry in newest_first if snapshot and entry["snapshot"] == snapshot)
    return next(entries, None)


def changed_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The settings that differ, each with both values."""
    before = dict(leaves_of(old))
    after = dict(leaves_of(new))

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
    paths = (home / REPORTS).glob("*nightly-*.json")
    for path in sorted(
        paths,
        key=lambda path: path.stem.removeprefix(STOPPED_PREFIX),
    ):
        try:
            body = json.loads(path.read_text("utf-8"))
        except (ValueError, OSError):
            continue

        if isinstance(body, dict) and body.get("build"):
            yield body


def _add_night(entries: dict[str, Entry], body: Report) -> None:
    """Give the move that a night made its name and duration; a night without one gets a line."""
    second = datetime.strptime(body["build"][:SECOND_CHARACTERS], _SECOND)
    began = body.get("began", iso(second.replace(tzinfo=UTC)))
    snapshot = body.get("snapshot", "")
    moved = [
        entry
        for entry in entries.values()
        if entry["snapshot"] == snapshot
        and entry["kind"] in ("night", "publish")
        and entry["at"] >= began
        and not entry["build"]
    ]

    if moved and snapshot:
        entry = moved[0]
    else:
        entry = _entry_of(Move(began, snapshot))

    entry |= {
        "kind": body.get("kind", "night"),
        "build": body["build"],
        "as_of": body.get("as_of", ""),
        "seconds": round(sum(body.get("seconds", {}).values()), 1),
        "problem": body.get("problem", ""),
    }
    entries[f"{entry['at']} {snapshot}"] = entry


def _describe(home: Path, entry: Entry, serves: bool) -> Entry:
    """An entry with what is true of its snapshot now."""
    root = root_of(home)
    snapshot = entry["snapshot"]

    tags = []
    for name, tagged in pointer.pins(root).items():
        if tagged == snapshot:
            tags.append(name)

    known = {name: value for name, value in entry.items() if name != "settings"}
    return {
        **known,
        "tags": tags,
        "serves": serves,
        "is_kept": bool(snapshot) and (root / snapshot).is_dir(),
    }
