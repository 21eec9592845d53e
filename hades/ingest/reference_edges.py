"""Edges from chunk to chunk: what comes next where a source states an order, and which page a link leads to.

`next` joins documents that follow each other, as the turns of a talk do. `references` joins the chunk in which a page
links to another page of the same source with the opening of that page.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.stated_edges import read_facts
from schemas.catalogue import collection_named
from schemas.edges import ReferenceType
from schemas.graph_types import RelationType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]
_FOLLOWS = '"follows":"'  # documents without it state no order, and their facts are not parsed
_LINKS = f'"relation":"{RelationType.REFERS_TO}"'  # those without it link to no page


def reference_edges(documents: pa.Table, chunks: pa.Table) -> list[Row]:
    """Edges of both types, by key.

    `documents` have _key, origin, title, source and facts; `chunks` have _key, document, text and span.
    """
    facts = documents.column("facts")
    stating = documents.filter(pc.or_(pc.match_substring(facts, _FOLLOWS), pc.match_substring(facts, _LINKS)))
    if not stating.num_rows:
        return []
    columns = (documents.column(name).to_pylist() for name in ("_key", "origin", "title", "source"))
    by_origin: dict[tuple[str, str | None], tuple[str, str]] = {
        (source, origin): (key, title) for key, origin, title, source in zip(*columns, strict=True)
    }
    pieces = _pieces(chunks)
    found: dict[str, Row] = {}
    for key, source, text in zip(
        *(stating.column(name).to_pylist() for name in ("_key", "source", "facts")), strict=True
    ):
        for kind, tail, head in _edges_of(key, source, read_facts(text), by_origin, pieces):
            tail, head = node_id("doc_chunks", tail), node_id("doc_chunks", head)
            name = edge_key(tail, str(kind), head)
            found[name] = {"_key": name, "_from": tail, "_to": head, "type": str(kind)}
    return [found[name] for name in sorted(found)]


def reference_table(rows: Sequence[Row]) -> pa.Table:
    """The rows in the catalogue's columns."""
    declared = collection_named("references")
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in ("_key", "_from", "_to", "type")])
    return pa.Table.from_pylist(list(rows), schema=schema)


_Pieces = dict[str, list[tuple[int, str, str]]]  # of a document: where each chunk begins, its key, its text


def _pieces(chunks: pa.Table) -> _Pieces:
    held: _Pieces = {}
    columns = (chunks.column(name).to_pylist() for name in ("_key", "document", "text", "span"))
    for key, document, text, span in zip(*columns, strict=True):
        held.setdefault(document.partition("/")[2], []).append((span[0], key, text))
    return {document: sorted(places) for document, places in held.items()}


def _edges_of(
    key: str,
    source: str,
    facts: dict[str, Any],
    by_origin: dict[tuple[str, str | None], tuple[str, str]],
    pieces: _Pieces,
) -> Iterator[tuple[ReferenceType, str, str]]:
    """What one document states, as type and keys of two chunks."""
    own = pieces.get(key)
    if not own:
        return
    before, _ = by_origin.get((source, facts.get("follows")), ("", ""))
    if before != key and before in pieces:
        yield ReferenceType.NEXT, pieces[before][-1][1], own[0][1]
    for link in facts.get("links", ()):
        other, title = by_origin.get((source, link["target"]), ("", ""))
        if not link["external"] and link["relation"] == RelationType.REFERS_TO and other != key and other in pieces:
            yield ReferenceType.REFERENCES, _place(own, link["target"], title), pieces[other][0][1]


def _place(own: Sequence[tuple[int, str, str]], target: str, title: str) -> str:
    """The first chunk that writes the name of the linked file or its title; the first of all where none does."""
    stem = posixpath.splitext(posixpath.basename(target))[0].casefold()
    wanted = [one for one in (stem, title.casefold()) if one]
    for _, key, text in own:
        written = text.casefold()
        if any(one in written for one in wanted):
            return key
    return own[0][1]
