"""Open the serving snapshot, or an empty view; retention."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.errors import NothingPublished, SnapshotError
from hades.ports import graph as port
from hades.ports.graph import EDGES, KINDS, Codes, Expansion, Flags, Hits, Kind, NameMatches, Numbers, ViewInfo, Weights
from hades.snapshot import manifest
from hades.snapshot import manifest as manifests
from hades.snapshot.files import mapped, view_of
from hades.snapshot.manifest import sound
from hades.snapshot.view import SnapshotView
from schemas.ids import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction


# Opening: the pointer, the manifest and a look at each file's size and times; nothing else is read.


logger = logging.getLogger(__name__)


def open_snapshot(home: Path, snapshot: str | None = None, *, replaces: str = "") -> SnapshotView:
    """The snapshot that serves; if it is damaged the newest sound one before it, with the reason in `info`.

    A named snapshot opens or is refused: nothing else takes its place. `replaces` names what newer graph it serves for.
    """
    root = manifest.root_of(home)
    if snapshot is not None:
        return open_folder(root / snapshot)
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


def open_folder(folder: Path, *, degraded_from: str | None = None) -> SnapshotView:
    """One snapshot, checked against its manifest and mapped into memory; a damaged ranker is left out of it."""
    contents, _ = manifests.load(folder)
    usable = sound(folder, contents.arrays, "ranker.")
    try:
        # Mapped now, so that the files may be pruned while they are in use.
        arrays = {name: view_of(mapped(folder / name), spec) for name, spec in usable.items()}
    except (OSError, ValueError) as error:
        raise SnapshotError(f"snapshot {folder.name}: a file went away while it was opened ({error})") from error
    return SnapshotView(folder.name, contents, arrays, degraded_from=degraded_from)


def _candidates(root: Path, problems: list[str]) -> list[str]:
    """Snapshots to try, in order, from the pointer or from the one before it."""
    try:
        now = manifest.read(root)
    except SnapshotError as error:
        problems.append(str(error))
        now = manifest.read_or_none(root, manifest.PREVIOUS)
    if now is None and (before := manifest.read_or_none(root, manifest.PREVIOUS)) is not None:
        problems.append(f"{root / manifest.CURRENT} is missing; publish again")
        now = before
    return [] if now is None else list(dict.fromkeys((now.snapshot, *now.before)))


# The view of a home where nothing is published: no nodes, so that memory alone can answer.


NOTHING_PUBLISHED = "none"
_NO_NUMBERS = np.empty(0, np.int64)
_NO_CODES = np.empty(0, np.uint8)
_NO_WEIGHTS = np.empty(0, np.float32)
_NO_FLAGS = np.empty(0, np.bool_)


class EmptyView:
    """A `GraphView` of nothing. `models` are those that memory may hold vectors of, so that questions are embedded."""

    def __init__(self, models: Sequence[str]) -> None:
        self._info = ViewInfo(
            NOTHING_PUBLISHED, {kind.value: 0 for kind in KINDS}, dict.fromkeys(EDGES, 0),
            {Kind.CHUNK.value: tuple(models)}, True,
        )  # fmt: skip

    @property
    def info(self) -> ViewInfo:
        """See `GraphView.info`."""
        return self._info

    @property
    def type_names(self) -> tuple[str, ...]:
        """See `GraphView.type_names`."""
        return ()

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`."""
        return np.full(len(ids), -1, np.int64)

    def ids(self, numbers: Numbers) -> list[str]:
        """See `GraphView.ids`."""
        return []

    def kinds(self, numbers: Numbers) -> Codes:
        """See `GraphView.kinds`."""
        return _NO_CODES

    def expand(
        self,
        numbers: Numbers,
        *,
        direction: Direction,
        types: Sequence[str] | None = None,
        fanout: int | None = None,
        mask: Mask = Mask(),
        max_work: int | None = None,
    ) -> Expansion:
        """See `GraphView.expand`."""
        return Expansion(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_CODES, _NO_WEIGHTS, _NO_FLAGS, 0, False)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`."""
        return _NO_NUMBERS

    def adjacency(self) -> port.Adjacency | None:
        """See `GraphView.adjacency`."""
        return None

    def file_chunks(self) -> Numbers:
        """See `GraphView.file_chunks`."""
        return _NO_NUMBERS

    def commit_chunks(self) -> Numbers:
        """See `GraphView.commit_chunks`."""
        return _NO_NUMBERS

    def domains(self) -> tuple[str, ...]:
        """See `GraphView.domains`."""
        return ()

    def in_domain(self, numbers: Numbers, domain: str) -> Flags:
        """See `GraphView.in_domain`."""
        return _NO_FLAGS

    def nodes(self, numbers: Numbers) -> list[port.NodeFacts]:
        """See `GraphView.nodes`."""
        return []

    def edges(self, handles: Numbers) -> list[port.EdgeFacts]:
        """See `GraphView.edges`."""
        return []

    def passages(self, numbers: Numbers) -> list[port.Passage]:
        """See `GraphView.passages`."""
        return []

    def sources(self, document_ids: Sequence[str]) -> list[port.SourceFacts | None]:
        """See `GraphView.sources`."""
        return [None for _ in document_ids]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`."""
        return np.zeros((0, 0), np.float32), _NO_FLAGS

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`."""
        return _NO_WEIGHTS

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        kind: Kind,
        model: str,
        limit: int,
        level: int | None = None,
        within: Numbers | None = None,
    ) -> Hits:
        """See `GraphView.nearest`."""
        return Hits(_NO_NUMBERS, _NO_WEIGHTS)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`."""
        return Hits(_NO_NUMBERS, _NO_WEIGHTS)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`."""
        return _NO_NUMBERS

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[port.BridgePath]:
        """See `GraphView.bridges`."""
        return []

    def fitted(self) -> port.RankerState | None:
        """See `GraphView.fitted`."""
        return None

    def match_names(self, text: str, *, limit: int | None = None) -> NameMatches:
        """See `GraphView.match_names`."""
        return NameMatches(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)

    def close(self) -> None:
        """See `GraphView.close`."""


# Which snapshots there are, and going back to an older one.


_ABOUT = "about.json"


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot of a home. `problem` says why it cannot be read, if so; files are not hashed for it."""

    snapshot: str
    serves: bool
    pins: tuple[str, ...]
    created_at: str | None
    nodes: int
    edges: int
    problem: str | None = None


