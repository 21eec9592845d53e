"""Chunks and documents in one order; keys and signatures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, overload

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.text.words import Flags, Hashes, Ints, Longs
from schemas.ids import entity_key
from schemas.nodes import NameType
from schemas.sources import SourceKind

# Signatures of 128 bits, made by array steps: two things with the same signature are taken for the same.


_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))


@dataclass(frozen=True)
class Signatures:
    """What each thing is, as two independent numbers of 64 bits each."""

    high: Hashes
    low: Hashes

    def __len__(self) -> int:
        return len(self.high)

    def mix(self, values: Longs | Hashes) -> Signatures:
        """Signatures of these things together with a number each."""
        number = values.astype(np.uint64)
        return self.join(Signatures(number, number))

    def join(self, other: Signatures) -> Signatures:
        """Signatures of these things together with others beside them."""
        return Signatures(
            _scatter(_scatter(other.high + _SEEDS[0]) ^ self.high), _scatter(_scatter(other.low + _SEEDS[1]) ^ self.low)
        )

    def take(self, rows: Longs) -> Signatures:
        """Some of the signatures, in the order given."""
        return Signatures(self.high[rows], self.low[rows])

    def add_up(self, group: Longs, n_groups: int) -> Signatures:
        """One signature for each group of things, whatever their order; zero for a group without any."""
        sums = [np.zeros(n_groups, dtype=np.uint64) for _ in range(2)]
        for total, half in zip(sums, (self.high, self.low), strict=True):
            np.add.at(total, group, half)
        return Signatures(*sums)

    def equal(self, other: Signatures) -> Flags:
        """Which signatures are those beside them."""
        same: Flags = (self.high == other.high) & (self.low == other.low)
        return same


def join_all(parts: Iterable[Signatures]) -> Signatures:
    """The signatures of all parts, one part after the other."""
    listed = list(parts)
    return Signatures(np.concatenate([one.high for one in listed]), np.concatenate([one.low for one in listed]))


def sign_texts(texts: Iterable[str]) -> Signatures:
    """The signature of each text."""
    return sign_digests(
        b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    )


def sign_digests(digests: bytes) -> Signatures:
    """The signatures that digests of 16 bytes each stand for."""
    numbers = np.frombuffer(digests, dtype=np.uint64)
    return Signatures(numbers[0::2], numbers[1::2])


def sign_numbers(values: Longs | Hashes) -> Signatures:
    """The signature of each number."""
    nothing = np.zeros(len(values), dtype=np.uint64)
    return Signatures(nothing, nothing).mix(values)


def _scatter(values: Hashes) -> Hashes:
    """Numbers whose bits depend on all bits of those given (the finaliser of splitmix64)."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


# The documents of a corpus with what each states, parsed when it is asked for: a small change asks for few of them.


_QUALIFIER = re.compile(r"^(?P<bare>.*\S)\s*\((?P<qualifier>[^()]+)\)$", re.DOTALL)
_READ = ("_key", "origin", "title", "source", "facts", "domains")
_TEXTS = ("_key", "origin", "title", "source", "facts", "created")
_KINDS = {str(kind): kind for kind in NameType}
_SYMBOLS, _ESCAPE = '"symbols"', "\\u00"  # facts without either state no symbol


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


class Documents(Sequence[Document]):
    """All documents of a corpus in the order of their keys."""

    def __init__(self, table: pa.Table) -> None:
        """From columns of the catalogue: _key, origin, title, source, created, facts and domains, in any order."""
        self._table = table.take(pc.sort_indices(table.column("_key"))).combine_chunks()
        self.keys: list[str] = self._table.column("_key").to_pylist()
        self.created: pa.Array = self._table.column("created").combine_chunks()
        self._parsed: dict[int, Document] = {}
        facts = self._table.column("facts").cast(pa.string())  # a table without rows may not say what it would hold
        may_hold = pc.or_(pc.match_substring(facts, _SYMBOLS), pc.match_substring(facts, _ESCAPE))
        self._tell_symbols_apart(np.flatnonzero(pc.fill_null(may_hold, False).to_numpy()))

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, row: int) -> Document: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Document]: ...
    def __getitem__(self, row: int | slice) -> Document | Sequence[Document]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        if row not in self._parsed:
            self.parse(np.array([row], dtype=np.int64))
        return self._parsed[row]

    def parse(self, rows: Longs) -> None:
        """Parse these documents in one go."""
        wanted = [row for row in rows.tolist() if row not in self._parsed]
        some = self._table.take(pa.array(wanted, pa.int64()))
        columns = (some.column(name).to_pylist() for name in _READ)
        self._parsed.update(zip(wanted, map(_document, *columns), strict=True))

    def domains(self, rows: Longs) -> list[tuple[str, ...]]:
        """The domains of these documents."""
        return [tuple(one or ()) for one in self._table.column("domains").take(pa.array(rows)).to_pylist()]

    def sign(self) -> Signatures:
        """The signature of each document, by all columns that a derived row may follow from.

        Lengths stand before the texts, so that no two documents are joined to one text.
        """
        texts = [self._table.column(name).cast(pa.string()) for name in _TEXTS]
        texts.append(pa.array(map(repr, self._table.column("domains").to_pylist()), pa.string()))
        lengths = (pc.fill_null(pc.binary_length(one), -1).cast(pa.string()) for one in texts)
        joined = pc.binary_join_element_wise(*lengths, *texts, " ", null_handling="replace").to_pylist()
        for row, told in self._sign_symbols().items():
            joined[row] += told
        return sign_texts(joined)

    def _sign_symbols(self) -> dict[int, str]:
        """The symbols as they are told apart, which follows from other documents too, of documents that have any."""
        return {row: repr(one.facts.symbols) for row, one in self._parsed.items() if one.facts.symbols}

    def _tell_symbols_apart(self, rows: Longs) -> None:
        """Put the path before each qualified name that more than one document states; `rows` may state symbols."""
        if not len(rows):
            return
        self.parse(rows)
        documents = {row: self._parsed[row] for row in rows.tolist()}
        stated = Counter(name for one in documents.values() for name in {name for _, name in one.facts.symbols})
        if not stated or stated.most_common(1)[0][1] == 1:
            return
        for row, one in documents.items():
            symbols = tuple(
                (short, name_in_file(qualified, one.origin) if stated[qualified] > 1 else qualified)
                for short, qualified in one.facts.symbols
            )
            self._parsed[row] = one._replace(facts=one.facts._replace(symbols=symbols))


