"""What a turn costs on the arXiv graph: each recipe with the question embedded, the whole turn, two
askers, the first.

    python benchmarks/bench_retrieval.py --home HOME [--questions 100] [--recipes A,B] [--json FILE]

HOME is a HADES_HOME with papers of `HADES_DATA`/arxiv ingested by MiniLM and built (`hades run
nightly`); nothing is written to it. Questions are a seeded sample: half are sentences in which
papers cite each other, half ask about titles. Each recipe answers all of them in one process whose
caches a tenth of them warmed. Beside wall time stands the processor time of the process, which a
busy machine inflates less. "Flat scan" is the product of the question with every vector of chunks
and entities and the best 24 of each, in numpy: what any exact vector search of this graph must do.
"First" is a fresh process that imports, opens and answers, on a graph of 2,000 papers embedded by
hashing and built here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.ports.graph import Kind
from hades.retrieval.answers import Answers
from hades.retrieval.core.types import AUTO, DEFAULT, RECIPES
from hades.retrieval.core.words import subqueries
from hades.settings.load import load_settings
from hades.wiring import open_answers, open_hades

SEED, MOST_SUBQUERIES, FIRST_PAPERS, FIRST_RUNS = 7, 8, 2000, 3
FIRST = """
import sys, time
began = time.perf_counter()
from hades.wiring import open_answers
found = open_answers().retrieve(sys.argv[2], recipe=sys.argv[1])
print(time.perf_counter() - began, time.process_time(), len(found.paths) + len(found.passages))
"""
ASKER = """
import json, sys
sys.path.insert(0, {root!r})
from benchmarks.bench_retrieval import asked_in_turn
asked_in_turn(sys.argv[1], json.load(sys.stdin))
"""


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--recipes", default=",".join([*RECIPES, AUTO]))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    os.environ["HADES_HOME"] = str(chosen.home)
    questions = sample(load_settings().data / "arxiv", chosen.questions)
    with open_answers() as answers:
        embedder = Remembered(answers.tools.embedder)
        embedder.embed(
            [part for question in questions for part in subqueries(question, MOST_SUBQUERIES)]
        )
        body: dict[str, Any] = {
            "questions": len(questions),
            "flat_scan": flat_scan(answers, embedder, questions),
        }
        whole = measured(answers.retrieve, questions)
        answers.tools = replace(answers.tools, embedder=embedder)
        body["recipes"] = {
            recipe: measured(lambda question: answers.retrieve(question, recipe=recipe), questions)  # noqa: B023
            for recipe in chosen.recipes.split(",")
        }
    body["whole_turn_with_minilm"] = whole
    body["turns_a_minute"] = two_askers(chosen.home, questions)
    body["first_answer"] = first_answers()
    if DEFAULT in body["recipes"]:
        ours = body["recipes"][DEFAULT]["cpu_ms"]["p50"]
        body["times_the_flat_scan"] = ours / body["flat_scan"]["cpu_ms"]["p50"]
    show(body)
    if chosen.json:
        chosen.json.write_text(json.dumps(body, indent=1), encoding="utf-8")


def sample(folder: Path, count: int) -> list[str]:
    """Sentences with citations and titles as questions, half and half, in an order that the seed
    fixes.
    """
    chance = random.Random(SEED)
    sentences = sorted({row["context"] for row in rows(folder / "citation_contexts.jsonl.gz")})
    titles = sorted({row["title"].rstrip(".") for row in rows(folder / "papers.jsonl.gz")})
    asked = chance.sample([one for one in sentences if 5 <= len(one.split()) <= 80], count // 2)
    asked += [f"What does {title} build on?" for title in chance.sample(titles, count - count // 2)]
    chance.shuffle(asked)
    return asked


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Remembered:
    """An embedder that embeds a text once: what is left is the turn of a question that was embedded
    already.
    """

    def __init__(self, embedder: Any) -> None:
        self.model, self._embedder = embedder.model, embedder
        self._known: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, progress: Any = None) -> Any:
        """Vectors of the texts, in their order."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known |= dict(zip(missing, self._embedder.embed(missing), strict=True))
        return np.array([self._known[text] for text in texts])


