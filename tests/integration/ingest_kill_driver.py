"""Kills ingestion at random moments, runs it again, and compares the snapshot with an undisturbed
one; prints JSON.
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

from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.passages import PassagesSource
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.stores.sqlite.store import SqliteStore

NAMES = [
    "Ada Lovelace",
    "Charles Babbage",
    "Grace Hopper",
    "Alan Turing",
    "London",
    "Analytical Engine",
]
VERBS = ["met", "admired", "wrote about", "worked near", "remembered"]


def main(folder: Path, kills: int, passages: int) -> None:
    """An undisturbed build, then rounds of kill and run again on fresh homes."""
    chance = random.Random(20261115)
    corpus = folder / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps(row) for row in rows(chance, passages)))
    finish(build(corpus, folder / "undisturbed"))
    expected = published(folder / "undisturbed")
    began = time.monotonic()
    finish(build(corpus, folder / "again"))
    whole = time.monotonic() - began
    again = published(folder / "again")
    different, finished_before = [], 0
    for number in range(kills):
        home, too_late = killed_midway(corpus, folder / f"home{number}", chance.random() * whole)
        finished_before += too_late
        whole *= (
            0.9**too_late
        )  # the machine has become faster since the undisturbed build was timed
        finish(build(corpus, home))
        if published(home) != expected:
            different.append(number)
    report = {
        "kills": kills,
        "second_home": again == expected,
        "different": different,
        "late": finished_before,
    }
    sys.stdout.write(json.dumps(report))


def killed_midway(corpus: Path, home: Path, seconds: float) -> tuple[Path, int]:
    """A home whose build was killed before it ended, and how many builds had to be thrown away for
    ending first.
    """
    for attempt in range(20):
        fresh = home.with_name(f"{home.name}-{attempt}")
        child = build(corpus, fresh)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not (fresh / "done").exists():
            return fresh, attempt
        seconds *= 0.7
    sys.exit("no build could be killed before it ended")


def rows(chance: random.Random, passages: int) -> list[dict[str, str]]:
    return [
        {
            "id": f"p{number}",
            "title": chance.choice(NAMES) if number % 3 else f"Meeting {number}",
            "text": " ".join(
                f"{chance.choice(NAMES)} {chance.choice(VERBS)} {chance.choice(NAMES)} in "
                f"{1800 + number}."
                for _ in range(4)
            ),
        }
        for number in range(passages)
    ]


def build(corpus: Path, home: Path) -> int:
    """Start a child that ingests and publishes; its process id."""
    child = os.fork()
    if child:
        return child
    store = SqliteStore.open(home / "graph.db", Mode.ADMIN)
    store.provision()
    ingest(
        IngestContext(store, HashingEmbedder(dimension=64), MiniLmTokenizer(), home / "cache"),
        PassagesSource(corpus),
    )
    (home / "manifest").write_text(publish(store, home).manifest_hash)
    open_snapshot(home).close()
    (home / "done").touch()
    os._exit(0)


def finish(child: int) -> None:
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"a build ended with status {status}")


def published(home: Path) -> str:
    return (home / "manifest").read_text()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
