"""One graph on both views: the snapshot, and rows fetched over AQL from the loopback double of the
tests.

    python benchmarks/bench_views.py [--papers 200] [--questions 10] [--json FILE]
    python benchmarks/bench_views.py --home HOME [--questions 100]

Papers are those of HADES_DATA, vectors those of words. With --home it is a graph of all papers that
was built before, with its own vectors, which are searched on the snapshot, because the double
compares them one by one. No turn ends by the clock (profile `evaluation`), because the double
interprets AQL in Python: its milliseconds say how much is fetched, not how fast a server is. `same`
is the share of questions with the same passages in the same order; of the others, `alike` says how
many first passages agree.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.night.report import build
from hades.night.stage import begin
from hades.ports.graph import Kind
from hades.ports.services import EmbeddingModel
from hades.ports.store import GraphStore, Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.pipeline import Tools, retrieve
from hades.settings.tree import Settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.remote import OpenView
from hades.snapshot.view import GraphView
from hades.stores.arango import neighbourhood
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.neighbourhood import ArangoView
from hades.stores.arango.store import ArangoStore
from hades.wiring import open_hades
from schemas.answer import Retrieval
from schemas.catalogue import COLLECTIONS, NAMES
from schemas.plan import Plan
from tests.arango_double.server import ArangoDouble

DATA = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data")) / "arxiv"
RECIPES = ("auto", "hirag_pathrag", "hipporag")
AT = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORD = "of the double"


def main() -> None:
    """Measure and print; with --json also write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--papers", type=int, default=200)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if chosen.home:
        figures = measure_home(chosen.home, chosen.questions)
    else:
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(Path(folder), chosen.papers, chosen.questions)
    print(json.dumps(figures, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def measure(folder: Path, papers: int, questions: int) -> dict[str, Any]:
    """Build the graph, copy its rows to the double, and ask both views."""
    with gzip.open(DATA / "papers.jsonl.gz", "rt") as lines:
        rows = list(islice(lines, papers))
    (folder / "papers.jsonl").write_text("".join(rows), "utf-8")
    asked = [
        _question(json.loads(row), place)
        for place, row in enumerate(rows[:: max(1, papers // questions)])
    ]
    with open_hades(Settings(home=folder / "home", embedder="hashing")) as hades:
        hades.ingest.arxiv(folder / "papers.jsonl", DATA / "citations.jsonl.gz")
        build(hades.build_context, hades.ingest, replace(begin(), learns=False))
        with copied(hades.store) as server:
            views = (open_snapshot(hades.home), ArangoView(server))
            figures = {
                recipe: compare(views, asked[:questions], recipe, HashingEmbedder())
                for recipe in RECIPES
            }
    return {"papers": papers, "questions": min(questions, len(asked)), **figures}


def measure_home(home: Path, questions: int) -> dict[str, Any]:
    """Copy the rows of a graph that was built before to the double, and ask both views."""
    with gzip.open(DATA / "papers.jsonl.gz", "rt") as lines:
        rows = lines.readlines()
    asked = [
        _question(json.loads(row), place)
        for place, row in enumerate(rows[:: len(rows) // questions])
    ][:questions]
    with open_hades(Settings(home=home)) as hades, copied(hades.store) as server:
        views = (open_snapshot(home), _Nearest(server, open_snapshot(home)))
        figures = {recipe: compare(views, asked, recipe, hades.embedder) for recipe in RECIPES}
    return {"papers": len(rows), "questions": len(asked), **figures}


class _Nearest(ArangoView):
    """Searches by vector on a snapshot of the same graph; everything else over AQL."""

    def __init__(self, server: ArangoStore, snapshot: GraphView) -> None:
        super().__init__(server)
        self._snapshot = snapshot

    def _find_near(
        self, vectors: Sequence[NDArray[np.float32]], model: str
    ) -> tuple[list[str], int]:
        found = [
            self._snapshot.nearest(one, kind=kind, model=model, limit=neighbourhood._CLOSE).numbers
            for one in vectors
            for kind in (Kind.CHUNK, Kind.ENTITY, Kind.CLUSTER)
            if self.info.models.get(kind.value)
        ]
        return self._snapshot.ids(np.concatenate(found)), 1


@contextmanager
def copied(store: GraphStore) -> Iterator[ArangoStore]:
    """The rows of a store in the double."""
    neighbourhood._SEARCH_S = neighbourhood._LEAST_S = (
        600.0  # what the double is slow at is not left out
    )
    with ArangoDouble(root_password=PASSWORD) as double:
        ends = ArangoEndpoints(url=double.url, database="views", user="root", password=PASSWORD)
        server = ArangoStore(ends, mode=Mode.ADMIN)
        server.provision()
        copy_rows(store, server)
        gc.collect()
        # a server of its own process would not be walked by the collector of whoever asks
        gc.freeze()
        yield server


def _question(paper: dict[str, str], place: int) -> str:
    """A question to one paper: by its title, by a sentence of its abstract, by its first words."""
    sentences, words = paper["abstract"].split(". "), paper["title"].split()
    forms = (
        f"What does {paper['title']} propose?",
        sentences[-1][:200],
        f"which papers study {' '.join(words[:4])}?",
    )
    return forms[place % len(forms)]


def copy_rows(source: GraphStore, target: GraphStore) -> None:
    """Every row of a store into another, nodes before edges."""
    with target.bulk(NAMES) as inside:
        for collection in sorted(COLLECTIONS, key=lambda one: one.edge is not None):
            inside.upsert(collection.name, source.scan(collection.name))


def compare(
    views: tuple[OpenView, OpenView], questions: list[str], recipe: str, embedder: EmbeddingModel
) -> dict[str, Any]:
    """Which share is answered alike, in how many milliseconds (median) and with how many questions
    to the server.
    """
    tools = Tools(MiniLmTokenizer(), embedder, clock=lambda: 0.0)
    same, trips, taken, others = 0, 0, ([], []), []
    for question in questions:
        answers: list[Retrieval] = []
        for view, times in zip(views, taken, strict=True):
            began = time.perf_counter()
            answers.append(
                retrieve(
                    view, question, tools, at=AT, recipe=recipe, plan=Plan(profile="evaluation")
                )
            )
            times.append((time.perf_counter() - began) * 1000)
        here, there = ([passage.id for passage in answer.passages] for answer in answers)
        same += here == there
        if here != there:
            shared = next(
                (
                    place
                    for place, pair in enumerate(zip(here, there, strict=False))
                    if pair[0] != pair[1]
                ),
                len(here),
            )
            others.append(
                {
                    "question": question,
                    "alike": shared,
                    "reasons": [str(one) for one in answers[1].reasons],
                }
            )
            print(json.dumps(others[-1]), file=sys.stderr, flush=True)
        trips = max(trips, int(answers[1].telemetry.counters["round_trips"]))
    snapshot, double = (round(statistics.median(times), 1) for times in taken)
    return {
        "same": same / len(questions),
        "round_trips": trips,
        "snapshot_ms": snapshot,
        "double_ms": double,
        "others": others,
    }


if __name__ == "__main__":
    main()
