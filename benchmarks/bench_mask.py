"""What a moment in the past costs: the same questions with and without a mask, on a graph whose
every edge is dated.

    python benchmarks/bench_mask.py [--papers 2000] [--questions 60] [--recipes A,B] [--json FILE]

Papers of `HADES_DATA`/arxiv, embedded by hashing and built here; then every relation and mention is
dated: true and known since a day of 2007 to 2017. The mask stands after all of them, so it hides
nothing, both ways find the same, and the difference is the mask alone. Each question is asked both
ways in turn, in an order that alternates, and the ratio is of processor time, which a busy machine
inflates less: the best of a few runs of each question, summed. Every masked run stands at a moment
of its own, so nothing that an earlier one learned helps it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.evaluation.rankers import MOMENT
from hades.retrieval.answers import Answers
from hades.settings.load import load_settings
from hades.snapshot.publish import publish
from hades.wiring import open_answers, open_hades

SEED, RUNS = 7, 5
DATED = ("relations", "mentions")
FIRST_DAY = datetime(2007, 1, 1, tzinfo=UTC)


def main() -> None:
    """Build, measure, print, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--papers", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--recipes", default="hirag_pathrag,pathrag,graphrag,hipporag,memory")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HADES_HOME": f"{folder}/home", "HADES_EMBEDDER": "hashing"}
        titles, edges = built(Path(folder), chosen.papers)
        chance = random.Random(SEED)
        questions = [
            f"What does {one} build on?" for one in chance.sample(titles, chosen.questions)
        ]
        with open_answers() as answers:
            recipes = {
                name: compared(answers, name, questions) for name in chosen.recipes.split(",")
            }
    body = {
        "papers": len(titles),
        "dated_edges": edges,
        "questions": len(questions),
        "recipes": recipes,
    }
    table = Table("recipe", "open ms", "masked ms", "masked / open", "same answers")
    for name, row in recipes.items():
        figures = (
            f"{row[column]:.2f}" for column in ("open_cpu_ms", "masked_cpu_ms", "masked_over_open")
        )
        table.add_row(name, *figures, f"{row['same_answers']:.0%}")
    Console().print(table)
    if chosen.json:
        chosen.json.write_text(json.dumps(body, indent=1), encoding="utf-8")


def built(folder: Path, papers: int) -> tuple[list[str], int]:
    """A published graph of dated edges: the titles in it, and how many edges were dated."""
    source = load_settings().data / "arxiv" / "papers.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(papers), strict=False)]
    corpus = folder / "papers.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with open_hades() as hades:
        hades.ingest.arxiv(corpus)
        hades.build(as_of=MOMENT)
        edges = sum(dated(hades.store, collection) for collection in DATED)
        publish(hades.store, Path(os.environ["HADES_HOME"]))
    return [row["title"].rstrip(".") for row in rows], edges


def dated(store: Any, collection: str) -> int:
    """Give every edge a day since when it is true and known, spread over years by its place."""
    keys = [
        key
        for batch in store.scan(collection, columns=["_key"])
        for key in batch.column("_key").to_pylist()
    ]
    days = [FIRST_DAY + timedelta(days=place % 4000) for place in range(len(keys))]
    moments = pa.array(days, pa.timestamp("us", "UTC"))
    rows = pa.table(
        {"_key": pa.array(keys, pa.string()), "valid_from": moments, "recorded_at": moments}
    )
    store.patch(collection, rows)
    return len(keys)


def compared(answers: Answers, recipe: str, questions: list[str]) -> dict[str, float]:
    """Processor time open and masked, their ratio, and the share of questions answered alike."""

    moments = (MOMENT + timedelta(seconds=second) for second in count())

    def ask(question: str, is_masked: bool) -> Any:
        if not is_masked:
            return answers.retrieve(question, recipe=recipe)
        moment = next(moments)
        return answers.retrieve(question, recipe=recipe, as_of=moment, known_at=moment)

    for question in questions[: len(questions) // 10]:
        ask(question, False), ask(question, True)
    open_ms = masked_ms = 0.0
    same = 0
    for place, question in enumerate(questions):
        spent: list[list[float]] = [[], []]
        found: list[Any] = [None, None]
        for run in range(RUNS):
            for way in (0, 1) if (place + run) % 2 else (1, 0):
                began = time.process_time()
                found[way] = ask(question, bool(way))
                spent[way].append((time.process_time() - began) * 1e3)
        open_ms, masked_ms = open_ms + min(spent[0]), masked_ms + min(spent[1])
        same += [one.id for one in found[0].passages] == [one.id for one in found[1].passages]
    return {
        "open_cpu_ms": open_ms / len(questions),
        "masked_cpu_ms": masked_ms / len(questions),
        "masked_over_open": masked_ms / open_ms,
        "same_answers": same / len(questions),
    }


if __name__ == "__main__":
    main()
