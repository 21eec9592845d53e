"""Every edge of code, history and documentation, and what they say of the entities of symbols."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, combinations

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code_graph.corpus import CodeDocument, Piece, ReadDocument, read_documents
from hades.ingest.code_graph.names import CodeNames
from hades.ingest.entities.tables import edge_columns, edge_row, fill, values_of
from hades.ingest.nodes import document_key
from hades.ingest.stated_edges import find_symbol
from hades.ports.store import Row
from schemas.catalogue import columns_schema
from schemas.edges import MentionType
from schemas.ids import key_of, node_id
from schemas.nodes import ChunkKind, CodeEdgeType, RelationType
from schemas.sources import SourceKind

CODE_COLLECTIONS = ("contains", "imports", "chunk_code_edges")
_COLUMNS = ("_key", "_from", "_to", "type", "count", "weight", "provenance", "valid_from")


@dataclass(frozen=True)
class CodeDerivation:
    """What follows from code: the edge collections, and what relations between symbols are made
    from.
    """

    tables: dict[str, pa.Table]
    funcs: pa.Table  # _key, qualified_name, document and span, in order of the keys
    paths: dict[str, str]  # of each document


def derive_code(
    documents: pa.Table,
    chunks: pa.Table,
    funcs: pa.Table,
    files: pa.Table,
) -> CodeDerivation:
    """The collections contains, imports and chunk_code_edges as they should be; rows may come in
    any order.

    `chunks` have _key, document, text, span, symbol and kind; `documents` _key, origin, created,
    length and facts; `funcs` _key, qualified_name, document and span; `files` _key, document and
    path.
    """
    if not files.num_rows:  # every edge of code ends at a file or a symbol
        documents = documents.slice(0, 0)
        chunks = chunks.slice(0, 0)

    file_of: dict[str, str] = {}
    paths: dict[str, str] = {}
    for document_id, file, path in values_of(files, "document", "_key", "path"):
        file_of[key_of(document_id)] = file
        paths[key_of(document_id)] = path

    corpus = list(read_documents(documents, chunks, funcs, file_of))
    first_chunk: dict[str, str] = {}
    for document in corpus:
        if document.pieces:
            opening = min(document.pieces, key=lambda piece: (piece.span[0], piece.key))
            first_chunk[document.key] = opening.key

    commits = commit_rows(documents, first_chunk)
    commit_of = {}
    for commit in commits:
        commit_of[commit.document] = commit

    names = CodeNames(document.code for document in corpus if document.code)
    rows: dict[str, list[Row]] = {name: [] for name in CODE_COLLECTIONS}
    for document in corpus:
        for name, edges in _edges_of(
            document,
            commit_of.get(document.key),
            names,
        ).items():
            rows[name] += edges

    rows["imports"] += together_edges(commits, file_of)
    tables = {
        name: pa.Table.from_pylist(
            edges,
            schema=columns_schema(name, _COLUMNS),
        ).sort_by("_key")
        for name, edges in rows.items()
    }
    return CodeDerivation(tables, funcs.sort_by("_key"), paths)


def _edges_of(
    document: ReadDocument,
    commit: CommitRow | None,
    names: CodeNames,
) -> dict[str, list[Row]]:
    """All edges that one document states, by collection."""
    code = document.code
    inside = symbol_at(code) if code else None
    rows = documentation_edges(
        document.key,
        document.pieces,
        names,
    )

    for piece in document.pieces:
        # A unit of a function or class belongs to the innermost around its last character.
        if inside and piece.symbol:
            func = inside(piece.span[1] - 1)
        else:
            func = None

        if func:
            chunk = node_id("doc_chunks", piece.key)
            symbol = node_id("funcs", func)
            place = (document.key, piece.span)
            rows.append(
                code_edge(
                    chunk,
                    symbol,
                    CodeEdgeType.DESCRIBES,
                    place,
                )
            )

    return {
        "contains": contains_edges(code) if code else [],
        "imports": import_edges(code, names) if code else [],
        "chunk_code_edges": [*rows, *(touched_edges(commit, names) if commit else ())],
    }


_Ends = tuple[str, str, CodeEdgeType]  # ids of both ends, and the kind
_Place = tuple[str, Sequence[int]]  # document key and span
_TEST_NAME = re.compile(r"^test_|_test$|^test(?=[A-Z])|\.(?:test|spec)$|Test$")


def contains_edges(document: CodeDocument) -> list[Row]:
    """File to each of its symbols, class to each of its members."""
    rows = []
    keys = {qualified: key for key, qualified in reversed(document.funcs)}

    for key, qualified in document.funcs:
        place = _place(document, key)
        symbol = node_id("funcs", key)
        file = node_id("files", document.file)
        rows.append(
            code_edge(
                file,
                symbol,
                CodeEdgeType.CONTAINS,
                place,
            )
        )
        owner = keys.get(qualified.rpartition(".")[0])

        if owner and owner != key:
            rows.append(
                code_edge(
                    node_id("funcs", owner),
                    symbol,
                    CodeEdgeType.CONTAINS,
                    place,
                )
            )

    return rows


def import_edges(document: CodeDocument, names: CodeNames) -> list[Row]:
    """Module to module; symbol to what it imports, calls, inherits from or overrides; test to what
    it tests.
    """
    edges = list(_all_edges(document, names))
    counts = Counter(ends for ends, _ in edges)
    first_places = dict(reversed(edges))
    return [code_edge(*ends, first_places[ends], count) for ends, count in counts.items()]


def symbol_at(document: CodeDocument) -> Callable[[int], str | None]:
    """The key of the innermost symbol around a character."""
    symbol_spans = sorted((span[0], -span[1], key) for key, span in document.spans.items())

    def find(position: int) -> str | None:
        begun = bisect_right(symbol_spans, (position, 1, ""))
        for _, end, key in reversed(symbol_spans[:begun]):
            if position < -end:
                return key

        return None

    return find


def code_edge(
    tail: str,
    head: str,
    kind: CodeEdgeType,
    place: _Place,
    count: int = 1,
) -> Row:
    """One row between two ids; `place` is the document key and the span it was read in."""
    document, span = place
    provenance = {
        "doc": node_id("documents", document),
        "span": list(span),
    }
    return edge_row(tail, kind, head) | {
        "count": count,
        "provenance": provenance,
    }


def _all_edges(
    document: CodeDocument,
    names: CodeNames,
) -> Iterator[tuple[_Ends, _Place]]:
    file = node_id("files", document.file)
    for module, name, _, _, *span in document.code.get("imports", ()):
        imported = names.file_of(module, name)
        if imported is not None and imported != document.file:
            ends = (file, node_id("files", imported), CodeEdgeType.IMPORTS)
            yield ends, (document.document, span)

    for key, symbol in document.symbols():
        yield from _call_edges(key, symbol, document, names)
        yield from _class_edges(key, symbol, document, names)

    name = document.module.rpartition(".")[2]
    if document.is_test and _TEST_NAME.search(name):  # `test_reader` tests the one file `reader`
        tested = names.tested_file(_TEST_NAME.sub("", name).lower())
        if tested is not None:
            ends = (file, node_id("files", tested), CodeEdgeType.TESTS)
            yield ends, (document.document, [0, 0])


def _call_edges(
    key: str,
    symbol: Row,
    document: CodeDocument,
    names: CodeNames,
) -> Iterator[tuple[_Ends, _Place]]:
    """From a symbol to what it calls, imports by a call, and tests."""
    tail = node_id("funcs", key)
    for call, *span in symbol["calls"]:
        called = names.resolve(
            call,
            symbol["qualified_name"],
            document,
        )
        if called is None or called == key:
            continue

        head = node_id("funcs", called)
        place = (document.document, span)
        yield (tail, head, CodeEdgeType.CALLS), place

        if call.partition(".")[0] in document.scope:
            yield (tail, head, CodeEdgeType.IMPORTS), place

        is_elsewhere = called not in document.spans and called not in names.in_tests
        if document.is_test and is_elsewhere:
            yield (tail, head, CodeEdgeType.TESTS), place


def _class_edges(
    key: str,
    symbol: Row,
    document: CodeDocument,
    names: CodeNames,
) -> Iterator[tuple[_Ends, _Place]]:
    """From a class to its bases, and from a method to the one it overrides."""
    tail = node_id("funcs", key)
    place = _place(document, key)
    qualified = symbol["qualified_name"]

    for base in symbol.get("bases", ()):
        parent = names.resolve(base, qualified, document)
        if parent is not None and parent != key:
            yield (tail, node_id("funcs", parent), CodeEdgeType.INHERITS), place

    if symbol.get("kind") == "method":
        overridden = _find_overridden(key, qualified, names)
        if overridden is not None:
            yield (tail, node_id("funcs", overridden), CodeEdgeType.OVERRIDES), place


def _find_overridden(
    key: str,
    qualified: str,
    names: CodeNames,
) -> str | None:
    """The nearest method of the same name in a base class."""
    owner, _, method = qualified.rpartition(".")
    for base in names.ancestors(owner):
        overridden = names.find(f"{base}.{method}")
        if overridden not in (None, key):
            return overridden

    return None


def _place(document: CodeDocument, key: str) -> _Place:
    return document.document, document.spans[key]


# Edges from history: a commit touched files and symbols; files that change together, recent commits
# counting more.
COMMIT_ORIGIN = "commit:"
HALF_LIFE_DAYS = 365.0  # a commit of a year ago counts half
MAX_FILES_TOGETHER = 20  # a commit that touches more says little about any two of them
TOGETHER_PER_FILE = 10
_LEAST_TIMES = 2
_DAY = 86_400.0


@dataclass(frozen=True)
class CommitRow:
    """A commit in the store: its document and first passage, its moment, and what its facts say it
    touched.
    """

    document: str
    chunk: str
    length: int
    moment: datetime
    # Document keys of files, some of them gone; names of definitions.
    touched: Sequence[tuple[str, Sequence[str]]]


def commit_rows(
    documents: pa.Table,
    first_chunk: Mapping[str, str],
) -> list[CommitRow]:
    """The commits among the documents, by their moment; `first_chunk` is that of each document."""
    rows = []
    columns = ("_key", "origin", "created", "length", "facts")

    for key, origin, moment, length, facts in values_of(documents, *columns):
        if origin.startswith(COMMIT_ORIGIN) and moment is not None and key in first_chunk:
            stated = orjson.loads(facts)["commit"]
            touched = []
            for path, names in stated["files"]:
                file = document_key(
                    SourceKind.WORKSPACE,
                    path,
                    stated["corpus"],
                )
                touched.append((file, names))

            rows.append(
                CommitRow(
                    key,
                    first_chunk[key],
                    length,
                    moment,
                    touched,
                )
            )

    return sorted(rows, key=lambda row: (row.moment, row.document))


def touched_edges(commit: CommitRow, names: CodeNames) -> list[Row]:
    """From the first passage of a commit to each file it touched and to each symbol whose
    definition it changed.

    Names are those of the time; one that the file has several of today names none.
    """
    rows: dict[str, Row] = {}
    passage = node_id("doc_chunks", commit.chunk)
    message = (commit.document, [0, commit.length])

    for document, changed in commit.touched:
        defined = names.definitions.get(document)
        if defined is None:
            continue

        file, symbols = defined
        definitions = [symbols.get(name, []) for name in changed]
        heads = [node_id("files", file)]
        heads += [node_id("funcs", keys[0]) for keys in definitions if len(keys) == 1]

        for head in heads:
            row = code_edge(
                passage,
                head,
                CodeEdgeType.TOUCHED,
                message,
            )
            rows[row["_key"]] = {**row, "valid_from": commit.moment}

    return list(rows.values())


def together_edges(
    commits: Sequence[CommitRow],
    files: Mapping[str, str],
) -> list[Row]:
    """Pairs of files that at least two commits changed together, the strongest of each file.

    The weight is 1 - exp(-s), where s sums 2^(-age / half-life) / (files of the commit - 1). Age
    counts from the newest commit. `files`: document key -> file key.
    """
    sums: dict[tuple[str, str], float] = defaultdict(float)
    first: dict[tuple[str, str], CommitRow] = {}
    times: dict[tuple[str, str], int] = defaultdict(int)

    for commit in commits:
        together = sorted({files[document] for document, _ in commit.touched if document in files})
        if not 2 <= len(together) <= MAX_FILES_TOGETHER:
            continue

        age = (commits[-1].moment - commit.moment).total_seconds() / _DAY
        share = 2.0 ** (-age / HALF_LIFE_DAYS) / (len(together) - 1)
        for pair in combinations(together, 2):
            sums[pair] += share
            times[pair] += 1
            first.setdefault(pair, commit)

    rows = []
    for pair in _strongest(sums, times):
        place = (first[pair].document, [0, first[pair].length])
        tail, head = (node_id("files", file) for file in pair)
        row = code_edge(
            tail,
            head,
            CodeEdgeType.CHANGES_WITH,
            place,
            times[pair],
        )
        weight = round(1.0 - math.exp(-sums[pair]), 6)
        rows.append(
            {
                **row,
                "weight": weight,
                "valid_from": first[pair].moment,
            }
        )

    return rows


def _strongest(
    sums: Mapping[tuple[str, str], float],
    times: Mapping[tuple[str, str], int],
) -> list[tuple[str, str]]:
    """Pairs that are among the strongest of either file."""
    strongest: set[tuple[str, str]] = set()
    pairs_per_file: dict[str, int] = defaultdict(int)
    repeated = (pair for pair in sums if times[pair] >= _LEAST_TIMES)

    for first, second in sorted(repeated, key=lambda pair: (-sums[pair], pair)):
        if min(pairs_per_file[first], pairs_per_file[second]) < TOGETHER_PER_FILE:
            strongest.add((first, second))
            pairs_per_file[first] += 1
            pairs_per_file[second] += 1

    return sorted(strongest)


# `Reader`, :class:`~pkg.Reader`, ``pkg.read()``, and dotted names in plain text.
_QUOTED = re.compile(r"`{1,2}[~!]?([^\W\d][\w.]*)(?:\([^`\n]{0,80}\))?`{1,2}")
_DOTTED = re.compile(r"(?<![\w./-])([^\W\d]\w*(?:\.[^\W\d]\w*)+)(?![\w/-])")
_SHORTEST = 3  # a name of fewer letters names nothing in particular


def documentation_edges(
    document: str,
    pieces: Sequence[Piece],
    names: CodeNames,
) -> list[Row]:
    """From passages of prose to the symbols they name, with the place; a short name counts where
    one symbol has it.
    """
    edges: dict[str, Row] = {}
    for piece in pieces:
        if piece.kind not in (ChunkKind.PROSE, ChunkKind.LISTING):
            continue

        for match in chain(_QUOTED.finditer(piece.text), _DOTTED.finditer(piece.text)):
            name = match.group(1).rstrip(".")
            if len(name) >= _SHORTEST:
                func = names.find(name) or names.find_short(name)
            else:
                func = None

            if func is None:
                continue

            start = piece.span[0] + match.start(1)
            place = (document, [start, start + len(name)])
            chunk = node_id("doc_chunks", piece.key)
            symbol = node_id("funcs", func)
            row = code_edge(
                chunk,
                symbol,
                CodeEdgeType.DOCUMENTS,
                place,
            )
            edge = edges.setdefault(row["_key"], row)
            edge["count"] += edge is not row

    return list(edges.values())


_STATED = (
    (CodeEdgeType.CALLS, RelationType.REFERS_TO, "calls"),
    (CodeEdgeType.INHERITS, RelationType.EXTENDS, "extends"),
)


def symbol_entities(
    code: CodeDerivation,
    symbols: Mapping[str, str],
) -> dict[str, str]:
    """The entity of each symbol, by `_id`; `symbols` are entity ids by the name they are shown
    with.
    """
    entity_by_func: dict[str, str] = {}
    for key, name, document in values_of(
        code.funcs,
        "_key",
        "qualified_name",
        "document",
    ):
        entity = find_symbol(
            symbols,
            name,
            code.paths[key_of(document)],
        )
        if entity:
            entity_by_func[node_id("funcs", key)] = entity

    return entity_by_func


def code_mentions(code: CodeDerivation, entity_of: Mapping[str, str]) -> pa.Table:
    """Each unit of code mentions the entity of its own symbol."""
    chunks: list[str] = []

    entities: list[str] = []
    for chunk, func in _ends_of(
        code,
        "chunk_code_edges",
        CodeEdgeType.DESCRIBES,
    ):
        if func in entity_of:
            chunks.append(chunk)
            entities.append(entity_of[func])

    ends = (pa.array(ids, pa.string()) for ids in (chunks, entities))
    return fill(
        "mentions",
        len(chunks),
        edge_columns(MentionType.MENTIONS, *ends),
    )


def code_relations(
    code: CodeDerivation,
    entity_of: Mapping[str, str],
) -> Iterator[Row]:
    """Code that calls or extends code, as `read_links` gives relations, in order of the symbols
    that state them.
    """
    stating = {}
    for row in code.funcs.select(["_key", "document", "span"]).to_pylist():
        stating[node_id("funcs", row["_key"])] = row

    for kind, relation, label in _STATED:
        for tail, head in sorted(_ends_of(code, "imports", kind)):
            source = entity_of.get(tail)
            target = entity_of.get(head)
            if source and target and source != target:
                place = stating[tail]
                yield edge_row(source, relation, target) | {
                    "created": None,
                    "provenance": {
                        "doc": place["document"],
                        "span": place["span"],
                    },
                    "label": label,
                    "evidence_count": 1,
                }


def _ends_of(
    code: CodeDerivation,
    collection: str,
    kind: CodeEdgeType,
) -> Iterator[tuple[str, str]]:
    edges = code.tables[collection]
    edges = edges.filter(pc.equal(edges["type"], str(kind)))
    return values_of(edges, "_from", "_to")
