"""Memory from ten thousand to a million states: latest and as-of look-ups, what deltas save, what
writing costs.

    python benchmarks/bench_memory.py [--sizes 10000 100000 1000000] [--json FILE]

All figures come from one run on one machine; read the ratios and the growth exponents (0: the size
does not matter, 1: twice the states take twice as long). A hundred versions a topic; the states are
written in bulk as deltas with keyframes, as `add_many` leaves them. The comparison is a walk over
all versions of a topic, which is what a store without an index does for an as-of question.
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
from statistics import median
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hades.memory.history.rows import WHOLE, delta_between, state_key, topic_key
from hades.memory.history.states import KEYFRAME_EVERY, NewState
from hades.memory.memory import Memory
from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore

VERSIONS = 100  # of a topic
ASKED = 200
QUESTIONS = ("latest", "as_of", "known_at", "as_of_by_walk")
START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(minutes=1)
BATCH_TOPICS = 500


def main() -> None:
    """Measure each size, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    body: dict[str, Any] = {"machine": platform.machine(), "deltas": savings()}
    with tempfile.TemporaryDirectory() as folder:
        body["writing"] = writing(Path(folder))
        rows = [measure(Path(folder) / str(size), size) for size in arguments.sizes]
    body["states"] = {str(row["states"]): row for row in rows}
    if len(rows) > 1:
        grown = math.log(rows[-1]["states"] / rows[0]["states"])
        body["growth_exponent"] = {
            name: math.log(rows[-1][f"{name}_cpu_ms"] / rows[0][f"{name}_cpu_ms"]) / grown
            for name in QUESTIONS
        }
    show(body, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(body, indent=1))


