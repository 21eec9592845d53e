"""Open the serving snapshot, or an empty view."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from hades.errors import NothingPublished, SnapshotError
from hades.ports.graph import EDGES, KINDS, Kind
from hades.snapshot import manifest, pointer
from hades.snapshot.files import Columns, read_files
from hades.snapshot.manifest import Manifest, edge_types, sound
from hades.snapshot.pointer import RETIRED
from hades.snapshot.rights_file import rights_of
from hades.snapshot.view import GraphView

logger = logging.getLogger(__name__)


def open_snapshot(
    home: Path,
    snapshot: str | None = None,
    *,
    replaces: str = "",
) -> GraphView:
    """The snapshot that serves; if it is damaged the newest sound one before it, with the reason in
    `info`.

    A named snapshot opens or is refused: nothing else takes its place. `replaces` names what newer
    graph it serves for.
    """
    root = pointer.root_of(home)
    if snapshot is not None:
        return open_folder(pointer.named(root, snapshot))

    problems = [replaces] if replaces else []
    for candidate in _candidates(root, problems):
        reason = "; ".join(problems) or None
        try:
            view = open_folder(root / candidate, degraded_from=reason)
        except SnapshotError as error:
            problems.append(str(error))
            continue

        if reason is not None:
            logger.warning(
                "snapshot %s serves instead of a newer one: %s",
                candidate,
                reason,
            )

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

    view = GraphView(
        folder.name,
        contents,
        columns,
        degraded_from=degraded_from,
    )
    view.rights = rights_of(folder.parents[1])
    return view


def _candidates(root: Path, problems: list[str]) -> list[str]:
    """Snapshots to try, in order, from the pointer or from the one before it."""
    try:
        now = pointer.read(root)
    except SnapshotError as error:
        problems.append(str(error))
        now = pointer.read_or_none(root, pointer.PREVIOUS)

    if now is None and (previous := pointer.read_or_none(root, pointer.PREVIOUS)) is not None:
        problems.append(f"{root / pointer.CURRENT} is missing; publish again")
        now = previous

    if now is None:
        return []

    return [
        now.snapshot,
        *(former for former in dict.fromkeys(now.before) if not (root / former / RETIRED).exists()),
    ]


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
