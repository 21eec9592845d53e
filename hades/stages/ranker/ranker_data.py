"""What a ranker is fitted to, as Arrow files: nodes with their features, edges, questions and preference pairs.

The files can be read by anything that reads Arrow IPC. Equal contents give equal bytes, and their hash is the hash of
the data that a registered ranker carries. A pair keeps the chance that its better side stood where it stood, so that
what was rarely seen can count more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ports.graph import KINDS
from hades.ports.view import GraphView
from hades.stages.ranker.ranker_questions import LabelledQuestion
from models.ranker.dataset import Graph

EXPORT = "export"
FIT, HELD = "fit", "held"
PAIRS = 20  # of each preferred passage, with the best ranked of those passed over

QUESTIONS = pa.schema(
    [
        ("question", pa.int64()), ("graph", pa.string()), ("text", pa.string()), ("source", pa.string()),
        ("at", pa.timestamp("us", "UTC")), ("split", pa.string()),
    ]
)  # fmt: skip
PREFERENCES = pa.schema(
    [
        ("question", pa.int64()), ("graph", pa.string()), ("better", pa.string()), ("worse", pa.string()),
        ("propensity", pa.float64()), ("source", pa.string()), ("at", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class QuestionCandidates:
    """The candidates of one question, best ranked first: ids, and which of them were preferred or passed over."""

    asked: LabelledQuestion
    graph: str
    is_held: bool
    ids: Sequence[str]
    wanted: NDArray[np.bool_]
    counts: NDArray[np.bool_]


@dataclass(frozen=True)
class RankerExport:
    """Where the files are, the hash of all of them, and how many rows each has."""

    folder: Path
    data_hash: str
    rows: dict[str, int]


def write_export(
    folder: Path, graphs: dict[str, tuple[GraphView, Graph]], offered: Sequence[QuestionCandidates]
) -> RankerExport:
    """Write every table; what an earlier export left is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "nodes": pa.concat_tables([_nodes(name, *one) for name, one in sorted(graphs.items())]),
        "edges": pa.concat_tables([_edges(name, *one) for name, one in sorted(graphs.items())]),
        "questions": _questions(offered),
        "preferences": _preferences(offered),
    }
    digest = hashlib.sha256()
    for name, table in tables.items():
        path = folder / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        with path.open("rb") as written:
            digest.update(hashlib.file_digest(written, "sha256").digest())
    return RankerExport(folder, digest.hexdigest(), {name: table.num_rows for name, table in tables.items()})


def read_table(folder: Path, name: str) -> pa.Table:
    """One table of an export."""
    with pa.memory_map(str(folder / f"{name}.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def _nodes(name: str, view: GraphView, graph: Graph) -> pa.Table:
    numbers = np.arange(len(graph), dtype=np.int64)
    kinds = np.array([str(kind) for kind in KINDS])[view.kinds(numbers)]
    features = pa.array(graph.features.astype(np.float16).ravel())
    return pa.table(
        {
            "graph": pa.array([name] * len(graph), pa.string()),
            "number": numbers,
            "id": pa.array(view.ids(numbers), pa.string()),
            "kind": pa.array(kinds.tolist(), pa.string()),
            "degree": np.diff(graph.starts),
            "features": pa.FixedSizeListArray.from_arrays(features, graph.features.shape[1]),
        }
    )


def _edges(name: str, view: GraphView, graph: Graph) -> pa.Table:
    """Both directions, by source and then as the adjacency has them."""
    source = np.repeat(np.arange(len(graph), dtype=np.int64), np.diff(graph.starts))
    return pa.table(
        {
            "graph": pa.array([name] * len(source), pa.string()),
            "source": source,
            "target": graph.targets.astype(np.int64),
        }
    )


def _questions(offered: Sequence[QuestionCandidates]) -> pa.Table:
    rows = [
        {
            "question": number,
            "graph": one.graph,
            "text": one.asked.text,
            "source": one.asked.source,
            "at": _moment(one.asked.at),
            "split": HELD if one.is_held else FIT,
        }
        for number, one in enumerate(offered)
    ]
    return pa.Table.from_pylist(rows, schema=QUESTIONS)


def _preferences(offered: Sequence[QuestionCandidates]) -> pa.Table:
    rows = [
        {
            "question": number,
            "graph": one.graph,
            "better": better,
            "worse": worse,
            "propensity": one.asked.shown.get(better, 1.0),
            "source": one.asked.source,
            "at": _moment(one.asked.at),
        }
        for number, one in enumerate(offered)
        for better, worse in _pairs(one)
    ]
    return pa.Table.from_pylist(rows, schema=PREFERENCES)


def _pairs(offered: QuestionCandidates) -> Iterator[tuple[str, str]]:
    ids = np.array(offered.ids, object)
    passed_over = ids[offered.counts & ~offered.wanted][:PAIRS].tolist()
    for better in ids[offered.wanted].tolist():
        for worse in passed_over:
            yield better, worse


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
