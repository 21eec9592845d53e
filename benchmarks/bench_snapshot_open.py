"""Opening a published graph of a million edges, against reading the same edges from Parquet into a
dictionary.

    python benchmarks/bench_snapshot_open.py [--edges 1000000] [--runs 5] [--json FILE]

Each figure comes from fresh processes (median). The snapshot is a real one: `publish` reads
generated tables through the store port. "Resident" is the whole process, interpreter and numpy
included, before the first question is asked.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.snapshot.publish import publish
from schemas.catalogue import collection_named

NODES_PER_EDGE = 0.1
DIMENSION = 384
MODEL = f"generated@1/{DIMENSION}"

MEASURE = """
import json, sys, time
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
"""
SNAPSHOT = """
from pathlib import Path
import numpy as np
began = time.perf_counter()
from hades.ports.graph import Kind
from hades.snapshot.open import open_snapshot
imported = time.perf_counter()
view = open_snapshot(Path(sys.argv[1]))
opened = time.perf_counter()
before = resident()
asked = time.perf_counter()
view.expand(view.number(["entities/e0000017"]), direction="outbound", fanout=8)
expanded = time.perf_counter()
start = view.match_names("what follows from name 17 and name 4242?").numbers
found = view.expand(start, direction="any", fanout=8)
nodes = view.nodes(np.unique(found.target)[:16])
words = view.lexical("summary of thing 99", kind=Kind.ENTITY, limit=8)
answered = time.perf_counter()
print(json.dumps({"import_ms": (imported - began) * 1e3, "open_ms": (opened - imported) * 1e3,
                  "resident_mb": before, "first_expand_ms": (expanded - asked) * 1e3,
                  "names_edges_facts_words_ms": (answered - expanded) * 1e3,
                  "answers": [len(found), len(nodes), len(words)]}))
"""
PARQUET = """
began = time.perf_counter()
import pyarrow.parquet as pq
imported = time.perf_counter()
table = pq.read_table(sys.argv[1])
neighbours = {}
columns = (table.column(name).to_pylist() for name in ("_from", "_to", "type", "weight"))
for source, target, kind, weight in zip(*columns):
    neighbours.setdefault(source, []).append((target, kind, weight))
opened = time.perf_counter()
before = resident()
asked = time.perf_counter()
found = sorted(neighbours.get("entities/e0000017", []), key=lambda edge: -edge[2])[:8]
answered = time.perf_counter()
print(json.dumps({"import_ms": (imported - began) * 1e3, "open_ms": (opened - imported) * 1e3,
                  "resident_mb": before, "first_expand_ms": (answered - asked) * 1e3,
                  "answers": [len(found)]}))
"""


class Tables:
    """Generated rows behind the methods of the store port that publishing uses."""

    def __init__(self, rows: dict[str, pa.Table]) -> None:
        self._rows = rows

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """Nobody writes: every read is of the same moment."""
        yield self

    def scan(
        self,
        collection: str,
        *,
        where: Sequence[Any] = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in key order."""
        table = self._rows.get(collection)
        if table is not None:
            yield from table.select(list(columns or table.column_names)).to_batches(
                max_chunksize=batch_rows
            )

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows by key; of a collection that was not generated there are none."""
        named = collection_named(collection)
        assert named is not None
        table = self._rows.get(collection, named.schema.empty_table())
        return table.select(list(columns or table.column_names)).filter(
            pc.is_in(table["_key"], pa.array(list(keys)))
        )


def main() -> None:
    """Generate, publish, measure, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--edges", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        tables = generated(asked.edges)
        pq.write_table(
            tables["relations"].select(["_from", "_to", "type", "weight"]), home / "edges.parquet"
        )
        published = publish(Tables(tables), home)  # type: ignore[arg-type]
        size_mb = sum(path.stat().st_size for path in published.path.iterdir()) / 2**20
        del tables
        snapshot = measured(SNAPSHOT, home, asked.runs)
        parquet = measured(PARQUET, home / "edges.parquet", asked.runs)
    report(asked, published.contents.nodes, published.contents.edges, size_mb, snapshot, parquet)


def generated(n_edges: int) -> dict[str, pa.Table]:
    """Entities with vectors and a random graph over them, from a fixed seed."""
    chance = np.random.default_rng(7)
    n_nodes = max(10, int(n_edges * NODES_PER_EDGE))
    keys = np.char.add("e", np.char.zfill(np.arange(n_nodes).astype(str), 7))
    names = np.char.add("Name ", np.arange(n_nodes).astype(str))
    vectors = chance.standard_normal(n_nodes * DIMENSION, dtype=np.float32)
    ends = np.arange(0, n_nodes * DIMENSION + 1, DIMENSION, dtype=np.int32)
    entities = {
        "_key": keys,
        "name": names,
        "name_lower": np.char.lower(names),
        "type": np.full(n_nodes, "concept"),
        "summary": np.char.add("the summary of thing ", (np.arange(n_nodes) % 1000).astype(str)),
        "embedding": pa.ListArray.from_arrays(pa.array(ends), pa.array(vectors)),
        "embedding_model": np.full(n_nodes, MODEL),
    }
    ids = np.char.add("entities/", keys)
    relations = {
        "_key": np.char.add("r", np.char.zfill(np.arange(n_edges).astype(str), 8)),
        "_from": ids[chance.integers(0, n_nodes, n_edges)],
        "_to": ids[chance.integers(0, n_nodes, n_edges)],
        "type": np.array(["refers_to", "cites", "related_to"])[chance.integers(0, 3, n_edges)],
        "weight": chance.random(n_edges),
    }
    return {
        "entities": complete("entities", entities),
        "relations": complete("relations", relations),
    }


def complete(name: str, given: dict[str, Any]) -> pa.Table:
    """The given columns, and the others at their defaults."""
    collection = collection_named(name)
    assert collection is not None
    rows = len(given["_key"])
    return pa.table(
        {
            column.name: pa.array(given[column.name], column.type)
            if column.name in given
            else pa.repeat(pa.scalar(column.default, column.type), rows)
            for column in collection.columns
        }
    )


def measured(program: str, argument: Path, runs: int) -> dict[str, float]:
    """The median of each figure over fresh processes."""
    figures = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE + program, str(argument)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        figures.append(json.loads(done.stdout))
    return {
        name: statistics.median(one[name] for one in figures)
        for name in figures[0]
        if name != "answers"
    }


def report(
    asked: argparse.Namespace,
    nodes: dict[str, int],
    edges: dict[str, int],
    size_mb: float,
    snapshot: dict[str, float],
    parquet: dict[str, float],
) -> None:
    """A table for people, JSON for programs."""
    print(
        f"{sum(nodes.values())} nodes, {sum(edges.values())} edges, {size_mb:.0f} MB on disk, "
        f"median of {asked.runs}\n"
    )
    print(f"{'':28}{'snapshot':>12}{'parquet+dict':>14}{'ratio':>10}")
    for name, ours in snapshot.items():
        theirs = parquet.get(name)
        against = "" if theirs is None else f"{theirs:14.2f}{theirs / ours:10.1f}"
        print(f"{name:28}{ours:12.2f}{against}")
    body = {
        "edges": sum(edges.values()),
        "runs": asked.runs,
        "snapshot": snapshot,
        "parquet_dict": parquet,
    }
    print("\n" + json.dumps(body))
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


if __name__ == "__main__":
    main()
