"""Searching a large memory: processor time of `search` and `context` in one process, and of its first question.

    python benchmarks/bench_memory_search.py [--states 100000] [--json FILE]

Five versions a topic, of sentences made from a fixed vocabulary with a few rare words; every state has a vector of the
hashing embedder. Between questions a state is added now and then, so the figures include keeping the index fresh.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hades.memory.history.states import NewState
from hades.memory.service import Memory
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.stores.sqlite.store import SqliteStore

VERSIONS = 5
ASKED = 200
WRITE_EVERY = 10  # questions between two writes
BATCH = 2_000


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
        memory = Memory(store, HashingEmbedder(), tokenizer=MiniLmTokenizer())
        fill(memory, given.states, chance)
        first = cpu_ms(lambda: memory.search(sentence(chance), limit=10))
        build = cpu_ms(lambda: memory.search(sentence(chance), limit=10))
        searches = ask(memory, chance, lambda text: memory.search(text, limit=10))
        contexts = ask(memory, chance, lambda text: memory.retrieve_within_budget(text, 4_000), ASKED // 4)
        store.close()
    result = {
        "states": given.states,
        "first_question_ms": round(first, 1),
        "index_built_ms": round(build, 1),
        "search": percentiles(searches),
        "context": percentiles(contexts),
    }
    given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def fill(memory: Memory, states: int, chance: random.Random) -> None:
    """Write the states, some versions of each topic together."""
    pending: list[NewState] = []
    for number in range(states // VERSIONS):
        base = sentence(chance)
        topic = f"area{number % 50}/topic {number}"
        pending += [NewState(topic, f"{base} {sentence(chance)} step {version}") for version in range(VERSIONS)]
        if len(pending) >= BATCH:
            memory.add_many(pending)
            pending = []
    memory.add_many(pending)


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
