"""Documents and chunks of a corpus in one fixed order, and what each document states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.graph import ALWAYS
from models.arrays import Ints, Longs
from schemas.nodes import NameType
from schemas.record import TIME
from schemas.sources import SourceKind

_QUALIFIER = re.compile(r"^(?P<bare>.*\S)\s*\((?P<qualifier>[^()]+)\)$", re.DOTALL)
_COLUMNS = ("_key", "origin", "title", "source", "facts", "domains")


class Facts(NamedTuple):
    """What a source states about one document."""

    names: tuple[tuple[str, NameType | None], ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    symbols: tuple[tuple[str, str], ...] = ()  # short and qualified name
    repositories: tuple[str, ...] = ()

    def all_names(self) -> list[str]:
        """Everything that is named here, the ends of triples among it, each once, in order."""
        names = [name for name, _ in self.names]
        names += [*(qualified for _, qualified in self.symbols), *self.repositories]

        for subject, _, target in self.triples:
            names += [subject, target]

        return list(dict.fromkeys(names))


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
    """Documents sorted by key and their chunks sorted by document and place, so that no order of
    arrival shows.
    """

    documents: tuple[Document, ...]
    created: pa.Array  # of each document
    chunk_keys: tuple[str, ...]
    texts: tuple[str, ...]
    document_of: Ints  # of each chunk, a row of `documents`
    begins: Longs  # where each chunk begins in its document

    @cached_property
    def opening_chunks(self) -> Longs:
        """The first chunk of each document, -1 where it has none."""
        opening = np.full(len(self.documents), -1)
        opening[self.document_of[::-1]] = np.arange(len(self.texts))[::-1]
        return opening

    @cached_property
    def dates(self) -> Longs:
        """When each document was written, in microseconds since 1970; `ALWAYS` where it does not
        say.
        """
        moments = self.created.cast(TIME).cast(pa.int64())
        dates: Longs = pc.fill_null(moments, int(ALWAYS)).to_numpy(zero_copy_only=False)
        return dates

    def opening_spans(self, document: Longs) -> tuple[Longs, Longs]:
        """Where the first chunk of each document begins and ends; an empty span at the start where
        it has none.
        """
        chunk = self.opening_chunks[document]
        begin = np.append(self.begins, 0)[chunk]

        sizes = []
        for row in chunk.tolist():
            sizes.append(len(self.texts[row]) if row >= 0 else 0)

        return begin, begin + np.array(sizes, np.int64)


def read_corpus(chunks: pa.Table, documents: pa.Table) -> Corpus:
    """The corpus in its fixed order; rows may come in any, and chunks of documents that are not
    there are left out.

    `chunks` have _key, document, text and span; `documents` _key, origin, title, source, created,
    facts and domains. Of `facts` are read `names` ([text, kind]), `triples` ([subject, relation,
    object]), `code.symbols` ({"name", "qualified_name"}) and external `links` ({"target",
    "external": true}).
    """
    table = documents.sort_by("_key")
    columns = (table[name].to_pylist() for name in _COLUMNS)
    ordered = _separate_symbols(list(map(_read_document, *columns)))
    keys = pa.array([document.key for document in ordered], pa.string())
    owners = pc.replace_substring_regex(
        chunks["document"],
        "^.*/",
        "",
    )
    chunks = pa.table(
        {
            "document": pc.index_in(owners, value_set=keys),
            "begin": pc.list_element(chunks["span"], 0),
            "_key": chunks["_key"],
            "text": chunks["text"],
        }
    )
    chunks = chunks.filter(pc.is_valid(chunks["document"]))
    chunks = chunks.sort_by([(name, "ascending") for name in ("document", "begin", "_key")])
    return Corpus(
        documents=tuple(ordered),
        created=table["created"].combine_chunks(),
        chunk_keys=tuple(chunks["_key"].to_pylist()),
        texts=tuple(chunks["text"].to_pylist()),
        document_of=chunks["document"].to_numpy().astype(np.int32),
        begins=chunks["begin"].to_numpy().astype(np.int64),
    )


def name_in_file(qualified: str, path: str) -> str:
    """The name of a symbol whose qualified name several files have, such as that of a function of
    two `conftest.py`.
    """
    return f"{path}:{qualified}"


def split_title(title: str) -> tuple[str, str]:
    """A title as name and qualifier: "Lothair II (king)" is Lothair II, king."""
    parted = _QUALIFIER.match(title.strip())
    if parted:
        return (parted["bare"], parted["qualifier"].strip())

    return (title.strip(), "")


def _separate_symbols(documents: list[Document]) -> list[Document]:
    """The documents with the path before each qualified name that more than one of them states."""
    stated: Counter[str] = Counter()
    for document in documents:
        stated.update({qualified for _, qualified in document.facts.symbols})

    for row, document in enumerate(documents):
        symbols = []
        for short, name in document.facts.symbols:
            is_shared = stated[name] > 1
            symbols.append((short, name_in_file(name, document.origin) if is_shared else name))

        facts = document.facts._replace(symbols=tuple(symbols))
        documents[row] = document._replace(facts=facts)

    return documents


def _read_document(
    key: str,
    origin: str,
    title: str,
    source: str,
    facts: str,
    domains: Sequence[str],
) -> Document:
    shown = " ".join(title.split())
    bare, qualifier = (shown, "") if source == SourceKind.ARXIV else split_title(shown)
    return Document(
        key=key,
        origin=origin,
        source=source,
        title=shown,
        bare=bare,
        qualifier=qualifier,
        facts=_read_facts(facts),
        domains=tuple(domains),
    )


def _read_facts(text: str) -> Facts:
    facts = orjson.loads(text)
    names = []
    for name, kind in facts.get("names") or ():
        names.append((" ".join(name.split()), NameType(kind) if kind else None))

    triples: list[tuple[str, str, str]] = []
    for triple in facts.get("triples") or ():
        subject, relation, target = (" ".join(str(part).split()) for part in triple)
        triples.append((subject, relation, target))

    stated = (facts.get("code") or {}).get("symbols") or ()
    symbols = []
    for symbol in stated:
        symbols.append((str(symbol["name"]), str(symbol["qualified_name"])))

    links = facts.get("links") or ()
    repositories = []
    for link in links:
        if link.get("external"):
            repositories.append(str(link["target"]))

    return Facts(
        names=tuple(dict.fromkeys(names)),
        triples=tuple(dict.fromkeys(triples)),
        symbols=tuple(dict.fromkeys(symbols)),
        repositories=tuple(dict.fromkeys(repositories)),
    )
