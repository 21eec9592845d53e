"""Rows of tables as documents: the columns are fields, long ones under a heading of their own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from hades.ingest.sources.remote.connector import RemoteDocument, SyncError, moment_of
from hades.ingest.stated_rights import readers_of_row

_LONG_CHARACTERS = 200
_TITLES = ("title", "name", "subject", "summary")


def row_documents(
    rows: Iterable[Mapping[str, Any]],
    *,
    group: str,
    key: str,
    title: str,
    cursor: str,
    address: str,
    readers: Sequence[str] = (),
) -> Iterator[RemoteDocument]:
    """A document for each row; without a cursor its version is the hash of its content. The columns
    `readers` say who may read it, and are no part of it.
    """
    for row in rows:
        identifier = row_key(row, key)
        content_row = {}
        for column, value in row.items():
            if column not in readers:
                content_row[column] = value

        content = write_row(
            content_row,
            group=group,
            key=identifier,
            title=title,
        )
        stamp = row.get(cursor) if cursor else None
        if stamp is None:
            version = hashlib.sha256(content).hexdigest()
        else:
            version = version_text(stamp)

        yield RemoteDocument(
            id=f"{group}/{identifier}",
            name=f"{group}/{identifier}.md",
            version=version,
            address=f"{address}#{group}/{identifier}",
            modified=moment_of(stamp) if isinstance(stamp, str | date) else None,
            content=content,
            readers=readers_of_row(row, readers),
        )


def row_key(row: Mapping[str, Any], key: str) -> str:
    """What identifies a row; a row that has lost it would be lost without a word."""
    value = row.get(key)
    if value is None or value == "":
        raise SyncError(
            f"a row has no value in its key column {key!r}; every row needs one, so name another "
            "column with --key, or leave such rows out by a query"
        )

    return str(value)


def version_text(stamp: object) -> str:
    """The value of a cursor as text."""
    if isinstance(stamp, date):
        return stamp.isoformat()
    return str(stamp)


def write_row(
    row: Mapping[str, Any],
    *,
    group: str,
    key: str,
    title: str,
) -> bytes:
    """A row as Markdown: a title, its short fields as a list, its long ones as sections."""
    columns = [title] if title else _TITLES
    name = next((str(row[column]) for column in columns if row.get(column)), "")
    lines = [f"# {' '.join(name.split()) or f'{group} {key}'}", ""]

    sections: list[str] = []
    for column, value in row.items():
        text = _field_text(value)
        label = column.replace("_", " ")  # a name with underscores reads as one of code
        if not text or column.startswith("_dlt"):
            continue

        if "\n" in text or len(text) > _LONG_CHARACTERS:
            sections += ["", f"## {label}", "", text]
        else:
            lines.append(f"- {label}: {text}")

    return "\n".join([*lines, *sections, ""]).encode("utf-8", "replace")


def _field_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(bytes(value)):,} bytes"
    if isinstance(value, dict | list | tuple):
        return json.dumps(
            value,
            ensure_ascii=False,
            default=str,
        )

    return version_text(value).strip()