def snapshots(home: Path) -> list[SnapshotEntry]:
    """All snapshots: the one that serves, then those that did, newest first, then the others by id."""
    root = manifest.root_of(home)
    if not root.is_dir():
        return []
    now = manifest.read_or_none(root, manifest.CURRENT)
    served = (now.snapshot, *now.before) if now else ()
    there = manifest.folders(root)
    order = [one for one in served if one in there]
    order += sorted(there - set(order))
    pinned = manifest.pins(root)
    return [_hold(root / one, bool(served) and one == served[0], pinned) for one in order]


def rollback(home: Path, snapshot: str | None = None) -> str:
    """Let an older snapshot serve: the named one, or the one before; what served stays in the history."""
    root = manifest.root_of(home)
    with manifest.changing(root):
        now = manifest.read(root)
        if snapshot is None:
            older = [one for one in (now.before if now else ()) if (root / one).is_dir()]
            if not older:
                raise SnapshotError(f"no snapshot served before in {root}; name one of `hades snapshots`")
            snapshot = older[0]
        return manifest.move(root, snapshot).snapshot


def _hold(folder: Path, serves: bool, pinned: dict[str, str]) -> SnapshotEntry:
    names = tuple(name for name, snapshot in pinned.items() if snapshot == folder.name)
    try:
        contents, _ = manifests.load(folder)
    except SnapshotError as error:
        return SnapshotEntry(folder.name, serves, names, None, 0, 0, str(error))
    nodes, edges = sum(contents.nodes.values()), sum(contents.edges.values())
    return SnapshotEntry(folder.name, serves, names, _create_at(folder), nodes, edges)


def _create_at(folder: Path) -> str | None:
    try:
        moment = json.loads((folder / _ABOUT).read_text("utf-8")).get("created_at")
    except (OSError, ValueError):  # the note is beside the hashed files and may be missing
        return None
    return moment if isinstance(moment, str) else None
