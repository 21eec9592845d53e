"""The corpus as extraction sees it: chunks and documents in one fixed order, and what each document states of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hades.ingest.entities.tokens import Ints, Longs
from schemas.catalogue import collection_named
from schemas.nodes import NameType, SourceKind

_QUALIFIER = re.compile(r"^(?P<bare>.*\S)\s*\((?P<qualifier>[^()]+)\)$", re.DOTALL)
_KINDS = {str(kind): kind for kind in NameType}


@dataclass(frozen=True)
class CorpusView:
    """What `derive` reads, in the catalogue's columns; further columns are ignored and rows may come in any order.

    `chunks`: _key, document, text, span, title. `documents`: _key, origin, title, source, created, facts. Of `facts` are
    read `names` (text, [text, kind] or {"name", "kind"}), `triples` ([subject, relation, object]), `symbols` or
    `code.symbols` ({"name", "qualified_name"}) and external `links` ({"target", "external": true}).
    """

    chunks: pa.Table
    documents: pa.Table


@dataclass(frozen=True)
class Facts:
    """What a source states about one document."""

    names: tuple[tuple[str, NameType | None], ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    symbols: tuple[tuple[str, str], ...] = ()  # short and qualified name
    repositories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """One document, with its title parted into name and qualifier."""

    key: str
    origin: str
    source: str
    title: str
    bare: str
    qualifier: str
    facts: Facts


@dataclass(frozen=True)
class Corpus:
    """Documents sorted by key and their chunks sorted by document and place, so that no order of arrival shows."""

    documents: tuple[Document, ...]
    created: pa.Array  # beside `documents`
    chunk_keys: tuple[str, ...]
    texts: tuple[str, ...]
    document_of: Ints  # of each chunk, a row of `documents`
    begins: Longs  # where each chunk begins in its document


def read_corpus(view: CorpusView) -> Corpus:
    """The corpus in its fixed order; chunks of documents that are not there are left out."""
    order = np.argsort(np.array(view.documents.column("_key").to_pylist(), dtype=object), kind="stable")
    documents = view.documents.select(["_key", "origin", "title", "source", "created", "facts"]).take(order)
    rows = tuple(_document(row) for row in documents.drop_columns(["created"]).to_pylist())
    place = {document.key: index for index, document in enumerate(rows)}
    chunks = view.chunks.select(["_key", "document", "span"]).to_pylist()
    texts = view.chunks.column("text").to_pylist()
    found = [
        (place[key], chunk["span"][0], chunk["_key"], index)
        for index, chunk in enumerate(chunks)
        if (key := chunk["document"].rpartition("/")[2]) in place
    ]
    found.sort()
    return Corpus(
        rows,
        documents.column("created").combine_chunks(),
        tuple(row[2] for row in found),
        tuple(texts[row[3]] for row in found),
        np.array([row[0] for row in found], dtype=np.int32),
        np.array([row[1] for row in found], dtype=np.int64),
    )


def split_title(title: str) -> tuple[str, str]:
    """A title as name and qualifier: "Lothair II (king)" is Lothair II, king."""
    parted = _QUALIFIER.match(title.strip())
    return (parted["bare"], parted["qualifier"].strip()) if parted else (title.strip(), "")


def empty_view() -> CorpusView:
    """A corpus of nothing, in the right columns."""
    chunks, documents = collection_named("doc_chunks"), collection_named("documents")
    assert chunks is not None and documents is not None
    return CorpusView(chunks.schema.empty_table(), documents.schema.empty_table())


def _document(row: Mapping[str, Any]) -> Document:
    title = " ".join((row["title"] or "").split())
    bare, qualifier = split_title(title)
    if row["source"] == SourceKind.ARXIV:
        bare, qualifier = title, ""
    return Document(row["_key"], row["origin"] or "", row["source"] or "", title, bare, qualifier, _facts(row["facts"]))


def _facts(text: str | None) -> Facts:
    if not text or text == "{}":
        return Facts()
    facts = json.loads(text)
    code = facts.get("code") or {}
    links = facts.get("links") or ()
    return Facts(
        tuple(sorted({_given(name) for name in facts.get("names") or ()}, key=repr)),
        tuple(sorted({_triple(triple) for triple in facts.get("triples") or ()})),
        tuple(sorted({_symbol(symbol) for symbol in facts.get("symbols") or code.get("symbols") or ()})),
        tuple(sorted({str(link["target"]) for link in links if link.get("external")})),
    )


def _given(name: str | Sequence[str | None] | Mapping[str, Any]) -> tuple[str, NameType | None]:
    if isinstance(name, str):
        return " ".join(name.split()), None
    first, kind = (name["name"], name.get("kind")) if isinstance(name, Mapping) else (name[0], name[1])
    return " ".join(str(first).split()), _KINDS.get(str(kind))


def _triple(triple: Sequence[str]) -> tuple[str, str, str]:
    subject, relation, target = (" ".join(str(part).split()) for part in triple)
    return subject, relation, target


def _symbol(symbol: Mapping[str, Any]) -> tuple[str, str]:
    return str(symbol["name"]), str(symbol["qualified_name"])
