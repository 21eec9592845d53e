"""Back up and restore."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hades.errors import HadesError, SnapshotError
from hades.files import OWNER_ONLY, make_private_folder, sha256_of
from hades.ports.store import GraphStore, RowStore, scan_rows, scan_values
from hades.snapshot import manifest, pointer
from hades.snapshot.files import sync
from hades.snapshot.manifest import VERIFIED
from schemas.catalogue import COLLECTIONS, Collection, collection_named
from schemas.ids import iso
from schemas.record import JsonObject

MANIFEST = "backup.json"
FORMAT = 1
Counts = Mapping[str, int]  # of rows, by collection
STORE, HOME = "store", "home"


class BackupError(HadesError):
    """A backup that cannot be written, read or restored: which file, what was expected, what to
    do.
    """


@dataclass(frozen=True)
class Backup:
    """A finished backup. `kind` is how the store's rows are kept: `sqlite` (its file) or `rows`
    (Parquet).
    """

    at: str
    hades: str
    kind: str
    rows: dict[str, int]
    snapshots: tuple[str, ...]
    files: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def snapshot(self) -> str:
        """The snapshot that served; empty where none did."""
        return self.snapshots[0] if self.snapshots else ""

    @property
    def bytes(self) -> int:
        """What its files weigh."""
        return sum(size for size, _ in self.files.values())

    def facts(self) -> JsonObject:
        """What the manifest says beside the list of files."""
        facts = {
            "at": self.at,
            "hades": self.hades,
            "store": self.kind,
            "rows": self.rows,
        }
        return {
            **facts,
            "snapshots": list(self.snapshots),
        }

    def as_dict(self) -> JsonObject:
        """For people and scripts: everything but the list of files."""
        totals = {
            "files": len(self.files),
            "bytes": self.bytes,
        }
        return {
            **self.facts(),
            "snapshot": self.snapshot,
            **totals,
        }


def seal(
    folder: Path,
    at: datetime,
    hades: str,
    kind: str,
    rows: Counts,
    snapshots: list[str],
) -> Backup:
    """Hash what the folder holds and write the manifest last: a folder without one is no backup."""
    files = {}
    for name, path in files_in(folder):
        files[name] = (path.stat().st_size, sha256_of(path))

    backup = Backup(
        iso(at),
        hades,
        kind,
        dict(rows),
        tuple(snapshots),
        files,
    )
    file_entries = {}
    for name, (size, digest) in files.items():
        file_entries[name] = {"bytes": size, "sha256": digest}

    body = {
        "format": FORMAT,
        **backup.facts(),
        "files": file_entries,
    }
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(
            body,
            file,
            indent=1,
            sort_keys=True,
        )
        file.flush()
        os.fsync(file.fileno())

    return backup


def read(folder: Path) -> Backup:
    """What a backup says of itself, or `BackupError` where it says nothing that can be used."""
    path = folder / MANIFEST
    try:
        body = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(
            f"{folder} holds no {MANIFEST}, so it is not a finished backup; name the folder of one"
        ) from None
    except (OSError, ValueError) as error:
        raise BackupError(f"{path} cannot be read ({error}); use another backup") from None

    if body.get("format") != FORMAT:
        raise BackupError(
            f"{path} has format {body.get('format')}, this version reads {FORMAT}; upgrade HADES"
        )

    files: dict[str, tuple[int, str]] = {}
    for name, entry in body["files"].items():
        files[name] = int(entry["bytes"]), str(entry["sha256"])

    at, hades, kind, rows = (body[name] for name in ("at", "hades", "store", "rows"))
    return Backup(
        at,
        hades,
        kind,
        rows,
        tuple(body["snapshots"]),
        files,
    )


def verify(folder: Path) -> Backup:
    """Read every file of a backup; it comes back only when nothing is missing, added, cut or
    changed.
    """
    backup = read(folder)
    paths = dict(files_in(folder))

    if missing := sorted(set(backup.files) - set(paths)):
        raise BackupError(f"{folder} lacks {_some(missing)}; use another backup")

    if strange := sorted(set(paths) - set(backup.files)):
        raise BackupError(
            f"{folder} holds {_some(strange)}, which its manifest does not name; use another backup"
        )

    for name, (size, digest) in backup.files.items():
        if paths[name].stat().st_size != size or sha256_of(paths[name]) != digest:
            raise BackupError(f"{folder}: {name} is not what was written; use another backup")

    return backup


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file by its name inside the folder, in order; without the manifest."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BackupError(f"{path} is a link, which a backup never holds; use another backup")
        if path.is_file() and path != folder / MANIFEST:
            yield path.relative_to(folder).as_posix(), path


def _some(names: list[str]) -> str:
    if len(names) > 3:
        more = f" and {len(names) - 3} more"
    else:
        more = ""

    return ", ".join(names[:3]) + more


# Backups: the store, the snapshots that readers see, the registry's files; written beside, sealed,
# then named. A service may ask and write meanwhile: SQLite files are copied as of one moment,
# snapshot folders never change once they have a name. What can be made again (cache, locks,
# half-built folders) stays out, and so do tenants and
# branches: each has backups of its own.
CopyFile = Callable[[Path, Path], None]  # of any kind; a database as of one moment
# Into a folder: how its rows are kept, and how many.
SaveStore = Callable[[Path], tuple[str, Counts]]
# Raises where rows that are kept so cannot be loaded.
CheckRows = Callable[[str, Counts], None]
LoadRows = Callable[[str, Path, Counts], None]
SNAPSHOTS = "snapshots"
LEFT_OUT = frozenset(
    {"graph.db", "cache", "plans", "prefect", "demo", "bench", "tenants", "branches", SNAPSHOTS}
)
LOGS = "logs"
_PASSING = ("-wal", "-shm", "-journal", ".new", ".partial")
_DATED = re.compile(r"hades-\d{8}T\d{6}Z")
_TRIES = 5


def back_up(
    home: Path,
    target: Path,
    save_store: SaveStore,
    copy_file: CopyFile,
    *,
    at: datetime,
    hades: str,
    logs: bool = False,
) -> Backup:
    """Write a backup of a home to the folder `target`, which must not hold anything yet.

    Killed at any moment, `target` is not there: all is written to a folder beside it, which the
    next try removes.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} is there and not empty; name a new folder, or use --dated")

    if home.resolve() == target.resolve() or home.resolve() in target.resolve().parents:
        raise BackupError(
            f"{target} lies in {home}, which it is a backup of; name a folder elsewhere"
        )

    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    # The graph may hold what not everybody on the machine may read.
    partial.mkdir(mode=0o700, parents=True)
    (partial / STORE).mkdir()

    try:
        snapshots = _copy_snapshots(home, partial / HOME / SNAPSHOTS)
        kind, rows = save_store(partial / STORE)
        _copy_rest(
            home,
            partial / HOME,
            copy_file,
            LEFT_OUT if logs else LEFT_OUT | {LOGS},
        )
        backup = seal(partial, at, hades, kind, rows, snapshots)

        if target.exists():
            target.rmdir()

        partial.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)

    return backup


