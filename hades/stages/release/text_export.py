"""A store as a folder of text files, and back into any store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades.ports.progress import Progress, silent
from hades.ports.store import GraphStore, RowStore
from hades.stages.release.text_rows import SUFFIXES, ExportError, Form, read_rows, to_batch, write_row
from schemas.catalogue import COLLECTIONS, Collection, collection_named
from schemas.intervals import iso

MANIFEST, FORMAT = "export.json", "hades-export/1"
_BATCH_ROWS = 2_000
_MEMORY = "memory_"


def select_collections(only: str) -> list[Collection]:
    """`memory`, `graph` (everything else) or `all`."""
    if only == "all":
        return list(COLLECTIONS)
    return [one for one in COLLECTIONS if one.name.startswith(_MEMORY) == (only == "memory")]


def export_text(
    store: RowStore, folder: Path, form: Form, only: str, *, at: datetime, hades: str, progress: Progress = silent
) -> dict[str, Any]:
    """Write one file for each collection that has rows, then the manifest; the folder must be empty."""
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Any]] = {}
    chosen = select_collections(only)
    for number, collection in enumerate(chosen, 1):
        name = collection.name + SUFFIXES[form]
        rows = _write_file(store, folder / name, collection, form)
        if rows:
            files[collection.name] = {"file": name, "rows": rows, "sha256": _sha256(folder / name)}
        progress("export", number, len(chosen))
    document = {"format": FORMAT, "form": form, "only": only, "at": iso(at), "hades": hades, "collections": files}
    (folder / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return document


def import_text(store: GraphStore, folder: Path, *, progress: Progress = silent) -> dict[str, int]:
    """Write the rows of an export into the store, nodes before edges; rows with the same key are replaced.

    Every file is checked against the manifest before the first row is written.
    """
    manifest = _read_manifest(folder)
    form: Form = manifest["form"]
    files = {collection: manifest["collections"][collection.name] for collection in _order_collections(manifest)}
    for told in files.values():
        if _sha256(folder / told["file"]) != told["sha256"]:
            raise ExportError(f"{folder / told['file']} is not what was exported; export again, or see docs/export.md")
    counts: dict[str, int] = {}
    for number, (collection, told) in enumerate(files.items(), 1):
        store.upsert(collection.name, _batches(folder / told["file"], collection, form))
        counts[collection.name] = told["rows"]
        progress("import", number, len(files))
    return counts


def seal_export(folder: Path) -> dict[str, Any]:
    """Write counts and hashes of the files as they are now: for an export that was edited by hand."""
    manifest = _read_manifest(folder)
    for collection in _order_collections(manifest):
        told = manifest["collections"][collection.name]
        told["rows"] = sum(batch.num_rows for batch in _batches(folder / told["file"], collection, manifest["form"]))
        told["sha256"] = _sha256(folder / told["file"])
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def _write_file(store: RowStore, path: Path, collection: Collection, form: Form) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if form == "markdown":
            file.write(f"# {collection.name}\n\n{collection.about}\n\n")
        for batch in store.scan(collection.name, batch_rows=_BATCH_ROWS):
            file.writelines(write_row(row, collection, form) for row in batch.to_pylist())
            rows += batch.num_rows
    if not rows:
        path.unlink()
    return rows


def _batches(path: Path, collection: Collection, form: Form) -> Iterator[pa.RecordBatch]:
    with path.open(encoding="utf-8", newline="\n") as file:
        rows = read_rows(file, collection, form, path.name)
        while part := list(islice(rows, _BATCH_ROWS)):
            yield to_batch(part, collection)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(f"{folder} is not an export: {MANIFEST} cannot be read ({error})") from None
    if manifest.get("format") != FORMAT or manifest.get("form") not in SUFFIXES:
        raise ExportError(f"{folder / MANIFEST} has format {manifest.get('format')!r}; expected {FORMAT}")
    unknown = sorted(name for name in manifest["collections"] if collection_named(name) is None)
    if unknown:
        raise ExportError(
            f"{folder} holds collections that this version does not know: {', '.join(unknown)}; update HADES"
        )
    return manifest


def _order_collections(manifest: dict[str, Any]) -> list[Collection]:
    """Collections of the export, those with nodes before those with edges."""
    held = [one for one in COLLECTIONS if one.name in manifest["collections"]]
    return sorted(held, key=lambda one: one.edge is not None)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
