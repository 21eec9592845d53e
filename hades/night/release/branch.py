"""Branches: a home beside the home that begins as what serves, by links, and then differs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from datetime import datetime
from functools import partial
from pathlib import Path

from hades import ranker_files
from hades.errors import HadesError, SnapshotError
from hades.files import make_private_folder, write_whole
from hades.ports.store import RowStore, scan_rows
from hades.settings.load import BRANCHES, branches, check_branch
from hades.snapshot import manifest, pointer
from hades.snapshot.pointer import root_of, served
from schemas.ids import iso, node_id
from schemas.record import JsonObject

_ABOUT = "branch.json"
_LINKED = ("exam", "history", ranker_files.FOLDER)  # files that are replaced whole
_STORE = "graph.db"
BASE = "base.json"  # what the documents were when the branch began


class BranchError(HadesError):
    """A branch that cannot be made, found or dropped."""


def create_branch(home: Path, name: str, at: datetime) -> Path:
    """Begin a branch at what serves: its files are linked, and the store stays that of the home
    until one of both is written.
    """
    folder = home / BRANCHES / check_branch(name)
    snapshot = served(home)

    if folder.exists():
        raise BranchError(f"there is a branch {name}; `hades branch --drop {name}` removes it")
    if not snapshot:
        raise BranchError("nothing is published that a branch could begin at; run `hades build`")

    partial_folder = folder.with_name(f".{name}.partial")
    shutil.rmtree(partial_folder, ignore_errors=True)
    root = root_of(make_private_folder(partial_folder))
    link_snapshot(root_of(home) / snapshot, root)
    pointer.move(root, snapshot)

    for part in _LINKED:
        if (home / part).is_dir():
            shutil.copytree(
                home / part,
                partial_folder / part,
                copy_function=_link,
            )

    about = {
        "created": iso(at),
        "snapshot": snapshot,
    }
    write_whole(partial_folder / _ABOUT, json.dumps(about))
    partial_folder.rename(folder)
    return folder


def document_states(store: RowStore) -> dict[str, str]:
    """What each document is, by key: its text and how it is cut into passages."""
    chunks: dict[str, list[str]] = {}
    for row in scan_rows(
        store,
        "doc_chunks",
        columns=["_key", "document"],
    ):
        chunks.setdefault(row["document"], []).append(row["_key"])

    states = {}
    for row in scan_rows(
        store,
        "documents",
        columns=["_key", "sha256"],
    ):
        keys = sorted(chunks.get(node_id("documents", row["_key"]), ()))
        text = " ".join([str(row["sha256"]), *keys])
        states[row["_key"]] = hashlib.sha256(text.encode()).hexdigest()[:32]

    return states


def write_base(folder: Path, store: RowStore) -> None:
    """Keep what a branch began with."""
    write_whole(folder / BASE, json.dumps(document_states(store)))


def link_snapshot(source: Path, root: Path) -> None:
    """Let a snapshot lie in another home too, without a byte of its own; notes beside it are
    copied.
    """
    root.mkdir(parents=True, exist_ok=True)
    target = root / source.name

    if target.is_dir():
        return

    half = root / f".linking-{source.name}"
    shutil.rmtree(half, ignore_errors=True)
    contents, _ = manifest.load(source)
    linked = {*contents.files, manifest.MANIFEST}
    shutil.copytree(
        source,
        half,
        copy_function=partial(_link_some, linked),
    )
    half.rename(target)


def _link_some(linked: set[str], source: str, target: str) -> None:
    if Path(source).name in linked:
        _link(source, target)
    elif Path(source).name != manifest.VERIFIED:
        shutil.copy2(source, target)


def _link(source: str, target: str) -> None:
    """A hard link, or a copy where the disk has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def list_branches(home: Path) -> list[JsonObject]:
    """The branches with what serves there and how many bytes are theirs alone."""
    return [_describe(home / BRANCHES / name) for name in branches(home)]


def _describe(folder: Path) -> JsonObject:
    about = json.loads((folder / _ABOUT).read_text("utf-8"))
    sizes = []
    for path in folder.rglob("*"):
        if path.is_file():
            sizes.append(path.lstat())

    own_bytes = sum(size.st_size for size in sizes if size.st_nlink == 1)
    return {
        "branch": folder.name,
        "created": about["created"],
        "from": about["snapshot"],
        "serves": served(folder),
        "has_own_store": (folder / _STORE).exists(),
        "own_bytes": own_bytes,
    }


def drop_branch(home: Path, name: str) -> None:
    """Remove a branch with all that was built there."""
    if name not in branches(home):
        raise BranchError(f"there is no branch {name}; `hades branch --list` shows them")

    leaving = home / BRANCHES / f".{name}.leaving"
    (home / BRANCHES / name).rename(leaving)
    shutil.rmtree(leaving)


def snapshot_of_branch(home: Path, name: str) -> str | None:
    """What serves in a branch, linked into the home so that it can be compared; None where there is
    no such branch.
    """
    if name not in branches(home):
        return None

    folder = home / BRANCHES / name
    snapshot = served(folder)
    if not snapshot:
        raise SnapshotError(f"nothing serves in the branch {name}; run `hades build` there")

    root = root_of(home)
    with pointer.changing(root):
        link_snapshot(root_of(folder) / snapshot, root)

    return snapshot