def dated(folder: Path, at: datetime) -> Path:
    """The folder of a backup of this moment among others."""
    return folder / f"hades-{at:%Y%m%dT%H%M%SZ}"


def retain(folder: Path, keep: int) -> list[str]:
    """Remove all but the newest finished dated backups; the names of those that went."""
    if keep < 1:
        raise BackupError(f"keep is {keep}; at least the newest backup must stay")

    finished = (path.parent.name for path in folder.glob(f"*/{MANIFEST}") if path.is_file())
    removed = sorted(filter(_DATED.fullmatch, finished))[:-keep]
    for name in removed:
        shutil.rmtree(folder / name)

    return removed


def _copy_snapshots(home: Path, into: Path) -> list[str]:
    """Every snapshot that is there, the one that serves first, and the pointers to them.

    One that is pruned while it is copied is left out; should it be the one that served, another
    serves by now.
    """
    root = pointer.root_of(home)
    if not root.is_dir():
        return []

    for _ in range(_TRIES):
        serving = pointer.read(root)
        if serving is not None:
            served = (serving.snapshot, *serving.before)
        else:
            served = ()

        names = []
        for name in served:
            if (root / name).is_dir():
                names.append(name)

        names += sorted(pointer.folders(root) - set(names))
        copied = []
        for name in names:
            if _copy_snapshot(root / name, into):
                copied.append(name)

        if serving is None or serving.snapshot in copied:
            _copy_pointers(root, into, serving is not None)
            return copied

    raise BackupError(f"the snapshot that serves in {root} could not be copied; run `hades doctor`")


