"""A working set beside the store it was filled from, from ten thousand states to a hundred thousand
(or more: --sizes).

    python benchmarks/bench_working_set.py [--sizes 10000 30000 100000] [--json FILE]

All figures come from one run on one machine; read the ratios and the growth exponents (0: the size
of memory does not matter). A topic has ten versions with vectors and three edges to others.
`query`, `latest` and `related` ask the set and touch no store; `preload` fills it; `from_store`
reads from the store what one question to the set is answered from: the newest version, the last
ten, and the neighbours. Questions are asked after the set was widened along its connections to a
hundred topics and more.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hades.memory.history.rows import edge_id, revision_key, state_id, state_key, topic_key
from hades.memory.memory import Memory
from hades.memory.recall.working_set import WorkingMemory
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.stores.sqlite.store import SqliteStore

VERSIONS, EDGES = 10, 3
DIMENSION = 64
ASKED, SETS = 50, 6
WIDENED = 40  # topics explored in each set
QUESTIONS = ("preload", "query", "latest", "related", "from_store")
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=VERSIONS)
BATCH_TOPICS = 5_000


def main() -> None:
    """Measure each size, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder) / str(size), size) for size in arguments.sizes]
    body: dict[str, Any] = {
        "machine": platform.machine(),
        "states": {str(row["states"]): row for row in rows},
    }
    if len(rows) > 1:
        grown = math.log(rows[-1]["states"] / rows[0]["states"])
        body["growth_exponent"] = {
            name: round(math.log(rows[-1][f"{name}_cpu_ms"] / rows[0][f"{name}_cpu_ms"]) / grown, 3)
            for name in QUESTIONS
        }
    show(body, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(body, indent=1))


def measure(folder: Path, size: int) -> dict[str, float]:
    """Milliseconds of each question on a memory of this size."""
    folder.mkdir()
    store = SqliteStore.open(folder / "graph.db", Mode.ADMIN)
    store.provision()
    embedder = HashingEmbedder(dimension=DIMENSION)
    topics = [f"area{number % 97}/topic {number}" for number in range(size // VERSIONS)]
    began = time.perf_counter()
    fill(store, topics, embedder.model.tag)
    figures: dict[str, float] = {"states": size, "load_s": round(time.perf_counter() - began, 1)}
    memory = Memory(store, embedder, lambda: NOW)
    chance = random.Random(0)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in QUESTIONS}
    held: list[int] = []
    for topic in chance.sample(topics, SETS):
        times["from_store"].append(timed(lambda topic=topic: _from_store(memory, topic)))
        working = WorkingMemory(store, embedder, lambda: NOW)
        times["preload"].append(timed(lambda working=working, topic=topic: working.preload(topic)))
        _widen(working, topic)
        held.append(len(working))
        for number in range(ASKED):
            times["query"].append(
                timed(lambda w=working, n=number: w.query(f"what became of topic {n} in step 7?"))
            )
            times["latest"].append(timed(lambda w=working, topic=topic: w.latest(topic)))
            times["related"].append(timed(lambda w=working, topic=topic: w.related(topic)))
    store.close()
    for name, taken in times.items():
        clock, spent = zip(*taken, strict=True)
        figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"] = (
            round(float(np.percentile(clock, share)), 4) for share in (50, 95)
        )
        figures[f"{name}_cpu_ms"] = round(float(np.median(spent)), 4)
    return figures | {"held_mean": float(np.mean(held))}


