"""Forks writers of one memory, kills some at random moments, looks at what they left; prints one
JSON report.

A writer is killed by a timer on its own processor time, so that the moment does not depend on how
busy the machine is.
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

from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore
from tests.integration.drivers import in_child

BATCH = 5


def main(path: Path, writers: int, versions: int, topics: int, kills: int) -> None:
    """The writers share the work; one that is killed is followed by another that goes on."""
    chance = random.Random(20261115)
    began = time.monotonic()
    in_child(lambda: SqliteStore.open(path, Mode.ADMIN).provision())
    shares = [versions // writers + (number < versions % writers) for number in range(writers)]
    notes = [path.with_name(f"writer{number}.log") for number in range(writers)]
    for note in notes:
        note.touch()
    lives, running, killed = dict.fromkeys(range(writers), 0), {}, 0

    def begin(number: int, *, dies: bool) -> None:
        seconds = chance.uniform(0.005, 0.12) if dies else 0.0
        child = start(path, number, shares[number], topics, notes[number], lives[number], seconds)
        running[child] = number

    for number in range(writers):
        begin(number, dies=number < kills)
    while running:
        ended, status = os.wait()
        number = running.pop(ended)
        if os.WIFSIGNALED(status):
            killed += 1
            lives[number] += 1
            begin(number, dies=killed + len(running) < kills)
        elif status:
            sys.exit(f"writer {number} ended with status {status}")
    spent = os.times()
    taken = {
        "killed": killed,
        "write_seconds": round(time.monotonic() - began, 1),
        "write_processor_seconds": round(spent.children_user + spent.children_system, 1),
    }
    result = path.with_suffix(".json")
    in_child(lambda: result.write_text(json.dumps(inspect(path, notes))))
    sys.stdout.write(
        json.dumps(
            {
                **taken,
                "seconds": round(time.monotonic() - began, 1),
                **json.loads(result.read_text()),
            }
        )
    )


def start(
    path: Path, number: int, share: int, topics: int, note: Path, life: int, seconds: float
) -> int:
    """A writer in a process of its own, which the system ends after so much processor time; 0 is
    never.
    """
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        write(path, number, share, topics, note, life)
        os._exit(0)
    return child


def write(path: Path, number: int, share: int, topics: int, note: Path, life: int) -> None:
    """Add versions until the writer's share is done, noting each batch that was committed."""
    memory = Memory(SqliteStore.open(path, Mode.READ_WRITE))
    chance = random.Random(number * 1_000 + life)
    log = os.open(note, os.O_WRONLY | os.O_APPEND)
    done = sum(len(line.split()) for line in note.read_text().splitlines())
    while done < share:
        size = min(chance.randint(1, BATCH), share - done)
        new = [
            NewState(
                f"topic {chance.randrange(topics)}",
                f"writer {number}, life {life}, step {done + step}. " * 4,
            )
            for step in range(size)
        ]
        written = memory.add_many(new, who=f"writer {number}")
        os.write(log, (" ".join(state.key for state in written) + "\n").encode())
        done += size


def inspect(path: Path, notes: list[Path]) -> dict[str, object]:
    """What is wrong: gaps, lost versions, a wrong latest, a trace that does not rebuild."""
    store = SqliteStore.open(path, Mode.READ_WRITE)
    memory = Memory(store)
    noted = [
        key for note in notes for line in note.read_text().splitlines() for key in line.split()
    ]
    held = {
        key
        for batch in store.scan("memory_states", columns=["_key"])
        for key in batch.column("_key").to_pylist()
    }
    wrong_latest = []
    unreadable = []
    for topic in memory.topics():
        history = memory.history(topic)
        latest = memory.latest(topic)
        if latest is None or latest != history[-1] or latest.version != len(history):
            wrong_latest.append(topic)
        unreadable += [state.key for state in history if not state.content.startswith("writer ")]
    return {
        "versions": len(held),
        "noted": len(noted),
        "noted_twice": len(noted) - len(set(noted)),
        "lost": sorted(set(noted) - held),
        "topics": len(memory.topics()),
        "edges": store.count("memory_edges"),
        "acts": store.count("memory_audit"),
        "wrong_latest": wrong_latest,
        "unreadable": unreadable,
        "problems": [*memory.check(), *store.check()],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:6]))
