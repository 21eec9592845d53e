"""Every edge of code and history as tables; files that a change does not reach keep those of the last derivation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code.code_corpus import CodeCorpus, ReadDocument
from hades.ingest.code.documentation_edges import documentation_edges
from hades.ingest.code.edges import code_edge, contains_edges, import_edges, symbol_at
from hades.ingest.code.former_code import (
    FormerCode,
    document_rows,
    find_changed_questions,
    open_kept_code,
    question_rows,
)
from hades.ingest.code.history_edges import CommitRow, commit_rows, together_edges, touched_edges
from hades.ingest.code.names import CodeNames
from hades.ingest.workers.arrow_bytes import from_bytes
from schemas.catalogue import collection_named
from schemas.graph_types import CodeEdgeType

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