def fill(store: SqliteStore, topics: Sequence[str], model: str) -> None:
    """Versions, pointers and edges, as the service stores them; one write for some thousands of
    topics.
    """
    chance = np.random.default_rng(0)
    times = [START + number * timedelta(days=1) for number in range(VERSIONS)]
    for first in range(0, len(topics), BATCH_TOPICS):
        some = topics[first : first + BATCH_TOPICS]
        pairs = [(topic, version) for topic in some for version in range(1, VERSIONS + 1)]
        vectors = chance.standard_normal((len(pairs), DIMENSION), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        stamps = pa.array(
            [times[version - 1] for _, version in pairs], pa.timestamp("us", tz="UTC")
        )
        table = {
            "_key": [state_key(topic, version) for topic, version in pairs],
            "topic": [topic for topic, _ in pairs],
            "version": [version for _, version in pairs],
            "content": [
                f"In step {version} {topic} was looked at again and kept."
                for topic, version in pairs
            ],
            "timestamp": stamps,
            "valid_from": stamps,
            "embedding": pa.FixedSizeListArray.from_arrays(
                pa.array(vectors.ravel()), DIMENSION
            ).cast(pa.list_(pa.float32())),
            "embedding_model": [model] * len(pairs),
            "parent_state_id": [
                state_key(topic, version - 1) if version > 1 else None for topic, version in pairs
            ],
        }
        store.upsert("memory_states", pa.table(table))
        latest = {
            "_key": [topic_key(topic) for topic in some],
            "topic": some,
            "latest_state_id": [state_key(topic, VERSIONS) for topic in some],
            "version": [VERSIONS] * len(some),
            "updated_at": pa.array([times[-1]] * len(some), pa.timestamp("us", tz="UTC")),
        }
        store.upsert("memory_latest", pa.table(latest))
    for first in range(0, len(topics), BATCH_TOPICS):
        _draw(store, topics, range(first, min(first + BATCH_TOPICS, len(topics))), chance)


def _draw(
    store: SqliteStore, topics: Sequence[str], some: range, chance: np.random.Generator
) -> None:
    sources = [number for number in some for _ in range(EDGES)]
    targets = chance.integers(0, len(topics), len(sources)).tolist()
    ends = [
        tuple(state_id(state_key(topics[number], VERSIONS)) for number in pair)
        for pair in zip(sources, targets, strict=True)
        if pair[0] != pair[1]
    ]
    stamps = pa.array([START] * len(ends), pa.timestamp("us", tz="UTC"))
    keys = [revision_key(edge_id(tail, "relates_to", head, START), 1) for tail, head in ends]
    table = pa.table(
        {
            "_key": keys,
            "_from": [tail for tail, _ in ends],
            "_to": [head for _, head in ends],
            "relationship_type": ["relates_to"] * len(ends),
            "kind": ["cross_topic"] * len(ends),
            "strength": chance.random(len(ends)),
            "timestamp": stamps,
            "valid_from": stamps,
            "recorded_at": stamps,
        }
    )
    first_of_each = sorted({key: row for row, key in reversed(list(enumerate(keys)))}.values())
    store.upsert("memory_edges", table.take(pa.array(first_of_each)))


def _widen(working: WorkingMemory, topic: str) -> None:
    """Explore outwards, nearest first."""
    queue, seen = [topic], {topic}
    for _ in range(WIDENED):
        if not queue:
            return
        for state in working.explore(queue.pop(0)):
            if state.topic not in seen:
                seen.add(state.topic)
                queue.append(state.topic)


def _from_store(memory: Memory, topic: str) -> None:
    memory.latest(topic)
    memory.history(topic, limit=VERSIONS)
    for edge in memory.edges(topic):
        memory.states([edge.source, edge.target])


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of processor time: what a busy machine does not change."""
    began, spent = time.perf_counter(), time.thread_time()
    work()
    return (time.perf_counter() - began) * 1000, (time.thread_time() - spent) * 1000


def show(body: dict[str, Any], rows: Sequence[dict[str, float]]) -> None:
    """The figures as a table."""
    table = Table(title="working set, milliseconds (median / 95%)")
    for heading in ("states", "held", *QUESTIONS):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [f"{row[f'{name}_p50_ms']:.2f} / {row[f'{name}_p95_ms']:.2f}" for name in QUESTIONS]
        table.add_row(f"{row['states']:,}", f"{row['held_mean']:.0f}", *cells)
    if "growth_exponent" in body:
        table.add_row(
            "growth exponent", "", *(f"{body['growth_exponent'][name]:.2f}" for name in QUESTIONS)
        )
    Console().print(table)


if __name__ == "__main__":
    main()
