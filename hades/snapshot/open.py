"""Open the serving snapshot, or an empty view; retention."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from hades.errors import NothingPublished, SnapshotError
from hades.ports.graph import EDGES, KINDS, Kind
from hades.snapshot import manifest
from hades.snapshot.files import Columns, read_files
from hades.snapshot.manifest import RETIRED, Manifest, edge_types, sound
from hades.snapshot.rights import rights_of
from hades.snapshot.view import GraphView

logger = logging.getLogger(__name__)


def open_snapshot(home: Path, snapshot: str | None = None, *, replaces: str = "") -> GraphView:
    """The snapshot that serves; if it is damaged the newest sound one before it, with the reason in
    `info`.

    A named snapshot opens or is refused: nothing else takes its place. `replaces` names what newer
    graph it serves for.
    """
    root = manifest.root_of(home)
    if snapshot is not None:
        return open_folder(manifest.named(root, snapshot))
    problems = [replaces] if replaces else []
    for candidate in _candidates(root, problems):
        reason = "; ".join(problems) or None
        try:
            view = open_folder(root / candidate, degraded_from=reason)
        except SnapshotError as error:
            problems.append(str(error))
            continue
        if reason is not None:
            logger.warning("snapshot %s serves instead of a newer one: %s", candidate, reason)
        return view
    if problems:
        raise SnapshotError("no snapshot can serve: " + "; ".join(problems))
    raise NothingPublished(f"nothing has been published in {root}; run `hades build`")


def open_former(home: Path) -> GraphView | None:
    """What serves while a build makes its successor; None where nothing does, as after an upgrade
    to another format.
    """
    try:
        return open_snapshot(home)
    except (NothingPublished, SnapshotError):
        return None


def open_folder(folder: Path, *, degraded_from: str | None = None) -> GraphView:
    """One snapshot, checked against its manifest and mapped into memory; a damaged ranker is left
    out of it.
    """
    contents, _ = manifest.load(folder)
    usable = sound(folder, contents.files, "ranker.")
    try:
        # Mapped now, so that the files may be pruned while they are in use.
        columns = read_files(folder, usable)
    except (OSError, ValueError) as error:
        raise SnapshotError(
            f"snapshot {folder.name}: a file went away while it was opened ({error})"
        ) from error
    view = GraphView(folder.name, contents, columns, degraded_from=degraded_from)
    view.rights = rights_of(folder.parents[1])
    return view


def _candidates(root: Path, problems: list[str]) -> list[str]:
    """Snapshots to try, in order, from the pointer or from the one before it."""
    try:
        now = manifest.read(root)
    except SnapshotError as error:
        problems.append(str(error))
        now = manifest.read_or_none(root, manifest.PREVIOUS)
    if now is None and (previous := manifest.read_or_none(root, manifest.PREVIOUS)) is not None:
        problems.append(f"{root / manifest.CURRENT} is missing; publish again")
        now = previous
    if now is None:
        return []
    return [
        now.snapshot,
        *(former for former in dict.fromkeys(now.before) if not (root / former / RETIRED).exists()),
    ]


def retire_snapshots(home: Path, at: datetime) -> None:
    """Mark every snapshot as from before something was forgotten: none serves again once another
    one does.
    """
    for folder in manifest.root_of(home).glob("g*/"):
        (folder / RETIRED).write_text(f"{at:%Y-%m-%d %H:%M} UTC", "utf-8")


class EmptyView(GraphView):
    """A `GraphView` of nothing. `models` are those that memory may hold vectors of, so that
    questions are embedded.
    """

    def __init__(self, models: Sequence[str]) -> None:
        counts = {kind.value: 0 for kind in KINDS}
        no_models: dict[str, tuple[str, ...]] = dict.fromkeys(counts, ())
        contents = Manifest(
            catalogue="",
            nodes=counts,
            edges=dict.fromkeys(EDGES, 0),
            documents=0,
            bridges=0,
            parts={},
            types=edge_types(),
            node_types=(),
            models=no_models,
            longest_name=0,
            has_validity=False,
            files={},
        )
        columns = Columns(
            defaultdict(lambda: np.zeros(0, np.int64)),
            defaultdict(lambda: pa.array([], pa.string())),
        )
        super().__init__("none", contents, columns)
        self._info = replace(self._info, models={Kind.CHUNK.value: tuple(models)})

    def domains(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot of a home. `problem` says why it cannot be read, if so; files are not hashed for
    it.
    """

    snapshot: str
    serves: bool
    pins: tuple[str, ...]
    created_at: str | None
    nodes: int
    edges: int
    problem: str | None = None


def snapshots(home: Path) -> list[SnapshotEntry]:
    """All snapshots: the one that serves, then those that did, newest first, then the others by
    id.
    """
    root = manifest.root_of(home)
    if not root.is_dir():
        return []
    now = manifest.read_or_none(root, manifest.CURRENT)
    served = (now.snapshot, *now.before) if now else ()
    present = manifest.folders(root)
    order = [snapshot for snapshot in served if snapshot in present]
    order += sorted(present - set(order))
    pinned = manifest.pins(root)
    return [
        _describe(root / snapshot, bool(served) and snapshot == served[0], pinned)
        for snapshot in order
    ]


def rollback(home: Path, snapshot: str | None = None) -> str:
    """Let an older snapshot serve: the named one, or the one before; what served stays in the
    history.
    """
    root = manifest.root_of(home)
    with manifest.changing(root):
        now = manifest.read(root)
        if snapshot is None:
            older = [former for former in (now.before if now else ()) if (root / former).is_dir()]
            if not older:
                raise SnapshotError(
                    f"no snapshot served before in {root}; name one of `hades snapshots`"
                )
            snapshot = older[0]
        if (mark := root / snapshot / RETIRED).is_file():
            raise SnapshotError(
                f"snapshot {snapshot} holds what `hades forget` removed on "
                f"{mark.read_text('utf-8') or 'another day'}; "
                "nothing was changed: go back to a later one of `hades snapshots`, or ingest it "
                "again and publish"
            )
        return manifest.move(root, snapshot).snapshot


def discard(home: Path, snapshot: str) -> None:
    """Remove a snapshot that does not serve, and its pins."""
    root = manifest.root_of(home)
    with manifest.changing(root):
        if snapshot == manifest.served(home):
            raise SnapshotError(
                f"{snapshot} serves; let another one serve first with `hades promote`"
            )
        manifest.folder_of(root, snapshot)
        manifest.remove(root, snapshot)


def _describe(folder: Path, serves: bool, pinned: dict[str, str]) -> SnapshotEntry:
    names = tuple(name for name, snapshot in pinned.items() if snapshot == folder.name)
    try:
        contents, _ = manifest.load(folder)
    except SnapshotError as error:
        return SnapshotEntry(folder.name, serves, names, None, nodes=0, edges=0, problem=str(error))
    try:
        created = json.loads((folder / manifest.ABOUT).read_text("utf-8")).get("created_at")
    except (OSError, ValueError):  # the note is beside the hashed files and may be missing
        created = None
    nodes, edges = sum(contents.nodes.values()), sum(contents.edges.values())
    return SnapshotEntry(folder.name, serves, names, created, nodes=nodes, edges=edges)