def name_in_file(qualified: str, path: str) -> str:
    """The name of a symbol whose qualified name several files have, such as that of a function of two `conftest.py`."""
    return f"{path}:{qualified}"


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


# The corpus as extraction sees it: chunks and documents in one fixed order, and what each document states.


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


# Keys by the hundred thousand: the same letters as `schemas.ids` gives one by one, in a fraction of the time. Tests
# hold every function here against the one it speeds up.


_LONGEST_SLUG = 80
_KEY_LETTERS = 25  # of an edge
_PLAIN = {code: chr(code) if chr(code).isalnum() else " " for code in range(128)}


def entity_keys(names: Iterable[tuple[str, str, str]]) -> list[str]:
    """`schemas.ids.entity_key` of every (name, type, qualifier)."""
    return [
        _ascii_key(name, kind, qualifier) if name.isascii() else entity_key(name, kind, qualifier)
        for name, kind, qualifier in names
    ]


def _ascii_key(name: str, kind: str, qualifier: str) -> str:
    lower = name.lower()
    words = lower.split(" ")
    if all(map(str.isalnum, words)):  # letters and digits with one space between words, as most names are
        folded = "_".join(words)
        exact = len(folded) <= _LONGEST_SLUG
    else:
        folded = "_".join(lower.translate(_PLAIN).split())
        exact = "_" not in name and folded == lower.replace(" ", "_") and len(folded) <= _LONGEST_SLUG
    if exact and folded and kind == "concept" and not qualifier:
        return folded
    framed = f"{len(lower)}:{lower}{len(kind)}:{kind}{len(qualifier)}:{qualifier}"
    digest = blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=13).hexdigest()
    return f"{folded[:_LONGEST_SLUG].strip('_') or 'e'}-{digest[:10]}"


@dataclass(frozen=True)
class NodeIds:
    """`_id`s by number, and the signature of each."""

    column: pa.StringArray
    signatures: Signatures

    def __len__(self) -> int:
        return len(self.column)


def find_keys(
    sources: NodeIds, source: Longs, relation: str, targets: NodeIds, target: Longs, labels: Sequence[str] | None = None
) -> pa.StringArray:
    """`edge_keys` of edges between numbered ids."""
    head, tail = np.unique(source, return_inverse=True), np.unique(target, return_inverse=True)
    framed = [
        frame(ids.column.take(pa.array(rows)).to_pylist()) for ids, rows in ((sources, head[0]), (targets, tail[0]))
    ]
    return edge_keys(framed[0], head[1], relation, framed[1], tail[1], labels)


def edge_keys(
    sources: Sequence[bytes],
    source: Longs,
    relation: str,
    targets: Sequence[bytes],
    target: Longs,
    labels: Sequence[str] | None = None,
) -> pa.Array:
    """`schemas.ids.edge_key` of every edge: the same letters (a test holds them equal) in a fraction of the time.

    `source` and `target` number the framed `_id`s; an empty label is no label.
    """
    middle = frame([relation])[0]
    heads = [head + middle for head in sources]
    pairs = zip(map(heads.__getitem__, source.tolist()), map(targets.__getitem__, target.tolist()), strict=True)
    if labels is None:
        digests = [blake2b(head + tail, digest_size=13).digest() for head, tail in pairs]
    else:
        ends = [end if label else b"" for label, end in zip(labels, frame(labels), strict=True)]
        digests = [
            blake2b(head + tail + end, digest_size=13).digest() for (head, tail), end in zip(pairs, ends, strict=True)
        ]
    letters = np.frombuffer(b"".join(digests).hex().encode(), dtype=np.uint8).reshape(-1, 26)[:, :_KEY_LETTERS]
    bounds = np.arange(0, letters.size + 1, _KEY_LETTERS, dtype=np.int32)
    buffers = (pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(letters)))
    return pa.StringArray.from_buffers(len(digests), *buffers)


def frame(parts: Sequence[str]) -> list[bytes]:
    """Each text with its length before it, as the parts of an edge's key are joined."""
    return [f"{len(part)}:{part}".encode("utf-8", "surrogatepass") for part in parts]