def _copy_snapshot(folder: Path, into: Path) -> bool:
    """Copy a snapshot and what it says of itself; false when it was removed meanwhile or cannot be
    read.
    """
    target = into / folder.name
    if target.is_dir():
        return True

    try:
        manifest.load(folder)
        shutil.copytree(
            folder,
            target,
            ignore=lambda _, names: [name for name in names if VERIFIED in name],
        )
    except (SnapshotError, FileNotFoundError, shutil.Error):
        shutil.rmtree(target, ignore_errors=True)
        return False

    return True


def _copy_pointers(root: Path, into: Path, served: bool) -> None:
    """What serves, what did before, and what is pinned; pins of snapshots that are not in the
    backup are dropped.
    """
    into.mkdir(parents=True, exist_ok=True)
    for name in (pointer.CURRENT, pointer.PREVIOUS):
        if served and (root / name).is_file():
            shutil.copy2(root / name, into / name)

    for name, snapshot in pointer.pins(root).items():
        if (into / snapshot).is_dir():
            (into / pointer.PINS).mkdir(exist_ok=True)
            shutil.copy2(root / pointer.PINS / name, into / pointer.PINS / name)


def _copy_rest(
    home: Path,
    into: Path,
    copy_file: CopyFile,
    left_out: frozenset[str],
) -> None:
    """Registry, artifacts, reports and whatever else stands in the home; databases as of one
    moment.
    """
    for folder, folders, files in os.walk(home):
        current = Path(folder)
        unwanted = left_out if current == home else frozenset()
        folders[:] = [name for name in folders if name[0] != "." and name not in unwanted]

        for name in files:
            path = current / name
            target = into / current.relative_to(home) / name
            # Locks, logs of databases and half-written files mean nothing in another place.
            is_passing = name.startswith(".") or ".lock" in name or name.endswith(_PASSING)

            if name in unwanted or is_passing or path.is_symlink():
                continue

            target.parent.mkdir(parents=True, exist_ok=True)
            copy_file(path, target)


# Restoring: a backup is read through first, laid out beside, and only then takes the place of what
# was there.
_STAGE = ".restoring"
_KEPT_ENTRIES = frozenset({"cache", "prefect", "demo", "bench", "tenants"})


def restore(
    source: Path,
    backup: Backup,
    home: Path,
    check: CheckRows,
    load: LoadRows,
    *,
    at: datetime,
    force: bool = False,
) -> Path | None:
    """Make `home` what it was when the backup was made; where what stood there before was put.

    Stop the services of this home first.

    `backup` is what `verify` found there: every file is checked before anything is touched. A home
    that holds a graph is refused unless `force`; then its parts are set aside in a folder inside
    it, not removed. The cache stays: it is made from content. `load` makes the store hold the rows
    of the backup and no others.
    """
    if home.is_dir():
        names = sorted(entry.name for entry in home.iterdir())
    else:
        names = []

    # What a restore replaces.
    occupied = []
    for name in names:
        if name not in _KEPT_ENTRIES and not name.startswith("."):
            occupied.append(name)

    if set(occupied) - {LOGS} and not force:  # `hades provision` writes its audit there
        raise BackupError(
            f"{home} is not empty ({', '.join(occupied[:4])}); restore into an empty HADES_HOME, "
            "or use --force, which sets what is there aside"
        )

    check(backup.kind, backup.rows)
    stage = home / _STAGE
    shutil.rmtree(stage, ignore_errors=True)
    make_private_folder(home)
    stage.mkdir(mode=OWNER_ONLY)

    if occupied:
        aside = home / f".before-restore.{at:%Y%m%dT%H%M%SZ}"
    else:
        aside = None

    try:
        if (source / HOME).is_dir():
            shutil.copytree(
                source / HOME,
                stage,
                dirs_exist_ok=True,
            )
        _swap(home, stage, occupied, aside)
    finally:
        shutil.rmtree(stage, ignore_errors=True)

    load(backup.kind, source / STORE, backup.rows)
    return aside


