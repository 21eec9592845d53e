"""Documents, chunks, files and symbols by document: only those that are asked for are read, all have a signature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code.code_document import CodeDocument
from hades.ingest.nodes import func_keys
from hades.ingest.readings.signatures import Signatures, sign_texts

_OWNED = (("chunks", ("_key", "text", "span", "symbol", "kind")), ("funcs", ("_key", "span")), ("files", ("_key",)))


class Piece(NamedTuple):
    """A chunk of a document."""

    key: str
    text: str
    span: Sequence[int]
    symbol: str | None
    kind: str


class ReadDocument(NamedTuple):
    """A document with its chunks, and what it says where it is a code file."""

    key: str
    code: CodeDocument | None
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class CodeCorpus:
    """What code edges are made from, in the catalogue's columns; rows may come in any order.

    `chunks` have _key, document, text, span, symbol and kind; `documents` _key, origin, created, length and facts;
    `funcs` _key, qualified_name, document and span; `files` _key, document and path.
    """

    documents: pa.Table
    chunks: pa.Table
    funcs: pa.Table
    files: pa.Table

    @cached_property
    def keys(self) -> pa.Array:
        """Of all documents."""
        return self.documents.column("_key").combine_chunks()

    @cached_property
    def file_of(self) -> dict[str, str]:
        """Document key -> file key."""
        owners, keys = (self.files.column(name).to_pylist() for name in ("document", "_key"))
        return {owner.partition("/")[2]: key for owner, key in zip(owners, keys, strict=True)}

    def sign(self) -> Signatures:
        """The signature of each document, of all that its own edges are made from."""
        signed = sign_texts(_join_columns(self.documents, ("_key", "origin", "created", "length", "facts")))
        ids = pc.binary_join_element_wise("documents", self.keys, "/")
        for name, columns in _OWNED:
            table: pa.Table = getattr(self, name)
            owner = pc.fill_null(pc.index_in(table.column("document"), value_set=ids), -1).to_numpy().astype(np.int64)
            rows = np.flatnonzero(owner >= 0)
            held = sign_texts(_join_columns(table, columns)).take(rows)
            signed = signed.join(held.add_up(owner[rows], len(ids)))
        return signed

    def read(self, keys: Sequence[str]) -> Iterator[ReadDocument]:
        """Some of the documents, in order of their keys."""
        chosen = pa.array(keys, pa.string())
        ids = pc.binary_join_element_wise("documents", chosen, "/")
        documents = self.documents.select(["_key", "facts"]).filter(pc.is_in(self.keys, value_set=chosen))
        pieces: dict[str, list[Piece]] = defaultdict(list)
        for owner, *piece in _rows_of(self.chunks, ids, ("_key", "text", "span", "symbol", "kind")):
            pieces[owner].append(Piece(*piece))
        spans: dict[str, dict[str, Sequence[int]]] = defaultdict(dict)
        for owner, key, span in _rows_of(self.funcs, ids, ("_key", "span")):
            spans[owner][key] = span
        for row in documents.sort_by("_key").to_pylist():
            key = row["_key"]
            yield ReadDocument(key, self._code(key, row["facts"], spans[key]), sorted(pieces[key]))

    def _code(self, document: str, facts: str, spans: dict[str, Sequence[int]]) -> CodeDocument | None:
        if document not in self.file_of:
            return None
        code = orjson.loads(facts)["code"]
        names = [symbol["qualified_name"] for symbol in code.get("symbols", ())]
        funcs = list(zip(func_keys(document, names), names, strict=True))
        return CodeDocument(document, self.file_of[document], code, funcs, spans)


def _rows_of(table: pa.Table, owners: pa.Array, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The key of the document and these columns of each row that one of the documents has."""
    held = table.filter(pc.is_in(table.column("document"), value_set=owners))
    documents = (owner.partition("/")[2] for owner in held.column("document").to_pylist())
    return zip(documents, *(held.column(name).to_pylist() for name in columns), strict=True)


def _join_columns(table: pa.Table, names: Sequence[str]) -> list[str]:
    """The columns of each row as one text; a null reads like no text."""
    parts: list[pa.ChunkedArray] = []
    for name in names:
        column = table.column(name)
        is_list = pa.types.is_list(column.type)
        parts += [pc.list_element(column, place) for place in (0, 1)] if is_list else [column]
    texts = [part.cast(pa.large_string()) for part in parts]
    joined = pc.binary_join_element_wise(
        *texts, pa.scalar("\x00", pa.large_string()), null_handling="replace", null_replacement="\x01"
    )
    listed: list[str] = joined.to_pylist()
    return listed
