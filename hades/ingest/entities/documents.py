"""The documents of a corpus with what each states, parsed when it is asked for: a small change asks for few of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.readings.signatures import Signatures, sign_texts
from hades.text.arrays import Longs
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind

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
