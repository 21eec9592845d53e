"""Text export and import."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa

from hades.errors import HadesError
from hades.files import sha256_of, write_whole
from hades.ports.services import ProgressReport, silent
from hades.ports.store import GraphStore, RowStore
from schemas.catalogue import COLLECTIONS, Collection, collection_named
from schemas.ids import iso
from schemas.record import JsonObject

# Rows as text and back without loss: JSON Lines for programs, Markdown for people.
# docs/operations.md has the format. A row is one JSON object with the columns of the catalogue.
# Times are ISO 8601 in UTC with microseconds. Vectors are lists of numbers in JSON Lines; in
# Markdown, where nobody reads them, `f32:` and the base64 of their little-endian floats.
Form = Literal["jsonl", "markdown"]
SUFFIXES: dict[Form, str] = {"jsonl": ".jsonl", "markdown": ".md"}
_VECTOR = "f32:"
_OPEN, _CLOSE = "```json", "```"
_TITLE_CHARACTERS = 80


class ExportError(HadesError):
    """An export that cannot be written, or one that cannot be read."""

    http_status = 400


def write_row(
    row: Mapping[str, Any],
    collection: Collection,
    form: Form,
) -> str:
    """The text of one row, ending in a newline."""
    if form == "jsonl":
        return orjson.dumps(row).decode() + "\n"

    packed = {}
    for name, value in row.items():
        packed[name] = _pack(value, collection.schema.field(name).type)

    prose = []
    for name in collection.text_fields:
        if row.get(name):
            prose.append(str(row[name]).strip())

    title = " ".join((prose[0] if prose else str(row["_key"])).split())[:_TITLE_CHARACTERS]
    parts = [f"## {title}"]
    if prose:
        quoted = chain.from_iterable(text.splitlines() or [""] for text in prose)
        parts.append("\n".join(f"> {line}" for line in quoted))

    parts.append(f"{_OPEN}\n{orjson.dumps(packed).decode()}\n{_CLOSE}")
    return "".join(f"{part}\n\n" for part in parts)


def read_rows(
    lines: Iterable[str],
    collection: Collection,
    form: Form,
    name: str,
) -> Iterator[JsonObject]:
    """The rows of a file; prose of a Markdown file is not read, its JSON is."""
    is_open = form == "jsonl"
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if form == "markdown" and text == (_CLOSE if is_open else _OPEN):
            is_open = not is_open
        elif is_open and text:
            yield _load(text, collection, f"{name}:{number}")

    if form == "markdown" and is_open:
        raise ExportError(
            f"{name}: the last block of JSON is not closed; the file was cut off, export again"
        )


def to_batch(rows: list[JsonObject], collection: Collection) -> pa.RecordBatch:
    """Rows as the store takes them: columns that are still declared."""
    names = set(chain.from_iterable(rows))

    fields = []
    for field in collection.schema:
        if field.name in names:
            fields.append(field)

    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(fields))


def _load(
    text: str,
    collection: Collection,
    place: str,
) -> JsonObject:
    try:
        row = orjson.loads(text)
        if not isinstance(row, dict) or "_key" not in row:
            raise ValueError("expected an object with _key")

        known = {}
        for field in collection.schema:
            known[field.name] = field.type

        values = {}
        for name in row:
            if name in known:
                values[name] = _value(row[name], known[name])

        return values
    except (ValueError, TypeError) as error:
        raise ExportError(f"{place}: {error}; fix the line, or export again") from None


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).astimezone(UTC)
    if isinstance(value, str) and value.startswith(_VECTOR) and pa.types.is_list(kind):
        return np.frombuffer(base64.b64decode(value.removeprefix(_VECTOR)), "<f4").tolist()

    return value


def _pack(value: Any, kind: pa.DataType) -> Any:
    """A vector as text that nobody needs to read; other values as they are."""
    if value is None or not (pa.types.is_list(kind) and pa.types.is_float32(kind.value_type)):
        return value
    return _VECTOR + base64.b64encode(np.asarray(value, dtype="<f4").tobytes()).decode()


MANIFEST, FORMAT = "export.json", "hades-export/1"
_BATCH_ROWS = 2_000
_MEMORY = "memory_"
_RIGHTS = 0o600  # of the files: not everybody on the machine may read what was remembered


def export_text(
    store: RowStore,
    folder: Path,
    form: Form,
    only: str,
    *,
    at: datetime,
    hades: str,
    progress: ProgressReport = silent,
) -> JsonObject:
    """Write one file for each collection that has rows, then the manifest; the folder must be
    empty.

    `only` is `memory`, `graph` (everything else) or `all`.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty; name a new folder")

    folder.mkdir(
        mode=0o700,
        parents=True,
        exist_ok=True,
    )
    files: dict[str, JsonObject] = {}

    chosen: list[Collection] = []
    for collection in COLLECTIONS:
        is_memory = collection.name.startswith(_MEMORY)
        if only == "all" or is_memory == (only == "memory"):
            chosen.append(collection)

    for number, collection in enumerate(chosen, 1):
        name = collection.name + SUFFIXES[form]
        if store.count(collection.name):
            rows = _write_file(store, folder / name, collection, form)
            digest = sha256_of(folder / name)
            files[collection.name] = {
                "file": name,
                "rows": rows,
                "sha256": digest,
            }

        progress("export", number, len(chosen))

    document = {
        "format": FORMAT,
        "form": form,
        "only": only,
        "at": iso(at),
        "hades": hades,
        "collections": files,
    }
    write_whole(
        folder / MANIFEST,
        json.dumps(document, indent=2) + "\n",
        _RIGHTS,
    )
    return document


