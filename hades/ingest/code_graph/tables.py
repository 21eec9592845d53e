"""All code edges; unchanged files keep theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code_graph.corpus import NAMED, Answers, CodeCorpus, ReadDocument
from hades.ingest.code_graph.edges import (
    CommitRow,
    code_edge,
    commit_rows,
    contains_edges,
    documentation_edges,
    import_edges,
    symbol_at,
    together_edges,
    touched_edges,
)
from hades.ingest.code_graph.names import CodeNames
from hades.ingest.entities.corpus import Signatures
from hades.ingest.stated_edges import find_symbol, stated_schema
from hades.ingest.unchanged import DERIVE_VERSION
from hades.ingest.workers import from_bytes
from hades.ingest.write_changes import KeptTables
from hades.text.words import Longs
from schemas.catalogue import collection_named
from schemas.edges import MentionType
from schemas.ids import edge_key
from schemas.nodes import CodeEdgeType, RelationType

# What the last derivation found in code, kept by document: edges, the questions they follow from, and its answers.
# Every document has a signature of all that its own edges are made from. Where it is the same, and none of the
# questions that its edges follow from has another answer now, its edges are taken from here.


_DOCUMENTS = pa.schema(
    [("document", pa.string()), ("high", pa.uint64()), ("low", pa.uint64()), ("answers", pa.binary())]
)
_ASKED = pa.schema([("document", pa.string()), ("question", pa.string())])


@dataclass(frozen=True)
class FormerCode:
    """Edges by collection, each with the document that states it as provenance, and what they follow from."""

    documents: pa.Table  # document, high, low, answers as JSON
    asked: pa.Table  # document, question
    edges: Mapping[str, pa.Table]

    @classmethod
    def nothing(cls, edges: Mapping[str, pa.Table]) -> FormerCode:
        """Before the first derivation; `edges` are empty."""
        return cls(_DOCUMENTS.empty_table(), _ASKED.empty_table(), edges)

    def without(self, documents: Iterable[str]) -> FormerCode:
        """What is kept of all other documents."""
        gone = pa.array(documents, pa.string())
        owners = pc.binary_join_element_wise("documents", gone, "/")

        def others(table: pa.Table, owner: pa.ChunkedArray, names: pa.Array) -> pa.Table:
            return table.filter(pc.invert(pc.is_in(owner, value_set=names)))

        return FormerCode(
            others(self.documents, self.documents.column("document"), gone),
            others(self.asked, self.asked.column("document"), gone),
            {
                name: others(table, pc.struct_field(table.column("provenance"), "doc"), owners)
                for name, table in self.edges.items()
            },
        )

    def joined(self, other: FormerCode) -> FormerCode:
        """What is kept of both, the edges in order of their keys."""
        return FormerCode(
            pa.concat_tables([self.documents, other.documents]),
            pa.concat_tables([self.asked, other.asked]),
            {name: pa.concat_tables([table, other.edges[name]]).sort_by("_key") for name, table in self.edges.items()},
        )

    def differing(self, keys: pa.Array, signatures: Signatures) -> tuple[list[str], list[str]]:
        """Documents that are new or have another signature, and those that are here no longer."""
        place = pc.fill_null(pc.index_in(keys, value_set=self.documents.column("document").combine_chunks()), -1)
        rows = place.to_numpy().astype(np.int64)
        known = np.flatnonzero(rows >= 0)
        high, low = (self.documents.column(name).to_numpy() for name in ("high", "low"))
        same = np.zeros(len(rows), dtype=np.bool_)
        same[known] = Signatures(high[rows[known]], low[rows[known]]).equal(signatures.take(known))
        gone = pc.invert(pc.is_in(self.documents.column("document"), value_set=keys))
        return keys.filter(pa.array(~same)).to_pylist(), self.documents.column("document").filter(gone).to_pylist()

    def answers(self) -> dict[str, Answers]:
        """What each document answers."""
        columns = (self.documents.column(name).to_pylist() for name in ("document", "answers"))
        return {document: orjson.loads(told) if told else {} for document, told in zip(*columns, strict=True)}

    def asking(self, questions: Collection[str]) -> list[str]:
        """The documents whose edges follow from any of these questions."""
        asked = pc.is_in(self.asked.column("question"), value_set=pa.array(sorted(questions), pa.string()))
        documents: list[str] = pc.unique(self.asked.column("document").filter(asked)).to_pylist()
        return documents


def document_rows(documents: pa.Array, signatures: Signatures, answers: Mapping[str, Answers]) -> pa.Table:
    """Documents as they are kept."""
    told = [orjson.dumps(answers[key]) if answers.get(key) else b"" for key in documents.to_pylist()]
    columns = [documents, pa.array(signatures.high), pa.array(signatures.low), pa.array(told, pa.binary())]
    return pa.Table.from_arrays(columns, schema=_DOCUMENTS)


def question_rows(asked: Mapping[str, Collection[str]]) -> pa.Table:
    """The questions of each document as they are kept."""
    documents = [document for document, questions in asked.items() for _ in questions]
    listed = [question for questions in asked.values() for question in sorted(questions)]
    return pa.Table.from_arrays([pa.array(documents, pa.string()), pa.array(listed, pa.string())], schema=_ASKED)


def find_changed_questions(before: Mapping[str, Answers], after: Mapping[str, Answers], names: CodeNames) -> set[str]:
    """The questions that some of these documents answer otherwise than before."""
    changed: set[str] = set()
    for document in {*before, *after}:
        old, new = before.get(document, {}), after.get(document, {})
        changed.update(one for one in {*old, *new} if old.get(one) != new.get(one))
    told = Counter(one for answers in after.values() for one in answers)
    elsewhere = {one for one in changed if one.startswith(NAMED) and names.count_answers(one) > told[one]}
    return changed - elsewhere  # that anything is called so is the same whether one file says it or many


def open_kept_code(scratch: Path) -> KeptTables:
    """The folder of what is kept; it counts for the code that made it."""
    return KeptTables(scratch / "code-edges", f"{DERIVE_VERSION} {_makers_digest()}")


@cache
def _makers_digest() -> str:
    """A digest of the code that makes edges of code."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"\x00".join(file.read_bytes() for file in files)).hexdigest()


