"""Restoring: a backup is read through first, laid out beside, and only then takes the place of what was there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from hades.snapshot.arrays import sync
from hades.stages.release.backup_manifest import HOME, STORE, Backup, BackupError, verify

_STAGE = ".restoring"
_KEPT_ENTRIES = frozenset({"cache", "prefect", "demo", "bench", "tenants"})


class Loader(Protocol):
    """What brings rows back into the store; `kind` is how a backup keeps them."""

    def check(self, kind: str, rows: Mapping[str, int]) -> None:
        """Raise where these rows cannot be loaded; nothing has been touched yet."""
        ...

    def load(self, kind: str, folder: Path, rows: Mapping[str, int]) -> None:
        """Make the store hold these rows and no others."""
        ...


@dataclass(frozen=True)
class RestoreReport:
    """What serves now, and where what stood there before was put."""

    backup: Backup
    home: Path
    set_aside: Path | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        aside = None if self.set_aside is None else str(self.set_aside)
        return {**self.backup.as_dict(), "home": str(self.home), "set_aside": aside}


def restore(source: Path, home: Path, loader: Loader, *, at: datetime, force: bool = False) -> RestoreReport:
    """Make `home` what it was when the backup was made. Stop the services of this home first.

    Every file is checked before anything is touched. A home that holds a graph is refused unless `force`; then its
    parts are set aside in a folder inside it, not removed. The cache stays: it is made from content.
    """
    backup = verify(source)
    held = _hold(home)
    if held and not force:
        raise BackupError(
            f"{home} is not empty ({', '.join(held[:4])}); restore into an empty HADES_HOME, or use --force, "
            "which sets what is there aside"
        )
    loader.check(backup.kind, backup.rows)
    stage = home / _STAGE
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    aside = home / f".before-restore.{at:%Y%m%dT%H%M%SZ}" if held else None
    try:
        if (source / HOME).is_dir():
            shutil.copytree(source / HOME, stage, dirs_exist_ok=True)
        _swap(home, stage, held, aside)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    loader.load(backup.kind, source / STORE, backup.rows)
    return RestoreReport(backup, home, aside)


def _hold(home: Path) -> list[str]:
    """What a restore would replace."""
    if not home.is_dir():
        return []
    return sorted(one.name for one in home.iterdir() if one.name not in _KEPT_ENTRIES and not one.name.startswith("."))


def _swap(home: Path, stage: Path, held: list[str], aside: Path | None) -> None:
    """Put what is there aside and what was staged in its place, one entry after the other."""
    if aside is not None:
        aside.mkdir()
        for name in held:
            (home / name).rename(aside / name)
    for entry in sorted(stage.iterdir()):
        entry.rename(home / entry.name)
    sync(home)