def import_text(
    store: GraphStore,
    folder: Path,
    *,
    progress: ProgressReport = silent,
) -> dict[str, int]:
    """Write the rows of an export into the store, nodes before edges; rows with the same key are
    replaced.

    Every file is checked against the manifest before the first row is written.
    """
    manifest = _read_manifest(folder)
    files = manifest["collections"]
    collections = _order_collections(manifest)

    for file in files.values():
        path = folder / file["file"]
        if sha256_of(path) != file["sha256"]:
            raise ExportError(f"{path} is not what was exported; export again (docs/operations.md)")

    counts: dict[str, int] = {}
    for number, collection in enumerate(collections, 1):
        file = files[collection.name]
        batches = _batches(
            folder / file["file"],
            collection,
            manifest["form"],
        )
        store.upsert(collection.name, batches)
        counts[collection.name] = file["rows"]
        progress("import", number, len(collections))

    return counts


def seal_export(folder: Path) -> JsonObject:
    """Write counts and hashes of the files as they are now: for an export that was edited by
    hand.
    """
    manifest = _read_manifest(folder)
    for collection in _order_collections(manifest):
        file = manifest["collections"][collection.name]
        path = folder / file["file"]
        batches = _batches(path, collection, manifest["form"])
        file["rows"] = sum(batch.num_rows for batch in batches)
        file["sha256"] = sha256_of(path)

    write_whole(
        folder / MANIFEST,
        json.dumps(manifest, indent=2) + "\n",
        _RIGHTS,
    )
    return manifest


def _write_file(
    store: RowStore,
    path: Path,
    collection: Collection,
    form: Form,
) -> int:
    rows = 0
    private = partial(os.open, mode=_RIGHTS)
    with open(
        path,
        "w",
        encoding="utf-8",
        newline="\n",
        opener=private,
    ) as file:
        if form == "markdown":
            file.write(f"# {collection.name}\n\n{collection.about}\n\n")

        for batch in store.scan(collection.name, batch_rows=_BATCH_ROWS):
            file.writelines(write_row(row, collection, form) for row in batch.to_pylist())
            rows += batch.num_rows

    return rows


def _batches(
    path: Path,
    collection: Collection,
    form: Form,
) -> Iterator[pa.RecordBatch]:
    with path.open(encoding="utf-8", newline="\n") as file:
        rows = read_rows(file, collection, form, path.name)
        while part := list(islice(rows, _BATCH_ROWS)):
            yield to_batch(part, collection)


def _read_manifest(folder: Path) -> JsonObject:
    try:
        manifest: JsonObject = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(
            f"{folder} is not an export: {MANIFEST} cannot be read ({error})"
        ) from None

    if manifest.get("format") != FORMAT or manifest.get("form") not in SUFFIXES:
        raise ExportError(
            f"{folder / MANIFEST} has format {manifest.get('format')!r}; expected {FORMAT}"
        )

    unknown = sorted(name for name in manifest["collections"] if collection_named(name) is None)
    if unknown:
        raise ExportError(
            f"{folder} holds collections that this version does not know: {', '.join(unknown)}; "
            "update HADES"
        )

    return manifest


def _order_collections(manifest: JsonObject) -> list[Collection]:
    """Collections of the export, those with nodes before those with edges."""
    names = manifest["collections"]
    collections = [collection for collection in COLLECTIONS if collection.name in names]
    return sorted(
        collections,
        key=lambda collection: collection.edge is not None,
    )
