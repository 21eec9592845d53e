"""Small stores, and small homes by the hashing embedder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.stores.sqlite.store import SqliteStore
from hades.wiring import open_hades


def empty_store(path: Path) -> SqliteStore:
    """A provisioned store without rows, a copy of one that was made before; a store that is there
    is opened.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_provisioned())
    return SqliteStore.open(path, Mode.ADMIN)


@cache
def _provisioned() -> bytes:
    """The file, made once in a process."""
    with (
        TemporaryDirectory() as folder,
        closing(SqliteStore.open(Path(folder) / "graph.db", Mode.ADMIN)) as store,
    ):
        store.provision()
        store.close()
        return (Path(folder) / "graph.db").read_bytes()


def settings_of(home: Path, **variables: str) -> Settings:
    """The settings of a home, whatever the environment says."""
    return load_settings(
        {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing", **variables}, home.parent
    )


def publish_pages(folder: Path, pages: Mapping[str, str]) -> Settings:
    """Write pages to `folder` and publish them in `folder/home`, also where there is such a
    home.
    """
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
            hades.ingest.documents(folder / name)
        hades.publish()
    return settings


class SavedFolder:
    """A folder that was filled once, and stands again as it was then, in the same place, for each
    test: what is stored in a home names the folder it was read from.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._saved = folder, folder.with_name(f"{folder.name}.saved")
        shutil.copytree(folder, self._saved, symlinks=True)

    def put_back(self) -> Path:
        """Forget what was done there since; the folder."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._saved, self.folder, symlinks=True)
        return self.folder


def live_in(home: Path, monkeypatch: pytest.MonkeyPatch, folder: Path | None = None) -> None:
    """Commands of this test use the home; with a folder they are called there."""
    monkeypatch.setenv("HADES_HOME", str(home))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    if folder is not None:
        monkeypatch.chdir(folder)