# Every edge of code and history as tables; files that a change does not reach keep those of the last derivation.


Row = dict[str, Any]
CODE_COLLECTIONS = ("contains", "imports", "chunk_code_edges")
_COLUMNS = ("_key", "_from", "_to", "type", "count", "weight", "provenance", "valid_from")


@dataclass(frozen=True)
class CodeDerivation:
    """What follows from code: the edge collections, and what relations between symbols are made from."""

    tables: dict[str, pa.Table]
    funcs: pa.Table  # _key, qualified_name, document and span, in order of the keys
    paths: dict[str, str]  # of each document


def derive_code(
    documents: pa.Table, chunks: pa.Table, funcs: pa.Table, files: pa.Table, scratch: Path | None = None
) -> CodeDerivation:
    """The collections contains, imports and chunk_code_edges as they should be, from the tables of `CodeCorpus`.

    In the folder `scratch` it keeps what it found; the result is the same without it.
    """
    corpus = CodeCorpus(documents, chunks, funcs, files)
    commits = commit_rows(documents, chunks)
    kept = open_kept_code(scratch) if scratch is not None else None
    found = _follow_change(corpus, commits, _unpack(kept.load() if kept else None))
    if kept:
        kept.keep({"documents": found.documents, "asked": found.asked, **found.edges})
    together = _table("imports", together_edges(commits, corpus.file_of))
    tables = {**found.edges, "imports": pa.concat_tables([found.edges["imports"], together])}
    owners, paths = (files.column(name).to_pylist() for name in ("document", "path"))
    path_of = {owner.partition("/")[2]: path for owner, path in zip(owners, paths, strict=True)}
    return CodeDerivation(tables, funcs.sort_by("_key"), path_of)


