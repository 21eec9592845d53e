"""`hades backup` and `hades restore`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.text import Text

from hades.ports.clock import utc_now
from hades.ports.store import Mode
from hades.providers.registry_files import relocate_artifacts
from hades.settings import Settings, load_settings
from hades.stages.release.backup import back_up, retain
from hades.stages.release.backup import dated as dated_folder
from hades.stages.release.backup_manifest import BackupError
from hades.stages.release.restore_backup import restore
from hades.stages.release.row_files import export_one_state, export_rows, import_rows, unknown_collections
from hades.stores.sqlite.copying import copy_as_of_now, copy_database, rows_of
from hades.surfaces.cli.output import Answer
from hades.wiring import open_store

DATABASE, REGISTRY = "graph.db", "mlflow.db"
FILE, ROWS = "sqlite", "rows"


def run_backup(target: Path, *, rows: bool, logs: bool, dated: bool, keep: int | None) -> Answer:
    """Write a backup of this home and of its store."""
    settings, at = load_settings(), utc_now()
    folder = dated_folder(target, at) if dated else target
    folder.parent.mkdir(parents=True, exist_ok=True)
    save = _rows_saver(settings) if rows or settings.store == "arango" else _file_saver(settings)
    backup = back_up(settings.home, folder, save, copy_as_of_now, at=at, hades=version("hades-graphrag"), logs=logs)
    removed = retain(target, keep) if dated and keep is not None else []
    document = {"path": str(folder), **backup.as_dict(), "removed": removed}
    told = f"{folder}: {sum(backup.rows.values()):,} rows, {len(backup.snapshots)} snapshots, {_size(backup.bytes)}"
    return Answer(document, (Text(told), Text(f"bring it back with: hades restore {folder}")))


def run_restore(source: Path, *, force: bool) -> Answer:
    """Make this home and its store what they were."""
    settings = load_settings()
    restored = restore(source, settings.home, StoreLoader(settings, force), at=utc_now(), force=force)
    if (settings.home / REGISTRY).is_file():
        relocate_artifacts(settings.home / REGISTRY, settings.home / "artifacts")
    lines = [f"{settings.home} is as it was at {restored.backup.at}; {restored.backup.snapshot or 'nothing'} serves"]
    if restored.set_aside is not None:
        lines.append(f"what stood there is in {restored.set_aside}; delete it when you need it no more")
    lines.append("next: hades doctor --deep")
    return Answer(restored.as_dict(), (Text("\n".join(lines)),))


def _file_saver(settings: Settings) -> Callable[[Path], tuple[str, Mapping[str, int]]]:
    """The embedded store as its file, of one moment; counted in the copy, so that the count is the copy's."""

    def save(folder: Path) -> tuple[str, Mapping[str, int]]:
        if not (settings.home / DATABASE).is_file():
            return FILE, {}
        copy_database(settings.home / DATABASE, folder / DATABASE)
        return FILE, rows_of(folder / DATABASE)

    return save


def _rows_saver(settings: Settings) -> Callable[[Path], tuple[str, Mapping[str, int]]]:
    """Any store as Parquet. The embedded one is copied first, so that all collections are of one moment."""

    def save(folder: Path) -> tuple[str, Mapping[str, int]]:
        if settings.store == "arango":
            with closing(open_store(settings, Mode.READ_ONLY)) as store:
                return ROWS, export_one_state(store, folder)
        copy_database(settings.home / DATABASE, folder / DATABASE)
        with closing(open_store(settings.model_copy(update={"home": folder}), Mode.ADMIN)) as copy:
            copy.provision()
            counts = export_rows(copy, folder)
        for left in folder.glob(f"{DATABASE}*"):
            left.unlink()
        return ROWS, counts

    return save


@dataclass(frozen=True)
class StoreLoader:
    """Into the store of the settings: a file takes its place, rows are written whatever store they came from."""

    settings: Settings
    force: bool

    def check(self, kind: str, rows: Mapping[str, int]) -> None:
        """Refuse what this version or this store cannot hold, and a store on a server that holds rows already."""
        if unknown := unknown_collections(rows):
            raise BackupError(f"this version has no collections {', '.join(unknown)}; upgrade HADES, then try again")
        if self.settings.store == "sqlite":
            return
        if kind == FILE:
            raise BackupError(
                "this backup holds the embedded store's file, which ArangoDB cannot read; restore it with "
                "HADES_STORE=sqlite, write `hades backup --rows`, and restore that one"
            )
        with closing(open_store(self.settings, Mode.ADMIN)) as store:
            store.provision()
            if not self.force and any(store.counts().values()):
                raise BackupError("the store holds rows already; use --force to make it hold the backup's rows alone")

    def load(self, kind: str, folder: Path, rows: Mapping[str, int]) -> None:
        """The file, brought to this version; or the rows."""
        if kind == FILE and rows:
            copy_database(folder / DATABASE, self.settings.home / DATABASE)
        with closing(open_store(self.settings, Mode.ADMIN)) as store:
            store.provision()
            if kind == ROWS:
                import_rows(store, folder, rows)


def _size(count: int) -> str:
    return f"{count / 1024**2:,.1f} MiB" if count < 1024**3 else f"{count / 1024**3:,.1f} GiB"
