"""The gate before a ranker is fitted: every rule of the export, read again from its files."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.stages.contracts.check_contract import ContractResult
from hades.stages.contracts.columns import with_columns
from schemas.contracts.ranker import CONTRACT
from schemas.contracts.validate import validate

TABLES = ("nodes", "edges", "questions", "preferences")


def check_export(folder: Path) -> ContractResult:
    """Check the files of an export; nothing is raised for a broken rule."""
    began = time.perf_counter()
    tables = {name: _read(folder / f"{name}.arrow") for name in TABLES}
    frames = {
        "nodes": _nodes(tables["nodes"], tables["edges"]),
        "edges": _edges(tables["edges"], tables["nodes"]),
        "questions": _questions(tables["questions"]),
        "preferences": _preferences(tables["preferences"], tables["questions"], tables["nodes"]),
    }
    findings = validate(CONTRACT, frames)
    rows = sum(table.num_rows for table in frames.values())
    return ContractResult("ranker", len(CONTRACT.rules), tuple(findings), rows, round(time.perf_counter() - began, 3))


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _nodes(nodes: pa.Table, edges: pa.Table) -> pa.Table:
    features = nodes.column("features").combine_chunks()
    width = features.type.list_size
    values = features.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    finite: NDArray[np.bool_] = np.isfinite(values.astype(np.float32)).all(axis=1)
    kinds = pc.replace_substring_regex(nodes.column("id"), "/.*$", "")
    degree = nodes.column("degree").to_numpy()
    counted = _count(nodes, edges)
    return with_columns(
        nodes.select(["graph", "id", "kind", "degree"]),
        _key=pc.binary_join_element_wise(nodes.column("graph"), nodes.column("id"), " "),
        is_finite=finite,
        kind_matches=pc.equal(kinds, nodes.column("kind")),
        edges=counted,
        degree_matches=degree == counted,
    )


def _count(nodes: pa.Table, edges: pa.Table) -> NDArray[np.int64]:
    """How many edges leave each node, by the file of edges."""
    place = {name: number for number, name in enumerate(pc.unique(nodes.column("graph")).to_pylist())}
    code = np.array([place[name] for name in nodes.column("graph").to_pylist()], np.int64)
    most = (
        int(max(nodes.column("number").to_numpy().max(initial=0), edges.column("source").to_numpy().max(initial=0))) + 1
    )
    own = code * most + nodes.column("number").to_numpy()
    theirs = np.array([place.get(name, -1) for name in edges.column("graph").to_pylist()], np.int64)
    left = theirs * most + edges.column("source").to_numpy()
    seen, counts = np.unique(left, return_counts=True)
    where = np.minimum(np.searchsorted(seen, own), max(0, len(seen) - 1))
    return np.where(seen[where] == own, counts[where], 0) if len(seen) else np.zeros(len(own), np.int64)


def _edges(edges: pa.Table, nodes: pa.Table) -> pa.Table:
    sizes: dict[str, int] = {}
    for row in nodes.group_by("graph").aggregate([("number", "max")]).to_pylist():
        sizes[row["graph"]] = row["number_max"] + 1
    size = np.array([sizes.get(name, 0) for name in edges.column("graph").to_pylist()], np.int64)
    source, target = (edges.column(end).to_numpy() for end in ("source", "target"))
    inside = (source >= 0) & (source < size) & (target >= 0) & (target < size)
    keys = pa.array([str(number) for number in range(edges.num_rows)])
    return with_columns(edges, _key=keys, ends_exist=inside)


def _questions(questions: pa.Table) -> pa.Table:
    """A logged question that is held out is in time where none later is fitted."""
    at = pc.cast(questions.column("at"), pa.int64()).fill_null(-1).to_numpy()
    held = pc.equal(questions.column("split"), "held").to_numpy(zero_copy_only=False)
    timed = at >= 0
    last_fitted = at[timed & ~held].max(initial=-1)
    in_time = ~(timed & held) | (at >= last_fitted)
    return with_columns(
        questions,
        _key=pc.cast(questions.column("question"), pa.string()),
        has_text=pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(questions.column("text"))), 0),
        is_in_time=in_time,
    )


def _preferences(preferences: pa.Table, questions: pa.Table, nodes: pa.Table) -> pa.Table:
    known = pc.is_in(preferences.column("question"), value_set=questions.column("question").combine_chunks())
    ids = nodes.column("id").combine_chunks()
    ends = [pc.is_in(preferences.column(side), value_set=ids) for side in ("better", "worse")]
    pairs = list(zip(*(preferences.column(name).to_pylist() for name in ("question", "better", "worse")), strict=True))
    there = set(pairs)
    one_way = np.array(
        [better != worse and (number, worse, better) not in there for number, better, worse in pairs], np.bool_
    )
    keys = pa.array([f"{number}: {better} over {worse}" for number, better, worse in pairs], pa.string())
    return with_columns(preferences, _key=keys, question_exists=known, nodes_exist=pc.and_(*ends), is_one_way=one_way)