def derive_code_bytes(
    documents: bytes, chunks: bytes, funcs: bytes, files: bytes, scratch: Path | None
) -> CodeDerivation:
    """`derive_code` as a worker process calls it."""
    return derive_code(from_bytes(documents), from_bytes(chunks), from_bytes(funcs), from_bytes(files), scratch)


def _follow_change(corpus: CodeCorpus, commits: Sequence[CommitRow], former: FormerCode) -> FormerCode:
    """The edges of documents that changed or ask what is answered otherwise now, and the former ones of others."""
    signatures = corpus.sign()
    changed, gone = former.differing(corpus.keys, signatures)
    answers = former.answers()
    before = {key: answers.pop(key, {}) for key in (*changed, *gone)}
    read = {one.key: one for one in corpus.read(changed)}
    after = {key: one.code.answers() for key, one in read.items() if one.code}
    answers |= after
    names = CodeNames(answers[key] for key in sorted(answers))
    touched = {*changed, *former.asking(find_changed_questions(before, after, names))}.difference(gone)
    rows: dict[str, list[Row]] = {name: [] for name in CODE_COLLECTIONS}
    asked: dict[str, set[str]] = {}
    commit_of = {commit.document: commit for commit in commits}
    reached = corpus.read(sorted(touched.difference(read)))
    for document in (*read.values(), *reached):
        names.forget_questions()
        for name, found in _edges_of(document, commit_of.get(document.key), names).items():
            rows[name] += found
        asked[document.key] = names.noted_questions()
    is_touched = pc.is_in(corpus.keys, value_set=pa.array(touched, pa.string()))
    places = pc.indices_nonzero(is_touched).to_numpy().astype("int64")
    made = FormerCode(
        document_rows(corpus.keys.filter(is_touched), signatures.take(places), answers),
        question_rows(asked),
        {name: _table(name, found) for name, found in rows.items()},
    )
    return former.without({*touched, *gone}).joined(made)


def _edges_of(document: ReadDocument, commit: CommitRow | None, names: CodeNames) -> dict[str, list[Row]]:
    """All edges that one document states, by collection."""
    code = document.code
    units = _units(document) if code else []
    documented = documentation_edges(document.key, document.pieces, names)
    touched = touched_edges(commit, names) if commit else []
    return {
        "contains": contains_edges(code) if code else [],
        "imports": import_edges(code, names) if code else [],
        "chunk_code_edges": [*units, *documented, *touched],
    }


def _units(document: ReadDocument) -> list[Row]:
    """A chunk that is a unit of a function or class belongs to it: the innermost one around its last character."""
    assert document.code is not None
    inside = symbol_at(document.code)
    rows = []
    for piece in document.pieces:
        func = inside(piece.span[1] - 1) if piece.symbol else None
        if func:
            place = (document.key, piece.span)
            rows.append(code_edge("doc_chunks", piece.key, "funcs", func, CodeEdgeType.DESCRIBES, place))
    return rows


def _unpack(tables: Mapping[str, pa.Table] | None) -> FormerCode:
    """What was kept; nothing where there is none."""
    wanted = ("documents", "asked", *CODE_COLLECTIONS)
    if tables is None or any(name not in tables for name in wanted):
        return FormerCode.nothing({name: _table(name, []) for name in CODE_COLLECTIONS})
    return FormerCode(tables["documents"], tables["asked"], {name: tables[name] for name in CODE_COLLECTIONS})


