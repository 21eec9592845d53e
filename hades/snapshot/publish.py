"""Publishing: the store is read once, a new snapshot is written beside the old ones, and one
pointer moves.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from hades import ranker_files, stage_ledger
from hades.errors import SnapshotError
from hades.files import write_whole
from hades.ports.graph import Kind
from hades.ports.store import GraphStore, RowStore
from hades.snapshot import manifest, pointer
from hades.snapshot.files import Folder, read_files, sync
from hades.snapshot.lexical import PartWords, WordCounts
from hades.snapshot.manifest import (
    ABOUT,
    MANIFEST,
    NEWER,
    RANKER,
    Manifest,
    catalogue_hash,
    edge_types,
    note,
    parts_of,
    stamps_of,
    verify,
)
from hades.snapshot.pointer import RETIRED
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import (
    Documents,
    fit_ranker,
    write_bridges,
    write_edges,
    write_nodes,
)
from models.ranker.infer import BadModel
from schemas.ids import iso

_BUILDING = ".building-"
WORDS = "words"  # the record that tells how rare words are
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublishReport:
    """What serves now. `is_new` is false when the very same snapshot existed and only the pointer
    moved.

    `ranker_left_out` says why the learned ranker is not in it, though there should be one.
    """

    path: Path
    manifest_hash: str
    contents: Manifest
    is_new: bool
    ranker_left_out: str

    @property
    def snapshot(self) -> str:
        """The id of the snapshot."""
        return self.path.name


def publish(
    store: GraphStore,
    home: Path,
    *,
    created_at: datetime | None = None,
    approve: Callable[[Path], None] = lambda folder: None,
    newer: Iterable[str] = (),
) -> PublishReport:
    """Write the store's graph as a snapshot under `home/snapshots` and let it serve.

    Each collection is scanned once, all as of one moment where the store can do that, so that
    others may go on writing. An edge that lost its end refuses the whole. Killed at any moment, the
    snapshot that served before still does. `created_at` is kept beside, unhashed. `approve` sees
    the finished folder before it serves; what it raises, the caller gets, and the pointer stays.
    `newer` are documents whose edges are yet to be derived: answers that cite them say so.
    """
    root = pointer.root_of(home)
    with pointer.changing(root):
        for unfinished in root.glob(
            ".*-*/"
        ):  # of publishers that died: whoever holds the lock knows that none is at work
            shutil.rmtree(unfinished)

        building = root / f"{_BUILDING}{os.getpid()}"
        building.mkdir()
        try:
            with store.reading() as rows:
                parts = parts_of(rows)
                if names := " ".join(sorted(newer)):
                    parts[NEWER] = names
                contents, words = build(rows, Folder(building), parts)

            contents, no_ranker = add_ranker(contents, building, home)
            body = contents.to_bytes()
            manifest_hash = manifest.hash_of(body)
            snapshot = manifest.id_of(manifest_hash)
            is_new = not _is_sound(root / snapshot)

            if is_new:
                _finish(building, body, contents, created_at)
                _adopt(root, building, snapshot)

            approve(root / snapshot)
            (root / snapshot / RETIRED).unlink(missing_ok=True)  # it holds what the store holds now
            pointer.move(root, snapshot)
            _leave_words(store, manifest_hash, words)
        finally:
            shutil.rmtree(building, ignore_errors=True)

    return PublishReport(
        root / snapshot,
        manifest_hash,
        contents,
        is_new,
        no_ranker,
    )


def _leave_words(
    store: GraphStore,
    manifest_hash: str,
    words: Mapping[Kind, WordCounts],
) -> None:
    """Tell the store how rare words are, for whoever searches it without a snapshot."""
    last_record = stage_ledger.last_completion(store, WORDS)
    if last_record is None or last_record.digest != manifest_hash:
        with store.bulk(["build_stages"]) as inside:
            report = {}
            for kind, counts in words.items():
                report[kind.value] = counts.as_json()

            stage_ledger.record(
                inside,
                WORDS,
                manifest_hash,
                report=report,
            )


def build(
    store: RowStore,
    folder: Folder,
    parts: dict[str, str],
    words: Mapping[Kind, PartWords] | None = None,
) -> tuple[Manifest, dict[Kind, WordCounts]]:
    """Write every file of a snapshot into an empty folder: its manifest, words counted.

    `words` tells of the words of a graph that the rows are a part of.
    """
    documents = Documents(store)
    nodes = write_nodes(store, folder, documents, words or {})
    edges = write_edges(store, folder, documents, nodes)
    bridges = write_bridges(
        store,
        folder,
        nodes,
        edges,
        parts[stage_ledger.WEIGHTS],
    )
    documents.write(folder)
    contents = Manifest(
        catalogue=catalogue_hash(),
        nodes=nodes.counts,
        edges=edges.counts,
        documents=documents.stored,
        bridges=bridges,
        parts=parts,
        types=edge_types(),
        node_types=nodes.types,
        models=nodes.models,
        longest_name=nodes.longest_name,
        has_validity=edges.has_validity,
        files=folder.files,
    )
    return contents, nodes.words


def add_ranker(
    contents: Manifest,
    building: Path,
    home: Path,
) -> tuple[Manifest, str]:
    """The manifest with the ranker that should serve; without one, and why, where it cannot be used
    on this graph.

    A graph is worth more than its ranker: questions are judged by hand, and each answer says so.
    """
    generation = contents.parts.get(RANKER, "")
    if not generation:
        return contents, ""

    folder = Folder(building)
    try:
        view = GraphView(
            "building",
            contents,
            read_files(building, contents.files),
        )
        folder.write_arrays(
            RANKER,
            vars(fit_ranker(view, ranker_files.load_ranker(home, generation))),
        )
    except BadModel as problem:
        logger.warning("published without the learned ranker: %s", problem)
        return contents, str(problem)

    return replace(contents, files={**contents.files, **folder.files}), ""


def adopt(home: Path, folder: Path, name: str) -> None:
    """Keep a finished snapshot of a folder on the same disk under a pin; what serves stays."""
    root = pointer.root_of(home)
    with pointer.changing(root):
        if not _is_sound(root / folder.name):
            _adopt(root, folder, folder.name)

    pointer.pin(home, name, folder.name)


def _is_sound(folder: Path) -> bool:
    if not folder.is_dir():
        return False

    try:
        verify(folder, manifest.load(folder)[0].files)
    except SnapshotError:
        return False

    return True


def _finish(
    building: Path,
    body: bytes,
    contents: Manifest,
    created_at: datetime | None,
) -> None:
    """Write the manifest, the unhashed note beside it and the mark of verification: the hashes are
    fresh.
    """
    about = {"created_at": None if created_at is None else iso(created_at)}
    for name, text in ((ABOUT, json.dumps(about).encode()), (MANIFEST, body)):
        write_whole(building / name, text)

    note(building, stamps_of(building, contents.files))
    sync(building)


def _adopt(root: Path, building: Path, snapshot: str) -> None:
    """Give the folder its name. A damaged one of that name goes aside first; whoever has it open
    keeps it.
    """
    damaged = root / f".damaged-{snapshot}"
    if (root / snapshot).exists():
        (root / snapshot).rename(damaged)

    building.rename(root / snapshot)
    shutil.rmtree(damaged, ignore_errors=True)
    sync(root)