def measured(answer: Callable[[str], Any], questions: Sequence[str]) -> dict[str, Any]:
    """Wall and processor time of each question, in milliseconds, and what share of them was cut by
    the clock.
    """
    for question in questions[: len(questions) // 10]:
        answer(question)
    wall, cpu, late = [], [], 0
    for question in questions:
        began, spent = time.perf_counter(), time.process_time()
        found = answer(question)
        wall.append((time.perf_counter() - began) * 1e3)
        cpu.append((time.process_time() - spent) * 1e3)
        late += found is not None and "timeout" in found.reasons
    return {"wall_ms": spread(wall), "cpu_ms": spread(cpu), "timeouts": late / len(questions)}


def spread(values: Sequence[float]) -> dict[str, float]:
    """The middle and the slow end."""
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": cuts[9], "p95": cuts[18]}


def flat_scan(answers: Answers, embedder: Remembered, questions: Sequence[str]) -> dict[str, Any]:
    """Every vector compared and the best few taken, by plain numpy on one core."""
    view, model = answers.view, embedder.model.tag
    spaces = []
    first = 0
    for kind, count in view.info.nodes.items():
        if kind in (Kind.CHUNK, Kind.ENTITY):
            values, there = view.vectors(np.arange(first, first + count), model=model)
            spaces.append(
                values[there]
                / np.maximum(np.linalg.norm(values[there], axis=1, keepdims=True), 1e-9)
            )
        first += count

    def scan(question: str) -> None:
        vector = embedder.embed([question])[0]
        for space in spaces:
            scores = np.einsum("ij,j->i", space, vector)
            best = np.argpartition(scores, -24)[-24:]
            best[np.argsort(-scores[best])]

    return measured(scan, questions)


def two_askers(home: Path, questions: Sequence[str]) -> dict[str, float]:
    """Whole turns a minute of two processes at once, embedding included, each with half of the
    questions.
    """
    environment = {
        **os.environ,
        "HADES_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", ASKER.format(root=str(ROOT)), DEFAULT]
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "env": environment,
    }
    askers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(2)]
    for place, asker in enumerate(askers):
        asker.stdin.write(json.dumps(questions[place::2]))
        asker.stdin.close()
    told = [json.loads(asker.stdout.readline()) for asker in askers]
    for asker in askers:
        asker.wait()
    wall = max(one["ended"] for one in told) - min(one["began"] for one in told)
    cpu = sum(one["cpu"] for one in told)
    return {
        "by_wall": len(questions) / wall * 60,
        "by_cpu_of_two_cores": len(questions) / (cpu / 2) * 60,
    }


def asked_in_turn(recipe: str, questions: Sequence[str]) -> None:
    """Answer them all in this process and print when and at what cost."""
    with open_answers() as answers:
        for question in questions[:5]:
            answers.retrieve(question, recipe=recipe)
        began, spent = time.time(), time.process_time()
        for question in questions:
            answers.retrieve(question, recipe=recipe)
        print(
            json.dumps({"began": began, "ended": time.time(), "cpu": time.process_time() - spent})
        )


def first_answers() -> dict[str, Any]:
    """Seconds of a fresh process from its first import to its first answer, by recipe; the best of
    a few.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HADES_HOME": f"{folder}/home", "HADES_EMBEDDER": "hashing"}
        question = built(Path(folder), environment)
        return {
            recipe: first_answer(recipe, question, environment)
            for recipe in ("vector", DEFAULT, "pathrag", "hipporag")
        }


def built(folder: Path, environment: dict[str, str]) -> str:
    """A small graph of its own, and a question it can answer."""
    papers = rows(load_settings().data / "arxiv" / "papers.jsonl.gz")[:FIRST_PAPERS]
    (folder / "papers.jsonl").write_text("\n".join(map(json.dumps, papers)), encoding="utf-8")
    with open_hades(load_settings(environment, folder)) as hades:
        hades.ingest.arxiv(folder / "papers.jsonl")
        hades.build(as_of=datetime(2026, 1, 5, tzinfo=UTC))
    return f"What does {papers[0]['title']} build on?"


def first_answer(recipe: str, question: str, environment: dict[str, str]) -> dict[str, float]:
    """Wall time from the first line of the program on, processor time of the whole process."""
    command = [sys.executable, "-c", FIRST, recipe, question]
    runs = []
    for _ in range(FIRST_RUNS + 1):  # the first finds files that nobody has read
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, _, found = map(float, done.stdout.split())
        assert found > 0, f"{recipe} found nothing"
        runs.append((wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime))
    walls, cpus = zip(*runs[1:], strict=True)
    return {"wall_s": min(walls), "cpu_s": min(cpus)}


def show(body: dict[str, Any]) -> None:
    """Two tables: milliseconds of turns, and the rest."""
    turns = Table(
        title=f"{body['questions']} questions, {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    for heading in ("ms a turn", "cpu p50", "cpu p95", "wall p50", "wall p95"):
        turns.add_column(heading, justify="left" if heading == "ms a turn" else "right")
    named = {
        **body["recipes"],
        "whole turn with MiniLM": body["whole_turn_with_minilm"],
        "flat scan": body["flat_scan"],
    }
    for name, one in named.items():
        figures = [one[clock][cut] for clock in ("cpu_ms", "wall_ms") for cut in ("p50", "p95")]
        turns.add_row(name, *(f"{figure:.1f}" for figure in figures))
    rest = Table(title="and")
    rest.add_column("what")
    rest.add_column("figure", justify="right")
    for name, figure in body["turns_a_minute"].items():
        rest.add_row(f"turns a minute of two processes, {name.replace('_', ' ')}", f"{figure:,.0f}")
    for recipe, one in body["first_answer"].items():
        rest.add_row(
            f"first answer of a process, {recipe}",
            f"{one['wall_s']:.2f} s, {one['cpu_s']:.2f} s of cpu",
        )
    if "times_the_flat_scan" in body:
        rest.add_row(
            f"{DEFAULT} against the flat scan, cpu", f"{body['times_the_flat_scan']:.1f} times"
        )
    console = Console()
    console.print(turns)
    console.print(rest)


if __name__ == "__main__":
    main()
