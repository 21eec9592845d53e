"""The corpus as extraction sees it: chunks and documents in one fixed order, and what each document states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.readings.signatures import Signatures, sign_digests, sign_texts
from hades.text.arrays import Hashes, Ints, Longs
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind

_QUALIFIER = re.compile(r"^(?P<bare>.*\S)\s*\((?P<qualifier>[^()]+)\)$", re.DOTALL)
_READ = ("_key", "origin", "title", "source", "facts", "domains")
_KINDS = {str(kind): kind for kind in NameType}


@dataclass(frozen=True)
class CorpusView:
    """What `derive` reads, in the catalogue's columns; further columns are ignored and rows may come in any order.

    `chunks`: _key, document, text, span. `documents`: _key, origin, title, source, created, facts, domains. Of `facts`
    are read `names` (text, [text, kind] or {"name", "kind"}), `triples` ([subject, relation, object]), `symbols` or
    `code.symbols` ({"name", "qualified_name"}) and external `links` ({"target", "external": true}).
    """

    chunks: pa.Table
    documents: pa.Table


class Facts(NamedTuple):
    """What a source states about one document."""

    names: tuple[tuple[str, NameType | None], ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    symbols: tuple[tuple[str, str], ...] = ()  # short and qualified name
    repositories: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.names, self.triples, self.symbols, self.repositories))

    def all_names(self) -> list[str]:
        """Everything that is named here, the ends of triples among it, each once, in order."""
        named = [name for name, _ in self.names]
        if self.symbols or self.repositories or self.triples:
            named += [*(qualified for _, qualified in self.symbols), *self.repositories]
            named += [end for subject, _, target in self.triples for end in (subject, target)]
        return list(dict.fromkeys(named))


class Document(NamedTuple):
    """One document, with its title parted into name and qualifier."""

    key: str
    origin: str
    source: str
    title: str
    bare: str
    qualifier: str
    facts: Facts
    domains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """Documents sorted by key and their chunks sorted by document and place, so that no order of arrival shows."""

    documents: tuple[Document, ...]
    created: pa.Array  # beside `documents`
    chunk_keys: tuple[str, ...]
    texts: tuple[str, ...]
    document_of: Ints  # of each chunk, a row of `documents`
    begins: Longs  # where each chunk begins in its document
    rows: Signatures  # of each document, of its columns

    @cached_property
    def digests(self) -> NDArray[np.bytes_]:
        """A digest of the text of each chunk, as 32 hexadecimal digits."""
        return np.array([sha256(text.encode()).hexdigest()[:32] for text in self.texts], dtype="S32")

    @cached_property
    def text_ids(self) -> Hashes:
        """A number for the text of each chunk."""
        return sign_digests(bytes.fromhex(self.digests.tobytes().decode())).high

    @cached_property
    def chunk_ids(self) -> Signatures:
        """The signature of the key of each chunk."""
        return sign_texts(self.chunk_keys)

    @cached_property
    def document_ids(self) -> Hashes:
        """A number for the key of each document."""
        return sign_texts(one.key for one in self.documents).high

    @cached_property
    def chunk_signatures(self) -> Signatures:
        """The signature of each chunk: its key, its text, where it begins, and the columns of its document."""
        texts = sign_digests(bytes.fromhex(self.digests.tobytes().decode()))
        return self.chunk_ids.join(texts).mix(self.begins).join(self.rows.take(self.document_of.astype(np.int64)))

    @cached_property
    def document_signatures(self) -> Signatures:
        """The signature of each document with all its chunks."""
        chunks = self.chunk_signatures.add_up(self.document_of.astype(np.int64), len(self.documents))
        return self.rows.join(chunks)

    def opening_chunks(self) -> Longs:
        """The first chunk of each document, -1 where it has none."""
        documents = np.arange(len(self.documents))
        chunk = np.searchsorted(self.document_of, documents)
        held = chunk < len(self.texts)
        held[held] = self.document_of[chunk[held]] == documents[held]
        return np.where(held, chunk, -1)

    def first_chunk(self, document: Longs) -> tuple[Longs, Longs]:
        """Where the first chunk of each document begins and ends; an empty span at the start where it has none."""
        chunk = np.searchsorted(self.document_of, document)
        held = np.flatnonzero(chunk < len(self.texts))
        held = held[self.document_of[chunk[held]] == document[held]]
        begin, end = np.zeros(len(document), dtype=np.int64), np.zeros(len(document), dtype=np.int64)
        begin[held] = self.begins[chunk[held]]
        end[held] = begin[held] + np.array([len(self.texts[one]) for one in chunk[held].tolist()], dtype=np.int64)
        return begin, end


def read_corpus(view: CorpusView) -> Corpus:
    """The corpus in its fixed order; chunks of documents that are not there are left out."""
    columns = [view.documents.column(name).to_pylist() for name in _READ]
    order = sorted(range(view.documents.num_rows), key=columns[0].__getitem__)
    rows = _tell_symbols_apart([_document(*(column[index] for column in columns)) for index in order])
    place = {document.key: index for index, document in enumerate(rows)}
    keys, owners, texts = (view.chunks.column(name).to_pylist() for name in ("_key", "document", "text"))
    begins = pc.list_element(view.chunks.column("span"), 0).to_pylist()
    found = sorted(
        (place[owner], begin, key, index)
        for index, (key, document, begin) in enumerate(zip(keys, owners, begins, strict=True))
        if (owner := document.rpartition("/")[2]) in place
    )
    return Corpus(
        rows,
        pa.array(view.documents.column("created").combine_chunks()).take(pa.array(order, pa.int64())),
        tuple(row[2] for row in found),
        tuple(texts[row[3]] for row in found),
        np.array([row[0] for row in found], dtype=np.int32),
        np.array([row[1] for row in found], dtype=np.int64),
        _sign_rows(columns, view.documents.column("created")).take(np.array(order, dtype=np.int64)),
    )


def _sign_rows(columns: Sequence[Sequence[Any]], created: pa.ChunkedArray) -> Signatures:
    """The signature of each document as read, by all columns that a derived row may follow from."""
    stamps = created.cast(pa.string()).to_pylist()
    return sign_texts(map(repr, zip(*columns, stamps, strict=True)))


def name_in_file(qualified: str, path: str) -> str:
    """The name of a symbol whose qualified name several files have, such as that of a function of two `conftest.py`."""
    return f"{path}:{qualified}"


def _tell_symbols_apart(documents: Sequence[Document]) -> tuple[Document, ...]:
    """The documents, with the path before each qualified name that more than one of them states."""
    stated = Counter(name for one in documents for name in {qualified for _, qualified in one.facts.symbols})
    if not stated or stated.most_common(1)[0][1] == 1:
        return tuple(documents)
    told = []
    for one in documents:
        symbols = tuple(
            (short, name_in_file(qualified, one.origin) if stated[qualified] > 1 else qualified)
            for short, qualified in one.facts.symbols
        )
        told.append(one if symbols == one.facts.symbols else one._replace(facts=one.facts._replace(symbols=symbols)))
    return tuple(told)


def split_title(title: str) -> tuple[str, str]:
    """A title as name and qualifier: "Lothair II (king)" is Lothair II, king."""
    parted = _QUALIFIER.match(title.strip())
    return (parted["bare"], parted["qualifier"].strip()) if parted else (title.strip(), "")


def _document(
    key: str,
    origin: str | None,
    title: str | None,
    source: str | None,
    facts: str | None,
    domains: Sequence[str] | None,
) -> Document:
    shown = " ".join((title or "").split())
    bare, qualifier = (shown, "") if source == SourceKind.ARXIV else split_title(shown)
    return Document(key, origin or "", source or "", shown, bare, qualifier, _facts(facts), tuple(domains or ()))


_NOTHING = Facts()


def _facts(text: str | None) -> Facts:
    if not text or text == "{}":
        return _NOTHING
    facts = orjson.loads(text)
    code = facts.get("code") or {}
    links = facts.get("links") or ()
    return Facts(
        tuple(dict.fromkeys(map(_give, facts.get("names") or ()))),
        tuple(dict.fromkeys(map(_triple, facts.get("triples") or ()))),
        tuple(dict.fromkeys(map(_symbol, facts.get("symbols") or code.get("symbols") or ()))),
        tuple(dict.fromkeys(str(link["target"]) for link in links if link.get("external"))),
    )


def _give(name: str | list[Any] | dict[str, Any]) -> tuple[str, NameType | None]:
    if isinstance(name, str):
        return " ".join(name.split()), None
    first, kind = (name["name"], name.get("kind")) if isinstance(name, dict) else (name[0], name[1])
    return " ".join(str(first).split()), _KINDS.get(kind) if kind else None


def _triple(triple: Sequence[str]) -> tuple[str, str, str]:
    subject, relation, target = (" ".join(str(part).split()) for part in triple)
    return subject, relation, target


def _symbol(symbol: dict[str, Any]) -> tuple[str, str]:
    return str(symbol["name"]), str(symbol["qualified_name"])