def _swap(
    home: Path,
    stage: Path,
    names: list[str],
    aside: Path | None,
) -> None:
    """Put what is there aside and what was staged in its place, one entry after the other."""
    if aside is not None:
        aside.mkdir()
        for name in names:
            (home / name).rename(aside / name)

    for entry in sorted(stage.iterdir()):
        entry.rename(home / entry.name)

    sync(home)


# Every row of a store as Parquet files, and back into any store: how a graph leaves one machine for
# another. Only the store port is used, so rows of the embedded store can go into ArangoDB and the
# other way round.
_GROUP_ROWS = 16_384


def export_rows(store: RowStore, folder: Path) -> Counts:
    """Write one file a collection that has rows; how many each holds. Each is as it was when its
    scan began.
    """
    folder.mkdir(parents=True, exist_ok=True)

    counts: dict[str, int] = {}
    for collection in COLLECTIONS:
        name = collection.name
        if not store.count(name):
            continue

        counts[name] = 0
        path = folder / f"{name}.parquet"
        with pq.ParquetWriter(
            path,
            collection.schema,
            compression="zstd",
        ) as writer:
            for batch in store.scan(name, batch_rows=_GROUP_ROWS):
                writer.write_batch(batch)
                counts[name] += batch.num_rows

    return counts


def export_one_state(store: GraphStore, folder: Path) -> Counts:
    """`export_rows` of a store on a server; refused where an ingest or a build wrote meanwhile.

    The server reads each collection as of the moment its scan begins. No write half applied before
    or after, and the same ledgers before and after, mean that all collections are of one state.
    """
    with store.reading() as rows:
        ledgers = read_ledgers(rows)
        counts = export_rows(rows, folder)

    with store.reading() as rows:
        if read_ledgers(rows) != ledgers:
            raise BackupError(
                "an ingest or a build wrote while the rows were read, so they are of two states; "
                "run the backup again "
                "when it is done"
            )

    return counts


def import_rows(
    store: GraphStore,
    folder: Path,
    counts: Counts,
) -> Counts:
    """Make the store hold exactly these rows; how many each collection has now.

    Nodes come before the edges that need them, and rows that the files do not have go edges first.
    Killed in the middle, doing it again ends at the same place.
    """
    by_edge = sorted(
        COLLECTIONS,
        key=lambda collection: collection.edge is not None,
    )
    for collection in by_edge:
        if collection.name in counts:
            _import_file(
                store,
                collection,
                folder / f"{collection.name}.parquet",
            )

    for name in (collection.name for collection in reversed(by_edge)):
        keys = set(scan_values(store, name, "_key"))
        if keys and name in counts:
            stored = pq.read_table(folder / f"{name}.parquet", columns=["_key"]).column("_key")
            keys.difference_update(stored.to_pylist())

        if keys:
            store.delete(name, keys=sorted(keys))

    return {name: rows for name, rows in store.counts().items() if rows}


def _import_file(
    store: GraphStore,
    collection: Collection,
    path: Path,
) -> None:
    """Write the rows of a file: columns that are still declared; the store fills in those that
    came later.
    """
    with pq.ParquetFile(path) as file:
        stored_names = file.schema_arrow.names
        schema = pa.schema([field for field in collection.schema if field.name in stored_names])
        batches = file.iter_batches(_GROUP_ROWS, columns=schema.names)
        store.upsert(
            collection.name, (batch.select(schema.names).cast(schema) for batch in batches)
        )


def read_ledgers(rows: RowStore) -> dict[str, list[dict[str, object]]]:
    """The rows that every ingest and every stage of a build writes last."""
    ledgers = {}
    for name in ("build_stages", "ingest_manifest"):
        ledgers[name] = list(scan_rows(rows, name))

    return ledgers


def unknown_collections(counts: Counts) -> list[str]:
    """Collections of a backup that this version does not declare."""
    return sorted(name for name in counts if collection_named(name) is None)
