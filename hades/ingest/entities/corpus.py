"""The corpus as extraction sees it: chunks and documents in one fixed order, and what each document states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.entities.documents import Documents
from hades.ingest.readings.signatures import Signatures, sign_digests, sign_texts
from hades.text.arrays import Hashes, Ints, Longs


@dataclass(frozen=True)
class CorpusView:
    """What `derive` reads, in the catalogue's columns; further columns are ignored and rows may come in any order.

    `chunks`: _key, document, text, span. `documents`: _key, origin, title, source, created, facts, domains. Of `facts`
    are read `names` (text, [text, kind] or {"name", "kind"}), `triples` ([subject, relation, object]), `symbols` or
    `code.symbols` ({"name", "qualified_name"}) and external `links` ({"target", "external": true}).
    """

    chunks: pa.Table
    documents: pa.Table


@dataclass(frozen=True)
class Corpus:
    """Documents sorted by key and their chunks sorted by document and place, so that no order of arrival shows."""

    documents: Documents
    chunk_keys: tuple[str, ...]
    texts: tuple[str, ...]
    document_of: Ints  # of each chunk, a row of `documents`
    begins: Longs  # where each chunk begins in its document
    rows: Signatures  # of each document, of its columns

    @cached_property
    def digests(self) -> NDArray[np.bytes_]:
        """A digest of the text of each chunk, as 32 hexadecimal digits."""
        return np.array([blake2b(text.encode(), digest_size=16).hexdigest() for text in self.texts], dtype="S32")

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
        return sign_texts(self.documents.keys).high

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
    documents = Documents(view.documents)
    owners = pc.replace_substring_regex(view.chunks.column("document"), "^.*/", "")
    chunks = pa.table(
        {
            "document": pc.index_in(owners, value_set=pa.array(documents.keys, pa.string())),
            "begin": pc.list_element(view.chunks.column("span"), 0),
            "_key": view.chunks.column("_key"),
            "text": view.chunks.column("text"),
        }
    )
    chunks = chunks.filter(pc.is_valid(chunks.column("document")))
    order = pc.sort_indices(chunks, [(name, "ascending") for name in ("document", "begin", "_key")])
    chunks = chunks.take(order)
    return Corpus(
        documents,
        tuple(chunks.column("_key").to_pylist()),
        tuple(chunks.column("text").to_pylist()),
        chunks.column("document").to_numpy().astype(np.int32),
        chunks.column("begin").to_numpy().astype(np.int64),
        documents.sign(),
    )
