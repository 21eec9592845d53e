"""Code documents as edges are made from them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import Signatures, sign_texts
from hades.ingest.entities.describe import MAX_CHARS
from hades.ingest.nodes import func_keys
from hades.ingest.stated_edges import find_symbol
from hades.text.sentences import first_sentence
from schemas.ids import node_id

# One code file as edges are made from it: what its facts say, and what it says that other files may ask for.


# A question is a word for its kind and a name. Answers are plain JSON; several files may answer one question.
Answers = dict[str, list[Any]]
MODULE = "module "  # a module -> its file
SYMBOL = "symbol "  # a qualified name -> keys of symbols
ALIAS = "alias "  # an imported name within a module -> what it stands for
BASES = "bases "  # a class -> its module and its bases, each with what the import of its first part stands for
NAMED = "named "  # a last name -> 1 where any symbol or import has it
SHORT = "short "  # the last one or two parts of a name -> qualified names
TESTED = "tested "  # the last part of a module, in lower case -> files that a test may be named after
IN_TEST = "in test "  # a symbol -> 1 where it belongs to a test
DEFINES = "defines "  # a document -> its file and, by last name, its symbols
_TEST_PATH = re.compile(r"(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$")


@dataclass(frozen=True)
class CodeDocument:
    """A code file: its document key, file key, what its facts say, and its functions in order of appearance."""

    document: str
    file: str
    code: dict[str, Any]
    funcs: Sequence[tuple[str, str]]  # key, qualified name
    spans: Mapping[str, Sequence[int]]  # of each function, by key

    @property
    def module(self) -> str:
        """The name it is imported by."""
        return str(self.code.get("module", ""))

    @cached_property
    def is_test(self) -> bool:
        """Whether its path is that of a test."""
        return _TEST_PATH.search(str(self.code.get("path", ""))) is not None

    @cached_property
    def scope(self) -> dict[str, str]:
        """What imported names stand for: `from a.b import c as d` makes d mean a.b.c."""
        scope: dict[str, str] = {}
        for module, name, alias, *_ in self.code.get("imports", ()):
            if name is None:
                scope[alias or module.partition(".")[0]] = module if alias else module.partition(".")[0]
            elif name != "*":
                scope[alias or name] = f"{module}.{name}"
        return scope

    def symbols(self) -> Iterable[tuple[str, dict[str, Any]]]:
        """Key and facts of each symbol."""
        for (key, _), symbol in zip(self.funcs, self.code.get("symbols", ()), strict=False):
            yield key, symbol

    def answers(self) -> Answers:
        """What it answers to the questions of other files."""
        told: Answers = defaultdict(list)
        defined: dict[str, list[str]] = defaultdict(list)
        told[MODULE + self.module].append(self.file)
        for key, symbol in self.symbols():
            qualified = symbol["qualified_name"]
            told[SYMBOL + qualified].append(key)
            defined[qualified.rpartition(".")[2]].append(key)
            if symbol.get("bases"):
                bases = [[base, self.scope.get(base.partition(".")[0])] for base in symbol["bases"]]
                told[BASES + qualified].append([self.module, bases])
            for short in _short_names(qualified):
                told[SHORT + short].append(qualified)
            if self.is_test:
                told[IN_TEST + key] = [1]
        for alias, target in self.scope.items() if self.module else ():
            told[f"{ALIAS}{self.module}.{alias}"].append(target)
        for last in (*defined, *(self.scope if self.module else ())):
            told[NAMED + last.rpartition(".")[2]] = [1]
        if self.module and not self.is_test:
            told[TESTED + self.module.rpartition(".")[2].lower()].append(self.file)
        told[DEFINES + self.document].append([self.file, dict(defined)])
        return dict(told)


def _short_names(qualified: str) -> Iterable[str]:
    """The last one and the last two parts of a qualified name that has more."""
    parts = qualified.split(".")
    return (".".join(parts[-length:]) for length in (1, 2) if len(parts) > length)


# Documents, chunks, files and symbols by document: only those that are asked for are read, all have a signature.


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


# What the reader of names sees of code: docstrings and comments. The rest is blanked, so that positions stay.


_VISIBLE = re.compile(r"\S")
_BLANKED = bytes(byte if chr(byte).isspace() else 32 for byte in range(128)) + bytes(128)
_PROSE = re.compile(r'"prose":(\[(?:\[[0-9]+,[0-9]+\],?)*\])')
_MARK = '"prose":['  # only facts of code hold it; documents without it are not parsed


def blank_code(chunks: pa.Table, documents: pa.Table) -> pa.Table:
    """The same chunks with code replaced by spaces; chunks of documents that are prose stay as they are."""
    prose = _prose_of(documents)
    if not prose:
        return chunks
    starts = {owner: [start for start, _ in spans] for owner, spans in prose.items()}
    texts = chunks.column("text").to_pylist()
    owners = chunks.column("document").to_pylist()
    begins = pc.list_element(chunks.column("span"), 0).to_pylist()
    for row, (owner, begin) in enumerate(zip(owners, begins, strict=True)):
        spans = prose.get(owner)
        if spans is not None:
            first = max(0, bisect_left(starts[owner], begin) - 1)
            texts[row] = _blank(texts[row], begin, islice(spans, first, None))
    index = chunks.schema.get_field_index("text")
    return chunks.set_column(index, "text", pa.array(texts, chunks.schema.field("text").type))


def _prose_of(documents: pa.Table) -> dict[str, list[list[int]]]:
    """The spans of prose of each document that has code, by its id."""
    found: dict[str, list[list[int]]] = {}
    marked = documents.select(["_key", "facts"]).filter(pc.match_substring(documents.column("facts"), _MARK))
    for key, text in zip(marked.column("_key").to_pylist(), marked.column("facts").to_pylist(), strict=True):
        spans = _read_prose(text)
        if spans is not None:
            found[node_id("documents", key)] = spans
    return found


def _read_prose(facts: str) -> list[list[int]] | None:
    """The spans that facts of code or of a commit state.

    Facts of a large file take long to parse, so only the list itself is, where the mark stands once. Inside a text its
    quotes would be escaped, so it is a name. Facts of another form are parsed whole.
    """
    is_code = facts.startswith('{"code":{') and '"commit":{' not in facts
    if is_code and facts.count(_MARK) == 1 and (listed := _PROSE.search(facts)):
        spans: list[list[int]] = orjson.loads(listed.group(1))
        return spans
    told = orjson.loads(facts)
    code: dict[str, Any] = told.get("code") or told.get("commit") or {}
    return code.get("prose")


def _blank(text: str, begin: int, spans: Iterable[Sequence[int]]) -> str:
    """The text of a chunk that begins at `begin` with all but the spans blanked; they are in order."""
    parts: list[str] = []
    place, end = begin, begin + len(text)
    for start, stop in spans:
        if start >= end:
            break
        start, stop = max(start, place), min(stop, end)
        if start < stop:
            parts += [_blanks(text[place - begin : start - begin]), text[start - begin : stop - begin]]
            place = stop
    parts.append(_blanks(text[place - begin :]))
    return "".join(parts)


def _blanks(text: str) -> str:
    """The text with every visible character replaced by a space; ASCII takes a table of bytes, which is faster."""
    return text.encode().translate(_BLANKED).decode() if text.isascii() else _VISIBLE.sub(" ", text)


# Summaries of code symbols: the first sentence of their documentation, which says more than a text that names them.


def with_docstrings(
    entities: pa.Table, funcs: pa.Table, symbols: Mapping[str, str], paths: Mapping[str, str]
) -> pa.Table:
    """The entities, those of documented symbols with a summary from their documentation.

    `funcs` have qualified_name, document and docstring; `symbols` are entity ids by name, `paths` those of documents.
    """
    said: dict[str, str] = {}
    columns = (funcs.column(name).to_pylist() for name in ("qualified_name", "document", "docstring"))
    for name, document, docstring in zip(*columns, strict=True):
        entity = find_symbol(symbols, name, paths.get(document.partition("/")[2], "")) if docstring else None
        if entity and (summary := summarise_docstring(docstring)):
            said.setdefault(entity.partition("/")[2], summary)
    if not said:
        return entities
    kept = zip(entities.column("_key").to_pylist(), entities.column("summary").to_pylist(), strict=True)
    place = entities.schema.get_field_index("summary")
    return entities.set_column(place, "summary", pa.array([said.get(key, own) for key, own in kept], pa.string()))


def summarise_docstring(docstring: str) -> str:
    """The first sentence of the first paragraph, on one line; empty when it is longer than a summary may be."""
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    said = first_sentence(paragraph) if ". " in paragraph else paragraph
    return said if len(said) <= MAX_CHARS else ""
