"""Forks a writer, kills it at a random moment, looks at what it left; prints one JSON report. Run
by the kill test.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore
from tests.integration.drivers import in_child

ROWS = 600


def main(path: Path, kills: int) -> None:
    """The rounds: a writer begins, is killed, and a fresh process inspects the file."""
    chance = random.Random(20261115)
    in_child(lambda: SqliteStore.open(path, Mode.ADMIN).provision() and None)
    log = path.with_suffix(".log")
    log.touch()
    mid_write = 0
    for _ in range(kills):
        before = started(log)
        writer = os.fork()
        if writer == 0:
            write_forever(path, log)
        while started(log) == before:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.12)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        mid_write += started(log) > len(committed(log))
    report_path = path.with_suffix(".json")
    in_child(lambda: report_path.write_text(json.dumps(inspect(path, log))) and None)
    report = {
        "kills": kills,
        "killed_while_writing": mid_write,
        **json.loads(report_path.read_text()),
    }
    sys.stdout.write(json.dumps(report))


def write_forever(path: Path, log: Path) -> None:
    """One batch after the other, each announced before and after."""
    store = SqliteStore.open(path, Mode.READ_WRITE)
    note = os.open(log, os.O_WRONLY | os.O_APPEND)
    number = started(log)
    while True:
        os.write(note, f"begin {number}\n".encode())
        keys = [f"n{number}_{row}" for row in range(ROWS)]
        text = [f"batch {number} row {row}" for row in range(ROWS)]
        rows = {
            "_key": keys,
            "name": text,
            "name_lower": text,
            "type": ["concept"] * ROWS,
            "cluster_id": [f"b{number}"] * ROWS,
        }
        edges = {
            "_key": [f"e{key}" for key in keys],
            "_from": [f"entities/{key}" for key in keys],
            "_to": [f"entities/{keys[0]}"] * ROWS,
            "type": ["refers_to"] * ROWS,
        }
        with store.transaction(["entities", "relations"]) as inside:
            inside.upsert("entities", pa.table(rows))
            inside.upsert("relations", pa.table(edges))
        os.write(note, f"commit {number}\n".encode())
        number += 1


def inspect(path: Path, log: Path) -> dict[str, object]:
    """What is wrong with the file: torn batches, lost batches, anything `check` finds."""
    store = SqliteStore.open(path, Mode.READ_WRITE)
    held: dict[str, int] = {}
    for batch in store.scan("entities", columns=["cluster_id"]):
        for tag in batch.column("cluster_id").to_pylist():
            held[tag] = held.get(tag, 0) + 1
    edges = {
        f"b{key.partition('_')[0][2:]}"
        for batch in store.scan("relations", columns=["_key"])
        for key in batch.column("_key").to_pylist()
    }
    torn = [tag for tag, count in held.items() if count != ROWS] + sorted(edges ^ held.keys())
    lost = [number for number in committed(log) if f"b{number}" not in held]
    return {
        "batches": len(held),
        "torn_batches": torn,
        "lost_batches": lost,
        "problems": store.check(),
    }


def started(log: Path) -> int:
    return sum(line.startswith("begin") for line in log.read_text().splitlines())


def committed(log: Path) -> list[int]:
    return [
        int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("commit")
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
