"""Quality of promotion without a language model: facts kept and stale facts dropped, on histories of real people.

Each history is made of dated facts (subject, relation, object, first and last year): a note says that a fact began, a
later note that it ended. The topic is promoted after every few notes. At the end every fact that is still true must be
in the text, and no fact that ended may stand there without the note that it ended.

    python benchmarks/bench_promotion.py [--facts FILE] [--subjects 40] [--json FILE]

FILE is by default `HADES_DATA`/yago_temporal/facts.jsonl.gz.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hades.memory.memory import Memory
from hades.ports.store import GraphStore, Mode
from hades.settings.load import load_settings
from hades.stores.sqlite.store import SqliteStore
from hades.text.sentences import sentences_of

Fact = tuple[str, str, str, int, int]
LAST = 186  # facts that last until the end of the data are still true
EVERY = 4  # notes between two promotions


def main() -> None:
    """Build the histories, promote them, print and keep the shares."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--facts", type=Path, default=load_settings().data / "yago_temporal" / "facts.jsonl.gz")
    options.add_argument("--subjects", type=int, default=40)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with gzip.open(given.facts, "rt", encoding="utf-8") as lines:
        facts: list[Fact] = [tuple(json.loads(line)) for line in lines]
    by_subject: dict[str, list[Fact]] = {}
    for fact in facts:
        by_subject.setdefault(fact[0], []).append(fact)
    busiest = sorted(by_subject, key=lambda name: (-len(by_subject[name]), name))[: given.subjects]
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "graph.db", Mode.ADMIN)
        store.provision()
        counts = [measure(store, by_subject[name]) for name in busiest]
        store.close()
    true, kept, stale, dropped = (sum(column) for column in zip(*counts, strict=True))
    result = {
        "subjects": len(busiest),
        "facts_true_at_the_end": true,
        "kept": kept,
        "share_kept": round(kept / true, 4),
        "facts_ended": stale,
        "dropped": dropped,
        "share_dropped": round(dropped / stale, 4),
        "cpu_s": round(time.process_time() - began, 1),
    }
    print(json.dumps(result, indent=2))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


class Clock:
    """The year in which a note is written."""

    def __init__(self) -> None:
        self.at = datetime(1800, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def measure(store: GraphStore, facts: list[Fact]) -> tuple[int, int, int, int]:
    """Facts true at the end and how many the last version says; facts that ended and how many it dropped."""
    notes = sorted(
        [(fact[3], 1, sentence(fact)) for fact in facts]
        + [(fact[4] + 1, 0, ended(fact)) for fact in facts if fact[4] < LAST]
    )
    topic = facts[0][0][:200]
    clock = Clock()
    memory = Memory(store, now=clock)
    for number, (year, _, text) in enumerate(notes):
        clock.at = max(clock.at, datetime(1800 + year, 1, 1, tzinfo=UTC))
        memory.add(topic, text)
        if number % EVERY == EVERY - 1:
            memory.promote(topic, f"after {number + 1} notes")
    text = memory.promote(topic, "the end").state.content
    said = set(sentences_of(text))
    true = {sentence(fact) for fact in facts if fact[4] >= LAST}
    stale = {sentence(fact) for fact in facts if fact[4] < LAST} - true
    return len(true), len(true & said), len(stale), len(stale - said)


def sentence(fact: Fact) -> str:
    """A fact as a sentence; dots inside names would end it."""
    return f"{plain(fact[0])} {words(fact[1])} {plain(fact[2])}."


def ended(fact: Fact) -> str:
    """The note that a fact ended."""
    return f"{plain(fact[0])} no longer {words(fact[1])} {plain(fact[2])}."


def words(relation: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: f" {found[1].lower()}", relation)


def plain(name: str) -> str:
    return re.sub(r"[.!?]", "", name)


if __name__ == "__main__":
    main()
