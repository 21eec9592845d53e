"""Bring what a branch changed into its home, document by document: all of it, or nothing where both
changed the same one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hades.errors import HadesError
from hades.ingest.forget import take_out
from hades.ingest.manifest import OWNED_BY_DOCUMENT, forget_derived
from hades.night.release.branch import BASE, document_states
from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from schemas.catalogue import NAMES
from schemas.ids import node_id

_SHOWN = 20
States = Mapping[str, str]
Side = Literal["home", "branch"]


class MergeConflict(HadesError):
    """A document that both sides changed since the branch began."""

    http_status = 409


@dataclass(frozen=True)
class MergeReport:
    """The documents that a merge added, changed and removed in the home, by their ids as they came
    in; `resolved` were changed on both sides.
    """

    added: list[str]
    changed: list[str]
    removed: list[str]
    resolved: list[str]


def merge_branch(
    home: GraphStore,
    branch: RowStore,
    folder: Path,
    take: Side | None = None,
) -> MergeReport:
    """Copy the rows of every document that the branch changed, in one transaction; a document that
    the home changed differently is a conflict, unless it is said whose counts.
    """
    base: States = json.loads((folder / BASE).read_text("utf-8"))
    ours = document_states(home)
    theirs = document_states(branch)
    changed = _differing(base, theirs)
    both = sorted(key for key in changed & _differing(base, ours) if _differ(ours, theirs, key))
    names = {**_names(branch), **_names(home)}

    if both and take is None:
        shown = ", ".join(names[key] for key in both[:_SHOWN] if key in names)
        raise MergeConflict(
            f"{len(both)} documents were changed in the home and in the branch: {shown}; nothing "
            "was merged: give --take home or --take branch"
        )

    if take == "home":
        changed -= set(both)

    keys = sorted(key for key in changed if _differ(ours, theirs, key))
    with home.bulk(NAMES) as inside:
        if keys:
            take_out(inside, [key for key in keys if key in ours])
            _copy_rows(
                inside,
                branch,
                [key for key in keys if key in theirs],
            )
            forget_derived(inside)

    report = MergeReport(
        [],
        [],
        [],
        [names[key] for key in both if key in names],
    )
    for key in keys:
        if key not in theirs:
            report.removed.append(names[key])
        elif key in ours:
            report.changed.append(names[key])
        else:
            report.added.append(names[key])

    return report


def _differing(old: States, new: States) -> set[str]:
    differing = set()
    for key in old.keys() | new.keys():
        if _differ(old, new, key):
            differing.add(key)

    return differing


def _differ(old: States, new: States, key: str) -> bool:
    return old.get(key) != new.get(key)


def _names(store: RowStore) -> dict[str, str]:
    rows = scan_rows(
        store,
        "documents",
        columns=["_key", "origin"],
    )
    return {row["_key"]: row["origin"] for row in rows}


def _copy_rows(
    home: RowStore,
    branch: RowStore,
    keys: Sequence[str],
) -> None:
    """The documents with all rows that belong to them, and the corpora that they came from."""
    for name in ("documents", "ingest_manifest"):
        home.upsert(name, branch.get(name, keys))

    where = [
        Term(
            "document",
            "in",
            [node_id("documents", key) for key in keys],
        )
    ]
    for name in OWNED_BY_DOCUMENT:
        home.upsert(name, branch.scan(name, where=where))

    for name in ("sources", "extractions"):
        home.upsert(name, branch.scan(name))