def measure(folder: Path, size: int) -> dict[str, float]:
    """Median milliseconds of each question on a memory of this size."""
    folder.mkdir()
    store = SqliteStore.open(folder / "graph.db", Mode.ADMIN)
    store.provision()
    topics = [f"topic {number}" for number in range(size // VERSIONS)]
    began = time.perf_counter()
    fill(store, topics)
    loaded = time.perf_counter() - began
    memory = Memory(store)
    chance = random.Random(0)
    asked = [
        (chance.choice(topics), START + chance.randrange(VERSIONS) * STEP) for _ in range(ASKED)
    ]
    late = START + VERSIONS * STEP
    figures = {"states": float(size), "load_s": loaded}
    figures |= each("latest", lambda topic, _: memory.latest(topic), asked)
    figures |= each("as_of", memory.at, asked)
    figures |= each(
        "known_at", lambda topic, moment: memory.at(topic, late, known_at=moment), asked
    )
    figures |= each("as_of_by_walk", lambda topic, moment: walk(memory, topic, moment), asked[:20])
    store.close()
    figures["file_bytes_per_state"] = (folder / "graph.db").stat().st_size / size
    return figures


def walk(memory: Memory, topic: str, moment: datetime) -> str | None:
    """The as-of answer without an index."""
    held = [
        state for state in memory.history(topic) if state.valid_from and state.valid_from <= moment
    ]
    return held[-1].content if held else None


def fill(store: SqliteStore, topics: Sequence[str]) -> None:
    """Every topic's versions, as the service stores them; one write for some hundreds of topics."""
    contents = edited_pages(VERSIONS, random.Random(1), lines=12)
    chain = stored_chain(contents)
    for first in range(0, len(topics), BATCH_TOPICS):
        some = topics[first : first + BATCH_TOPICS]
        rows = [
            (state_key(topic, version), topic, version, *chain[version - 1])
            for topic in some
            for version in range(1, VERSIONS + 1)
        ]
        keys, names, versions, content, recipe = zip(*rows, strict=True)
        times = [START + (version - 1) * STEP for version in versions]
        parents = [
            state_key(topic, version - 1) if version > 1 else None for _, topic, version, *_ in rows
        ]
        stamps = pa.array(times, pa.timestamp("us", tz="UTC"))
        table = {
            "_key": keys,
            "topic": names,
            "version": versions,
            "content": content,
            "diff_from_parent": pa.array(recipe, pa.string()),
            "is_delta": [text is not None for text in recipe],
            "timestamp": stamps,
            "valid_from": stamps,
            "parent_state_id": pa.array(parents, pa.string()),
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


def stored_chain(contents: Sequence[str]) -> list[tuple[str, str | None]]:
    """Content and recipe of each version's row, the newest whole."""
    chain: list[tuple[str, str | None]] = [(contents[0], None)]
    for number in range(1, len(contents)):
        recipe, pieces = delta_between(contents[number - 1], contents[number])
        if (number + 1) % KEYFRAME_EVERY == 1:
            chain.append((contents[number], None))
        elif number == len(contents) - 1:
            chain.append((contents[number], WHOLE + recipe))
        else:
            chain.append((pieces, recipe))
    return chain


def savings() -> dict[str, Any]:
    """Share of the characters that deltas with keyframes save, for kinds of change; 200 versions
    each.
    """
    chance = random.Random(2)
    kinds = {
        "one line of forty edited": edited_pages(200, chance, lines=40),
        "one line of two hundred edited": edited_pages(200, chance, lines=200),
        "a log that grows by a line": grown_logs(200, chance),
        "a short note said anew": [sentence(chance) for _ in range(200)],
    }
    body: dict[str, Any] = {"keyframe_every": KEYFRAME_EVERY}
    for name, contents in kinds.items():
        kept = sum(len(content) + len(recipe or "") for content, recipe in as_kept(contents))
        body[name] = 1 - kept / sum(map(len, contents))
    return body


def as_kept(contents: Sequence[str]) -> list[tuple[str, str | None]]:
    """The rows that the service leaves, read from a real store."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "graph.db", Mode.ADMIN)
        store.provision()
        memory = Memory(store)
        memory.add_many([NewState("topic", content) for content in contents])
        assert [state.content for state in memory.history("topic")] == list(contents)
        rows = [row for batch in store.scan("memory_states") for row in batch.to_pylist()]
        store.close()
    return [(row["content"], row["diff_from_parent"]) for row in rows]


def writing(folder: Path) -> dict[str, float]:
    """What a version costs to write: one at a time, and in bulk."""
    store = SqliteStore.open(folder / "writing.db", Mode.ADMIN)
    store.provision()
    memory = Memory(store)
    pages = edited_pages(40, random.Random(3), lines=12)
    memory.add_many(
        [NewState(f"topic {number % 50}", pages[number % 40]) for number in range(2_000)]
    )
    began = time.perf_counter()
    for number, page in enumerate(pages):
        memory.add(f"topic {number}", page)
    single = (time.perf_counter() - began) / len(pages)
    began = time.perf_counter()
    memory.add_many(
        [NewState(f"topic {number % 50}", pages[number % 40]) for number in range(2_000)]
    )
    bulk = (time.perf_counter() - began) / 2_000
    store.close()
    return {"add_ms": single * 1e3, "add_many_ms": bulk * 1e3, "bulk_is_faster": single / bulk}


def edited_pages(count: int, chance: random.Random, *, lines: int) -> list[str]:
    """A page in which one line changes at a time."""
    page = [sentence(chance) for _ in range(lines)]
    pages = []
    for _ in range(count):
        page[chance.randrange(lines)] = sentence(chance)
        pages.append("\n".join(page))
    return pages


def grown_logs(count: int, chance: random.Random) -> list[str]:
    """A text that gains a line each time."""
    lines: list[str] = []
    logs = []
    for _ in range(count):
        lines.append(sentence(chance))
        logs.append("\n".join(lines))
    return logs


def sentence(chance: random.Random) -> str:
    """Ten words."""
    return " ".join(
        "".join(chance.choice("etaoinshrdlu") for _ in range(chance.randint(2, 9)))
        for _ in range(10)
    )


def each(
    name: str, ask: Callable[[str, datetime], object], asked: Sequence[tuple[str, datetime]]
) -> dict[str, float]:
    """Median milliseconds of a question by the clock and by the processor, after a few that warm
    the caches up.
    """
    for topic, moment in asked[:5]:
        ask(topic, moment)
    clock, processor = [], []
    for topic, moment in asked:
        began, used = time.perf_counter(), time.thread_time()
        ask(topic, moment)
        clock.append((time.perf_counter() - began) * 1e3)
        processor.append((time.thread_time() - used) * 1e3)
    return {f"{name}_ms": median(clock), f"{name}_cpu_ms": median(processor)}


def show(body: dict[str, Any], rows: Sequence[dict[str, float]]) -> None:
    """The figures as tables."""
    console = Console(width=120)
    table = Table(
        "states",
        *(f"{name.replace('_', ' ')} ms (cpu)" for name in QUESTIONS),
        "bytes a state",
        "load s",
    )
    for row in rows:
        table.add_row(
            f"{row['states']:,.0f}",
            *(f"{row[f'{name}_ms']:.2f} ({row[f'{name}_cpu_ms']:.2f})" for name in QUESTIONS),
            f"{row['file_bytes_per_state']:.0f}",
            f"{row['load_s']:.0f}",
        )
    console.print(table)
    console.print("growth exponents of processor time", body.get("growth_exponent", {}))
    console.print("share of characters saved", body["deltas"])
    console.print("writing", body["writing"])


if __name__ == "__main__":
    main()
