"""Opening: the pointer, the manifest and a look at each file's size and times; nothing else is read."""

from __future__ import annotations

import logging
from pathlib import Path

from hades.errors import NothingPublished, SnapshotError
from hades.snapshot import manifest as manifests
from hades.snapshot import pointer
from hades.snapshot.arrays import mapped, view_of
from hades.snapshot.verification import sound
from hades.snapshot.view import SnapshotView

logger = logging.getLogger(__name__)


def open_snapshot(home: Path, snapshot: str | None = None, *, replaces: str = "") -> SnapshotView:
    """The snapshot that serves; if it is damaged the newest sound one before it, with the reason in `info`.

    A named snapshot opens or is refused: nothing else takes its place. `replaces` names what newer graph it serves for.
    """
    root = pointer.root_of(home)
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
        now = pointer.read(root)
    except SnapshotError as error:
        problems.append(str(error))
        now = pointer.read_or_none(root, pointer.PREVIOUS)
    if now is None and (before := pointer.read_or_none(root, pointer.PREVIOUS)) is not None:
        problems.append(f"{root / pointer.CURRENT} is missing; publish again")
        now = before
    return [] if now is None else list(dict.fromkeys((now.snapshot, *now.before)))
