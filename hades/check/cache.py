"""Graphs of documentation that were built before, by what they were built from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from hades.check.pages import State
from hades.files import hold_lock

_DONE = "done"
_KEY_LENGTH = 24
Build = Callable[[Path, Path], int]  # from a folder of pages into a home; texts embedded


@dataclass(frozen=True)
class GraphCache:
    """Homes in a folder, each of one state of the documentation, with one version and settings."""

    folder: Path
    kind: str  # of the version and the settings: graphs of another kind are not used
    build: Build
    limit_bytes: int

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only check that works with these graphs."""
        with hold_lock(self.folder / "lock"):
            yield

    def home_of(self, state: State, near: Path | None = None) -> tuple[Path, int]:
        """The home of a state and how many texts were embedded for it: it is built from a copy of
        the nearest one, so what did not change is not embedded again.
        """
        embedded = 0
        home = self.folder / f"{self.kind}-{state.digest[:_KEY_LENGTH]}"

        if not (home / _DONE).exists():
            start = near or self._newest()
            new_home = Path(mkdtemp(prefix="new-", dir=self.folder))
            try:
                if start is not None:
                    shutil.copytree(start, new_home, dirs_exist_ok=True)
                    (new_home / _DONE).unlink()

                pages = new_home / "pages"
                pages.mkdir()
                state.export(pages)
                embedded = self.build(new_home, pages)
                shutil.rmtree(pages)
                (new_home / _DONE).touch()
                shutil.rmtree(home, ignore_errors=True)
                new_home.rename(home)
            finally:
                shutil.rmtree(new_home, ignore_errors=True)

        os.utime(home / _DONE)
        return home, embedded

    def trim(self) -> int:
        """Remove the graphs that were used longest ago until the rest fits; how many went. The two
        of the last check stay.
        """
        for unfinished in self.folder.glob("new-*"):
            shutil.rmtree(unfinished, ignore_errors=True)

        removed = total = 0
        for place, home in enumerate(self._by_use("*")):
            total += sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
            if place >= 2 and total > self.limit_bytes:
                shutil.rmtree(home)
                removed += 1

        return removed

    def _newest(self) -> Path | None:
        return next(iter(self._by_use(f"{self.kind}-*")), None)

    def _by_use(self, pattern: str) -> list[Path]:
        """Homes, the last used first."""
        used: dict[Path, float] = {}
        for done in self.folder.glob(f"{pattern}/{_DONE}"):
            with suppress(OSError):
                used[done.parent] = done.stat().st_mtime

        return sorted(used, key=lambda home: -used[home])
