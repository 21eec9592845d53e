"""Edges from history: a commit touched files and symbols; files that change together, recent commits counting more."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

import orjson
import pyarrow as pa

from hades.ingest.code.edges import code_edge
from hades.ingest.code.names import CodeNames
from hades.ingest.nodes import document_key
from schemas.graph_types import CodeEdgeType
from schemas.source_kinds import SourceKind

Row = dict[str, Any]
COMMIT_ORIGIN = "commit:"
HALF_LIFE_DAYS = 365.0  # a commit of a year ago counts half
MAX_FILES_TOGETHER = 20  # a commit that touches more says little about any two of them
TOGETHER_PER_FILE = 10
_LEAST_TIMES = 2
_DAY = 86_400.0


@dataclass(frozen=True)
class CommitRow:
    """A commit in the store: its document and first passage, its moment, and what its facts say it touched."""

    document: str
    chunk: str
    length: int
    moment: datetime
    touched: Sequence[tuple[str, Sequence[str]]]  # document keys of files, some of them gone; names of definitions


def commit_rows(documents: pa.Table, chunks: pa.Table) -> list[CommitRow]:
    """The commits among the documents, by their moment."""
    columns = (documents.column(name).to_pylist() for name in ("_key", "origin", "created", "length", "facts"))
    found = [row for row in zip(*columns, strict=True) if row[1].startswith(COMMIT_ORIGIN) and row[2] is not None]
    if not found:
        return []
    first = _first_chunks(chunks)
    rows = []
    for key, _, moment, length, facts in found:
        stated = orjson.loads(facts).get("commit", {})
        corpus = stated.get("corpus", "")
        touched = [(document_key(SourceKind.WORKSPACE, path, corpus), names) for path, names in stated.get("files", ())]
        if key in first:
            rows.append(CommitRow(key, first[key], length, moment, touched))
    return sorted(rows, key=lambda row: (row.moment, row.document))


def touched_edges(commit: CommitRow, names: CodeNames) -> list[Row]:
    """From the first passage of a commit to each file it touched and to each symbol whose definition it changed.

    Names are those of the time; one that the file has several of today names none.
    """
    rows: dict[str, Row] = {}
    message = (commit.document, [0, commit.length])
    for document, changed in commit.touched:
        defined = names.definitions(document)
        if defined is None:
            continue
        file, symbols = defined
        held = [symbols.get(name, []) for name in changed]
        ends = [("files", file), *(("funcs", keys[0]) for keys in held if len(keys) == 1)]
        for collection, key in ends:
            row = code_edge("doc_chunks", commit.chunk, collection, key, CodeEdgeType.TOUCHED, message)
            rows[row["_key"]] = {**row, "valid_from": commit.moment}
    return list(rows.values())


def together_edges(commits: Sequence[CommitRow], files: Mapping[str, str]) -> list[Row]:
    """Pairs of files that at least two commits changed together, the strongest of each file.

    The weight is 1 - exp(-s), where s sums 2^(-age / half-life) / (files of the commit - 1). Age counts from the newest
    commit. `files`: document key -> file key.
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
        row = code_edge("files", pair[0], "files", pair[1], CodeEdgeType.CHANGES_WITH, place, times[pair])
        weight = round(1.0 - math.exp(-sums[pair]), 6)
        rows.append({**row, "weight": weight, "valid_from": first[pair].moment})
    return rows


def _strongest(sums: Mapping[tuple[str, str], float], times: Mapping[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Pairs that are among the strongest of either file."""
    kept: set[tuple[str, str]] = set()
    taken: dict[str, int] = defaultdict(int)
    for pair in sorted((one for one in sums if times[one] >= _LEAST_TIMES), key=lambda one: (-sums[one], one)):
        if min(taken[pair[0]], taken[pair[1]]) < TOGETHER_PER_FILE:
            kept.add(pair)
            taken[pair[0]] += 1
            taken[pair[1]] += 1
    return sorted(kept)


def _first_chunks(chunks: pa.Table) -> dict[str, str]:
    """The chunk that begins first in each document, by its key."""
    first: dict[str, tuple[int, str]] = {}
    columns = (chunks.column(name).to_pylist() for name in ("_key", "document", "span"))
    for key, document, span in zip(*columns, strict=True):
        owner = document.partition("/")[2]
        first[owner] = min(first.get(owner, (span[0], key)), (span[0], key))
    return {document: key for document, (_, key) in first.items()}
