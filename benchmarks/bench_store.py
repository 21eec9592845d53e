"""The embedded store beside a row-at-a-time INSERT loop and beside Parquet: 1M edges in, out, and
looked up.

    python benchmarks/bench_store.py [--edges 300000] [--json FILE]

All figures come from one run on one machine; read the ratios. The INSERT loop writes a plain table
with the same columns and the two edge indexes, once with a transaction per row (what a store
without bulk writes does) and once in a single transaction; it runs over a sample and is scaled up.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from hades.ports.store import Mode, Term
from hades.stores import row_checks as rows
from hades.stores.sqlite.store import SqliteStore

SAMPLE = 30_000
LOOKUPS = 200


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=300_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.edges)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(folder: Path, count: int) -> dict[str, float]:
    """Every time in seconds for the same edges."""
    entities, edges = made_up_graph(count)
    checked = rows.prepare(rows.require("relations"), edges)
    figures: dict[str, float] = {"edges": count}
    figures["parquet_write"] = seconds(lambda: pq.write_table(checked, folder / "edges.parquet"))
    figures["parquet_read"] = seconds(lambda: pq.read_table(folder / "edges.parquet"))
    store = SqliteStore.open(folder / "graph.db", Mode.ADMIN)
    store.provision()
    store.upsert("entities", entities)
    figures["upsert"] = seconds(lambda: store.upsert("relations", edges))
    figures["scan"] = seconds(lambda: sum(batch.num_rows for batch in store.scan("relations")))
    chance = np.random.default_rng(1)
    names = edges.column("_from").to_pylist()
    asked = [[names[at] for at in chance.integers(0, count, 48)] for _ in range(LOOKUPS)]
    figures["neighbours_48"] = (
        seconds(
            lambda: [
                list(store.scan("relations", where=[Term("_from", "in", nodes)])) for nodes in asked
            ]
        )
        / LOOKUPS
    )
    store.close()
    figures["sql_row_scan"] = sql_row_scan(folder / "plain.db", checked)
    figures["insert_loop_row"] = (
        insert_loop(folder / "rows.db", checked, one_transaction=False) * count / SAMPLE
    )
    figures["insert_loop_single_transaction"] = (
        insert_loop(folder / "one.db", checked, one_transaction=True) * count / SAMPLE
    )
    return figures


def made_up_graph(count: int) -> tuple[pa.Table, pa.Table]:
    """Entities and weighted relations with provenance, as ingestion makes them."""
    chance = np.random.default_rng(0)
    nodes = np.array([digest(number) for number in range(max(2, count // 10))], dtype=object)
    identifiers = np.array([f"entities/{node}" for node in nodes], dtype=object)
    tail, head = chance.integers(0, len(nodes), count), chance.integers(0, len(nodes), count)
    names = [f"name {number}" for number in range(len(nodes))]
    entities = {"_key": nodes, "name": names, "name_lower": names, "type": ["concept"] * len(nodes)}
    parts = ("sim", "type_prior", "evidence", "freshness")
    spans = np.sort(chance.integers(0, 9_999, (count, 2)), axis=1).ravel()
    relations = {
        "_key": sorted(digest(number) for number in range(count)),
        "_from": identifiers[tail],
        "_to": identifiers[head],
        "type": np.array(["cites", "implements", "extends", "refers_to"], dtype=object)[
            chance.integers(0, 4, count)
        ],
        "weight": chance.random(count),
        "cost": chance.random(count),
        "sim": chance.random(count),
        "weight_components": pa.StructArray.from_arrays(
            [pa.array(chance.random(count)) for _ in parts], parts
        ),
        "layer_bridge": chance.random(count) > 0.5,
        "created": pa.array(chance.integers(0, 2_000_000_000_000_000, count), pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        "provenance": pa.StructArray.from_arrays(
            [
                pa.array(identifiers[tail]),
                pa.ListArray.from_arrays(np.arange(0, 2 * count + 1, 2, dtype=np.int32), spans),
            ],
            ["doc", "span"],
        ),
    }
    return pa.table(entities), pa.table(relations)


def sql_row_scan(path: Path, edges: pa.Table) -> float:
    """Seconds to read the same edges kept as plain SQL rows into Arrow: what a full scan costs a
    row store here.
    """
    flat = edges.flatten().drop_columns(["provenance.span"])
    records = zip(
        *(column.to_pylist() for column in flat.cast(as_text_times(flat)).columns), strict=True
    )
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute(
        f"CREATE TABLE relations ({', '.join(f'c{number}' for number in range(flat.num_columns))})"
    )
    connection.executemany(
        f"INSERT INTO relations VALUES ({', '.join('?' * flat.num_columns)})", records
    )
    connection.execute("COMMIT")

    def scan() -> int:
        cursor, rows = connection.execute("SELECT * FROM relations"), 0
        while batch := cursor.fetchmany(65_536):
            rows += pa.table(
                [list(column) for column in zip(*batch, strict=True)], flat.column_names
            ).num_rows
        return rows

    return seconds(scan)


def as_text_times(table: pa.Table) -> pa.Schema:
    """The schema with times as numbers, which SQLite can keep."""
    return pa.schema(
        [
            pa.field(one.name, pa.int64() if pa.types.is_timestamp(one.type) else one.type)
            for one in table.schema
        ]
    )


def insert_loop(path: Path, edges: pa.Table, *, one_transaction: bool) -> float:
    """Seconds to INSERT the sample a row at a time, with the same columns and edge indexes."""
    sample = (
        edges.take(pa.array(np.random.default_rng(2).permutation(edges.num_rows)[:SAMPLE]))
        .flatten()
        .flatten()
    )
    listed = [
        column
        for column in sample.column_names
        if pa.types.is_list(sample.schema.field(column).type)
    ]
    records = [
        tuple(
            json.dumps(value)
            if name in listed
            else str(value)
            if hasattr(value, "tzinfo")
            else value
            for name, value in row.items()
        )
        for row in sample.to_pylist()
    ]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    names = ", ".join(f'"{name}"' for name in sample.column_names)
    connection.execute(f'CREATE TABLE relations ({names}, PRIMARY KEY ("_key"))')
    connection.execute('CREATE INDEX by_from ON relations ("_from")')
    connection.execute('CREATE INDEX by_to ON relations ("_to")')
    statement = f"INSERT INTO relations VALUES ({', '.join('?' * len(sample.column_names))})"

    def loop() -> None:
        if one_transaction:
            connection.execute("BEGIN")
        for record in records:
            connection.execute(statement, record)
        if one_transaction:
            connection.execute("COMMIT")

    return seconds(loop)


def show(figures: dict[str, float]) -> None:
    """The table: what, seconds, ratio."""
    table = Table(
        title=f"{figures['edges']:,.0f} edges, {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    for heading in ("what", "seconds", "ratio"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    both = figures["upsert"] + figures["scan"]
    parquet = figures["parquet_write"] + figures["parquet_read"]
    for what, value, ratio in (
        (
            "upsert",
            figures["upsert"],
            f"{figures['upsert'] / figures['parquet_write']:.1f} x Parquet write",
        ),
        (
            "scan",
            figures["scan"],
            f"{figures['scan'] / figures['parquet_read']:.1f} x Parquet read",
        ),
        ("upsert and scan", both, f"{both / parquet:.1f} x Parquet (3 at most)"),
        (
            "INSERT per row",
            figures["insert_loop_row"],
            f"{figures['insert_loop_row'] / figures['upsert']:.1f} x upsert (10 at least)",
        ),
        (
            "INSERT per row, one transaction",
            figures["insert_loop_single_transaction"],
            f"{figures['insert_loop_single_transaction'] / figures['upsert']:.1f} x upsert",
        ),
        (
            "neighbours of 48",
            figures["neighbours_48"],
            f"1/{figures['scan'] / figures['neighbours_48']:,.0f} of our scan (1/1000 at most)",
        ),
        (
            "scan of plain SQL rows",
            figures["sql_row_scan"],
            f"neighbours: 1/{figures['sql_row_scan'] / figures['neighbours_48']:,.0f} of it",
        ),
    ):
        table.add_row(what, f"{value:.4f}", ratio)
    Console().print(table)


def digest(number: int) -> str:
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=13).hexdigest()[:25]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
