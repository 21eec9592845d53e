"""Collections as tables for notebooks: with names where the store has keys, without vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa

from hades.errors import HadesError
from hades.ports.store import Row, RowStore, scan_rows
from schemas.catalogue import NAMES, collection_named, declared
from schemas.ids import node_id

# By the name of a frame: its collection, and its columns. `a=b` is the column b under the name a,
# `b>documents.origin` the origin of the document that b names.
FRAMES: dict[str, tuple[str, str]] = {
    "documents": (
        "documents",
        "document=origin title source format=mime created domains address=uri text",
    ),
    "passages": (
        "doc_chunks",
        "document=document>documents.origin title heading=headings text kind span "
        "path=file_path symbol tokens=token_count created=timestamp",
    ),
    "entities": (
        "entities",
        "name type summary topic=cluster_id>clusters.name mentions=frequency aliases domain "
        "domains edges_out=deg_out",
    ),
    "relations": (
        "relations",
        "source=_from>entities.name relation=type target=_to>entities.name label weight "
        "document=provenance.doc>documents.origin span=provenance.span evidence=evidence_count "
        "created valid_from valid_until recorded_at retracted_at source_id=_from target_id=_to",
    ),
    "topics": (
        "clusters",
        "name level parent=parent>clusters.name summary entities=size drift",
    ),
    "mentions": (
        "mentions",
        "passage=_from entity=_to>entities.name count weight entity_id=_to",
    ),
    "memory": (
        "memory_states",
        "topic version content valid_from valid_until recorded_at=timestamp retracted_at "
        "confidence importance=importance_score tags",
    ),
    "questions": ("query_logs", "query recipe snapshot asked_at=at reasons"),
}
_TITLES = ("headings",)  # lists that read as one line


def read_frame(store: RowStore, name: str) -> pa.Table:
    """A frame by its name, or a collection as it is stored but for vectors, one row each by key."""
    if name in FRAMES:
        collection, columns = FRAMES[name]
    elif collection_named(name) is not None:
        left_out = ("_key", declared(name).vector_field)
        collection = name
        columns = " ".join(
            column for column in declared(name).schema.names if column not in left_out
        )
    else:
        known = ", ".join((*FRAMES, *(other for other in NAMES if other not in FRAMES)))
        raise HadesError(f"there is no frame {name!r}; use one of {known}")

    fields = dict(map(_read_field, columns.split()))
    stored = {path.partition(".")[0] for path, _ in fields.values()}
    name_of = cache(partial(_read_names, store))

    rows = []
    for row in scan_rows(
        store,
        collection,
        columns=["_key", *sorted(stored)],
    ):
        cells: Row = {"id": node_id(collection, row["_key"])}
        for field, (path, target) in fields.items():
            value = _value(row, path)
            cells[field] = name_of(target).get(_key(value)) if target else value

        rows.append(cells)

    return pa.Table.from_pylist(rows, schema=_schema(collection, fields))


def _read_field(spelled: str) -> tuple[str, tuple[str, str]]:
    """`a=b>c.d` as a, the column b and the place c.d of the names; no place where b is shown."""
    name, _, place = spelled.partition("=")
    path, _, target = (place or name).partition(">")
    return name, (path, target)


def _read_names(store: RowStore, target: str) -> Mapping[str, str]:
    """A column of a collection by key."""
    collection, _, column = target.partition(".")
    rows = scan_rows(
        store,
        collection,
        columns=["_key", column],
    )
    return {row["_key"]: row[column] for row in rows}


def _key(reference: str | None) -> str:
    return (reference or "").rpartition("/")[2]


def _value(row: Row, path: str) -> Any:
    column, _, part = path.partition(".")
    value = row[column]
    if part:
        return None if value is None else value[part]

    return " › ".join(value) if column in _TITLES else value


def _schema(collection: str, fields: Mapping[str, tuple[str, str]]) -> pa.Schema:
    """The types of a frame's columns: names and headings are texts, the others as stored."""
    stored = declared(collection).schema
    columns = [("id", pa.string())]

    for name, (path, target) in fields.items():
        column, _, part = path.partition(".")
        kind = stored.field(column).type
        if part:
            kind = kind.field(part).type

        columns.append((name, pa.string() if target or column in _TITLES else kind))

    return pa.schema(columns)
