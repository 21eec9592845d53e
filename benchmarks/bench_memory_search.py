"""Searching a large memory: processor time of `search` and `context` in one process, and of its first question.

    python benchmarks/bench_memory_search.py [--states 100000] [--json FILE]

Five versions a topic, of sentences made from a fixed vocabulary with a few rare words; every state has a vector of the
hashing embedder and every topic an edge to another. The states are written in bulk, as `add_many` leaves versions that
share too little to be kept as deltas. Between questions a state is added now and then, so the figures include keeping
the index fresh.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hades.memory.history.rows import edge_id, revision_key, state_id, state_key, topic_key
from hades.memory.memory import Memory
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.stores.sqlite.store import SqliteStore
from schemas.memory import LatestState, MemoryEdge, MemoryEdgeKind, MemoryState
from schemas.record import to_table

VERSIONS = 5
ASKED = 200
WRITE_EVERY = 10  # questions between two writes
BATCH_TOPICS = 4_000
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def main() -> None:
    """Fill a memory, ask it, print and keep the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--states", type=int, default=100_000)
    options.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "memory_search.json")
    given = options.parse_args()
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "graph.db", Mode.ADMIN)
        store.provision()
        embedder = HashingEmbedder()
        memory = Memory(store, embedder, tokenizer=MiniLmTokenizer())
        filled = cpu_ms(lambda: fill(store, embedder, given.states, chance))
        first = cpu_ms(lambda: memory.search(sentence(chance), limit=10))
        searches = ask(memory, chance, lambda text: memory.search(text, limit=10))
        contexts = ask(memory, chance, lambda text: memory.retrieve_within_budget(text, 4_000), ASKED // 4)
        store.close()
    result = {
        "states": given.states,
        "fill_s": round(filled / 1_000, 1),
        "first_question_ms": round(first, 1),
        "search": percentiles(searches),
        "context": percentiles(contexts),
    }
    given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def fill(store: SqliteStore, embedder: HashingEmbedder, states: int, chance: random.Random) -> list[str]:
    """Write versions, pointers and edges, some thousands of topics together; returns the topics."""
    topics = [f"area{number % 50}/topic {number}" for number in range(states // VERSIONS)]
    for first in range(0, len(topics), BATCH_TOPICS):
        some = topics[first : first + BATCH_TOPICS]
        store.upsert("memory_states", to_table(MemoryState, _versions(some, embedder, chance)))
        pointers = [
            LatestState(
                key=topic_key(topic),
                topic=topic,
                latest_state_id=state_key(topic, VERSIONS),
                version=VERSIONS,
                updated_at=START + VERSIONS * DAY,
                began=START + VERSIONS * DAY,
                in_order=True,
            )
            for topic in some
        ]
        store.upsert("memory_latest", to_table(LatestState, pointers))
    for first in range(0, len(topics), BATCH_TOPICS):
        ends = [(topic, chance.choice(topics)) for topic in topics[first : first + BATCH_TOPICS]]
        edges = {edge.key: edge for edge in (_edge(*pair) for pair in ends if pair[0] != pair[1])}
        store.upsert("memory_edges", to_table(MemoryEdge, list(edges.values())))
    return topics


def _versions(topics: list[str], embedder: HashingEmbedder, chance: random.Random) -> list[MemoryState]:
    contents = [f"{sentence(chance)} {sentence(chance)} step {version}" for _ in topics for version in range(VERSIONS)]
    vectors = embedder.embed(contents)
    pairs = ((topic, version) for topic in topics for version in range(1, VERSIONS + 1))
    return [
        MemoryState(
            key=state_key(topic, version),
            topic=topic,
            content=content,
            version=version,
            timestamp=START + version * DAY,
            valid_from=START + version * DAY,
            embedding=tuple(vector.tolist()),
            embedding_model=embedder.model.tag,
            parent_state_id=state_key(topic, version - 1) if version > 1 else None,
        )
        for (topic, version), content, vector in zip(pairs, contents, vectors, strict=True)
    ]


def _edge(topic: str, other: str) -> MemoryEdge:
    source, target = (state_id(state_key(name, VERSIONS)) for name in (topic, other))
    return MemoryEdge(
        key=revision_key(edge_id(source, "relates_to", target, START), 1),
        source=source,
        target=target,
        relationship_type="relates_to",
        kind=MemoryEdgeKind.CROSS_TOPIC,
        timestamp=START,
        valid_from=START,
        recorded_at=START,
    )


def ask(memory: Memory, chance: random.Random, question: Callable[[str], object], times: int = ASKED) -> list[float]:
    """Milliseconds of processor time of each question."""
    taken = []
    for number in range(times):
        if number % WRITE_EVERY == 0:
            memory.add(f"area1/topic {chance.randrange(1_000)}", sentence(chance))
        text = sentence(chance)
        taken.append(cpu_ms(lambda text=text: question(text)))  # type: ignore[misc]
    return taken


def cpu_ms(work: Callable[[], object]) -> float:
    """Processor time of a call, of all threads."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1_000


def percentiles(taken: list[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    ordered = sorted(taken)
    return {"p50_ms": round(ordered[len(ordered) // 2], 2), "p95_ms": round(ordered[int(len(ordered) * 0.95)], 2)}


def sentence(chance: random.Random) -> str:
    """A sentence of common and rare words."""
    common = [f"word{int(chance.paretovariate(0.9)) % 4_000}" for _ in range(8)]
    return " ".join([*common, f"rare{chance.randrange(50_000)}"])


if __name__ == "__main__":
    main()
