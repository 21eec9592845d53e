"""Where words that were erased can still be read: rows of the store and files under the home.

A needle is a line or sentence of an erased text that no surviving version of the same topic says. A hit counts only
where no letter or digit stands on either side of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.memory.history import rows as records
from hades.memory.history.names import AUDIT, EDGES, LATEST, STATES, TRACES
from hades.ports.store import RowStore
from hades.text.keywords import sentences_of
from schemas.catalogue import COLLECTIONS as CATALOGUE
from schemas.memory import MemoryAudit, MemoryEdge, MemoryState

SHORTEST = 4  # characters; a shorter text is compared with whole fields only
ERASED = "[erased]"
_CHUNK = 8 * 1024 * 1024
_MODELS = "cache/models"  # exported models, never text of a user
_MASKED = ("logs", "reports", "cache")  # files whose words are overwritten in place
_COMMANDS = {
    STATES: "hades memory erase {key}",
    "doc_chunks": "hades forget DOCUMENT (document of chunk {key})",
    "documents": "hades forget {key}",
}


@dataclass(frozen=True)
class Remains:
    """What a search found after an erasure: rows by collection, files of the home, and how to remove them."""

    rows: dict[str, list[str]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def needles_of(texts: Sequence[str], surviving: Iterable[str]) -> list[str]:
    """The lines and sentences of erased texts that no surviving text repeats, longest first."""
    kept = {sentence for text in surviving for sentence in sentences_of(text)}
    wanted = {sentence for text in texts for sentence in sentences_of(text)} - kept
    return sorted((one for one in wanted if any(map(str.isalnum, one))), key=lambda one: (-len(one), one))


def redact_rows(rows: RowStore, needles: Sequence[str]) -> int:
    """Replace the needles in reasons, descriptions and metadata of what stays; how many rows changed."""
    long = [one for one in needles if len(one) >= SHORTEST]
    if not long:
        return 0
    changed = 0
    for collection, record, columns in (
        (EDGES, MemoryEdge, ("description", "metadata")),
        (AUDIT, MemoryAudit, ("why", "detail")),
        (STATES, MemoryState, ("metadata",)),
    ):
        keys = [key for batch in rows.scan(collection, columns=columns) for key in _hits(batch, columns, long)]
        found = records.fetch(rows, collection, keys, record)
        redacted = [_redact(one, columns, long) for one in found.values()]
        records.put(rows, collection, redacted)
        changed += len(redacted)
    return changed


def find_remains(store: RowStore, home: Path | None, needles: Sequence[str], names: Sequence[str]) -> Remains:
    """Rows and files that still hold a needle or the name of an erased topic, with the commands that remove them."""
    long = [one for one in [*needles, *names] if len(one) >= SHORTEST]
    places = {STATES: ("content", "metadata"), EDGES: ("description", "metadata"), AUDIT: ("why", "detail")}
    found = _rows_with(store, places, long)
    for collection in (STATES, LATEST, TRACES):
        for key in _rows_with(store, {collection: ("topic",)}, [one for one in names if len(one) >= SHORTEST]).get(
            collection, []
        ):
            found.setdefault(collection, []).append(key)
    files = find_in_files(home, long) if home is not None else []
    if "graph.db" in files and not found:  # not memory's: another collection quotes it
        others = {one.name: _text_columns(one) for one in CATALOGUE if one.name not in places}
        found |= _rows_with(store, {name: columns for name, columns in others.items() if columns}, long)
    found = {name: sorted(set(keys)) for name, keys in found.items()}
    return Remains(found, files, _commands(found, files))


def find_in_files(home: Path, needles: Sequence[str]) -> list[str]:
    """Files under a home that hold a needle, by their path in it; every byte is read."""
    patterns = _patterns(needles)
    return sorted(
        path.relative_to(home).as_posix()
        for path in _files(home)
        if patterns and any(True for _ in _matches(path, patterns))
    )


def mask_files(home: Path, needles: Sequence[str]) -> list[str]:
    """Overwrite needles with stars in logs, reports and cached answers; the files that changed."""
    patterns = _patterns([one for one in needles if len(one) >= SHORTEST])
    masked = []
    for path in _files(home):
        name = path.relative_to(home).as_posix()
        if not patterns or name.partition("/")[0] not in _MASKED or "/" not in name:
            continue
        hits = list(_matches(path, patterns))
        if hits:
            with path.open("r+b") as file:
                for start, end in hits:
                    file.seek(start)
                    file.write(b"*" * (end - start))
            masked.append(name)
    return masked


def _files(home: Path) -> Iterator[Path]:
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.relative_to(home).as_posix().startswith(_MODELS):
            yield path


def _matches(path: Path, patterns: Sequence[re.Pattern[bytes]]) -> Iterator[tuple[int, int]]:
    """Where a file holds one of the patterns."""
    overlap = max(len(pattern.pattern) for pattern in patterns)
    with path.open("rb") as file:
        before, at = b"", 0
        while chunk := file.read(_CHUNK):
            held = before + chunk
            for pattern in patterns:
                for hit in pattern.finditer(held):
                    yield at - len(before) + hit.start(), at - len(before) + hit.end()
            at += len(chunk)
            before = held[-overlap:]


def _patterns(needles: Sequence[str]) -> list[re.Pattern[bytes]]:
    forms = dict.fromkeys(form for one in needles for form in (one, _in_json(one)))
    return [re.compile(rb"(?<![0-9A-Za-z])" + re.escape(one.encode()) + rb"(?![0-9A-Za-z])") for one in forms]


def _in_json(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _rows_with(store: RowStore, places: Mapping[str, tuple[str, ...]], needles: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for collection, columns in places.items():
        for batch in store.scan(collection, columns=columns):
            keys = _hits(batch, columns, needles)
            if keys:
                found.setdefault(collection, []).extend(keys)
    return found


def _hits(batch: pa.RecordBatch, columns: Sequence[str], needles: Sequence[str]) -> list[str]:
    """Keys of the rows of a batch that hold a needle."""
    hit = pa.array([False] * batch.num_rows)
    for column in columns:
        for needle in dict.fromkeys(form for one in needles for form in (one, _in_json(one))):
            pattern = rf"(?:^|[^0-9A-Za-z]){re.escape(needle)}(?:$|[^0-9A-Za-z])"
            hit = pc.or_(hit, pc.fill_null(pc.match_substring_regex(batch.column(column), pattern), False))
    keys: list[str] = batch.column("_key").filter(hit).to_pylist()
    return keys


def _redact(record: Any, columns: Sequence[str], needles: Sequence[str]) -> Any:
    changes: dict[str, Any] = {}
    for column in columns:
        value = getattr(record, column)
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        for one in needles:
            text = text.replace(_in_json(one), ERASED) if not isinstance(value, str) else text.replace(one, ERASED)
        changes[column] = text if isinstance(value, str) else orjson.loads(text)
    return record.model_copy(update=changes)


def _text_columns(collection: Any) -> tuple[str, ...]:
    return tuple(one.name for one in collection.schema if pa.types.is_string(one.type) and one.name != "_key")


def _commands(rows: dict[str, list[str]], files: Sequence[str]) -> list[str]:
    commands = [
        _COMMANDS.get(collection, f"edit or remove row {{key}} of {collection}").format(key=key)
        for collection, keys in rows.items()
        for key in keys
    ]
    for name in files:
        if name.startswith("graph.db") and not rows:
            commands.append("close other processes that use the store, then: hades memory compact")
        elif name.startswith("snapshots/"):
            commands.append(f"hades publish, then remove the old snapshot: rm -r {'/'.join(name.split('/')[:2])}")
        elif not name.startswith("graph.db"):
            commands.append(f"rm {name}")
    return list(dict.fromkeys(commands))