def _table(collection: str, rows: Sequence[Row]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    schema = pa.schema([pa.field(name, declared.schema.field(name).type) for name in _COLUMNS])
    return pa.Table.from_pylist(list(rows), schema=schema)


# Relations and mentions of the entities of code symbols, made from the edges of code.


_STATED = (
    (CodeEdgeType.CALLS, RelationType.REFERS_TO, "calls"),
    (CodeEdgeType.INHERITS, RelationType.EXTENDS, "extends"),
)


class SymbolEntities:
    """The entity of each symbol; `symbols` are entity ids by the name they are shown with."""

    def __init__(self, code: CodeDerivation, symbols: Mapping[str, str]) -> None:
        self._code = code
        names, documents = (code.funcs.column(name).to_pylist() for name in ("qualified_name", "document"))
        found = [
            find_symbol(symbols, name, code.paths[document.partition("/")[2]])
            for name, document in zip(names, documents, strict=True)
        ]
        encoded = pa.array(found, pa.string()).dictionary_encode()
        self._ids = encoded.dictionary
        self._of_symbol: Longs = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        self._symbols = pc.binary_join_element_wise("funcs", code.funcs.column("_key").combine_chunks(), "/")

    def mentions(self) -> pa.Table:
        """Each unit of code mentions the entity of its own symbol."""
        edges = self._of_kind("chunk_code_edges", CodeEdgeType.DESCRIBES)
        entity = self._of_symbol[self._rows(edges.column("_to"))]
        known = np.flatnonzero(entity >= 0)
        chunks, entities = edges.column("_from").take(pa.array(known)), self._ids.take(pa.array(entity[known]))
        kind = str(MentionType.MENTIONS)
        ends = zip(chunks.to_pylist(), entities.to_pylist(), strict=True)
        keys = [edge_key(chunk, kind, one) for chunk, one in ends]
        declared = collection_named("mentions")
        assert declared is not None
        names = ("_key", "_from", "_to", "type", "count")
        schema = pa.schema([declared.schema.field(name) for name in names])
        columns = [pa.array(keys, pa.string()), chunks, entities, pa.repeat(kind, len(keys)), pa.repeat(1, len(keys))]
        return pa.table(columns, names=names).cast(schema)

    def relations(self) -> pa.Table:
        """Code that calls or extends code, each relation once, with the first of the symbols that state it."""
        return pa.concat_tables([self._relations(*kinds) for kinds in _STATED])

    def _relations(self, edge: CodeEdgeType, relation: RelationType, label: str) -> pa.Table:
        edges = self._of_kind("imports", edge)
        tail, head = (self._rows(edges.column(name)) for name in ("_from", "_to"))
        order = np.lexsort((head, tail))  # symbols are in order of their keys
        tail, source, target = tail[order], self._of_symbol[tail[order]], self._of_symbol[head[order]]
        used = np.flatnonzero((source >= 0) & (target >= 0) & (source != target))
        pairs, first, count = np.unique(
            source[used] * max(1, len(self._ids)) + target[used], return_index=True, return_counts=True
        )
        rows = used[first]
        sources, targets = (self._ids.take(pa.array(ends[rows])) for ends in (source, target))
        ends = zip(sources.to_pylist(), targets.to_pylist(), strict=True)
        stating = self._code.funcs.take(pa.array(tail[rows]))
        schema = stated_schema()
        values = {
            "_key": pa.array([edge_key(one, str(relation), other) for one, other in ends], pa.string()),
            "_from": sources,
            "_to": targets,
            "type": pa.repeat(str(relation), len(pairs)),
            "created": pa.nulls(len(pairs), schema.field("created").type),
            "provenance": _places(stating, schema.field("provenance").type),
            "label": pa.repeat(label, len(pairs)),
            "evidence_count": pa.array(count),
        }
        return pa.Table.from_arrays([values[one.name].cast(one.type) for one in schema], schema=schema)

    def _of_kind(self, collection: str, kind: CodeEdgeType) -> pa.Table:
        edges = self._code.tables[collection]
        return edges.filter(pc.equal(edges.column("type"), str(kind))).combine_chunks()

    def _rows(self, ids: pa.ChunkedArray) -> Longs:
        """The rows of symbols by their ids."""
        rows: Longs = pc.index_in(ids, value_set=self._symbols).to_numpy().astype(np.int64)
        return rows


def _places(symbols: pa.Table, kind: pa.StructType) -> pa.StructArray:
    """Where symbols stand, as provenance."""
    columns = [symbols.column(name).combine_chunks() for name in ("document", "span")]
    fields = [kind.field("doc"), kind.field("span")]
    return pa.StructArray.from_arrays(
        [column.cast(one.type) for column, one in zip(columns, fields, strict=True)], fields=fields
    )
