"""How fast a corpus becomes a graph: abstracts a second without embedding, peak memory, and a
second run.

    python benchmarks/bench_ingest.py [--limit N] [--workers N] [--json FILE]

Reads `arxiv_abstracts/papers.jsonl.gz` below HADES_DATA (default ../shared/data), with the hashing
embedder; says so and stops where it is absent. The target is 2,000 abstracts a second for
everything but embedding, and 2 GB of memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil
from rich.console import Console
from rich.table import Table

from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.arxiv import ArxivSource
from hades.ports.services import Progress, Vectors
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.stores.sqlite.store import SqliteStore

DATA = Path(os.environ.get("HADES_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> None:
    """Ingest, ingest again, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int)
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0: one a core, 1: none"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    papers = DATA / "arxiv_abstracts" / "papers.jsonl.gz"
    if not papers.exists():
        sys.exit(f"{papers} is not there; set HADES_DATA. Nothing was measured.")
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), papers, arguments.limit, arguments.workers)
    table = Table(title=f"{figures['abstracts']:,.0f} abstracts, hashing embedder")
    for heading in ("what", "figure"):
        table.add_column(heading)
    for name, value in figures.items():
        table.add_row(name, f"{value:,.1f}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(folder: Path, papers: Path, limit: int | None, workers: int) -> dict[str, float]:
    """Seconds by phase, rate, processor time, memory."""
    if limit:
        papers = shortened(papers, folder / "papers.jsonl", limit)
    store = SqliteStore.open(folder / "graph.db", Mode.ADMIN)
    store.provision()
    embedder = TimedEmbedder()
    context = IngestContext(store, embedder, MiniLmTokenizer(), folder / "cache", workers=workers)
    began = time.process_time()
    with LargestChild() as largest:
        first = ingest(context, ArxivSource(papers))
    spent, processor = sum(first.seconds.values()), time.process_time() - began
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    again = ingest(context, ArxivSource(papers))
    return {
        "abstracts": first.read,
        **{f"{phase} seconds": seconds for phase, seconds in first.seconds.items()},
        "embedding seconds": embedder.seconds,
        "abstracts a second without embedding": first.read / (spent - embedder.seconds),
        "processor seconds without embedding": processor - embedder.processor_seconds,
        "processor seconds of workers": children.ru_utime + children.ru_stime,
        "second run seconds": sum(again.seconds.values()),
        "peak MB of a worker": largest.megabytes,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


class LargestChild:
    """The largest memory that a child process held, looked at once a second: looking takes
    processor time that counts.

    The system's own figure counts a child before it has begun to run its program, when it shares
    the memory of ours.
    """

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        ours = psutil.Process()
        command = ours.cmdline()
        while not self._ended.wait(1.0):
            for child in ours.children():
                try:
                    if child.cmdline() != command:
                        self.megabytes = max(self.megabytes, child.memory_info().rss / 2**20)
                except psutil.NoSuchProcess:  # it has ended
                    continue


class TimedEmbedder(HashingEmbedder):
    """The hashing embedder, with the time spent in it."""

    seconds = 0.0
    processor_seconds = 0.0

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """As its parent."""
        start, processor = time.perf_counter(), time.process_time()
        vectors = super().embed(texts, progress=progress)
        self.seconds += time.perf_counter() - start
        self.processor_seconds += time.process_time() - processor
        return vectors


def shortened(papers: Path, target: Path, limit: int) -> Path:
    with gzip.open(papers, "rt") as source:
        target.write_text("".join(line for line, _ in zip(source, range(limit), strict=False)))
    return target


if __name__ == "__main__":
    main()
