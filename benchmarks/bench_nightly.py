"""A first night over arXiv papers, and a second one after 1% of them changed; stage by stage,
without the embedding.

    python benchmarks/bench_nightly.py [--papers N] [--home PREPARED] [--embedder minilm|hashing]
    [--clock cpu|wall]

Reads `arxiv/` below HADES_DATA (default ../shared/data). Each night is a process of its own, as a
worker would run it: both pay for what they load. A changed paper has one sentence of its abstract
replaced by a sentence of another. Seconds inside the embedder are measured apart, because they
depend on the model and the machine and not on the build.

With `--home`, a home that holds the same papers, vectors of texts it knows are read from there
instead of being made. What making them would have taken is then reckoned from a sample of the
texts, and memory holds them beside the build. Seconds are the processor's by default: on a shared
machine those of the wall mean little. `--json FILE` keeps them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from hades.api import Hades
from hades.ingest.chunks import embedding_text
from hades.ingest.manifest import remember
from hades.night.context import BuildContext
from hades.night.report import build
from hades.night.stage import Night
from hades.ports.services import Embedder, EmbeddingModel, Progress, Vectors
from hades.ports.store import Mode
from hades.providers.tokens import MiniLmTokenizer
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.stores.sqlite.store import SqliteStore
from hades.wiring import open_embedder, open_store, open_tracker
from schemas.sources import SourceKind, SourceSpec

DATA = Path(os.environ.get("HADES_DATA", Path(__file__).parents[2] / "shared" / "data"))
CHANGED_EVERY = 100
SAMPLE = 256
STAGES = ("sources", "embeddings", "edges", "contracts", "topics", "weights", "bridges", "released")
NIGHTS = (datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def main() -> None:
    """Both nights, a table, and the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--papers", type=int, help="only the first papers")
    parser.add_argument(
        "--home", type=Path, help="a home whose vectors are used instead of making them"
    )
    parser.add_argument("--embedder", choices=("minilm", "hashing"), default="minilm")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--night", nargs=2, metavar=("NUMBER", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.night:
        number, folder = int(arguments.night[0]), Path(arguments.night[1])
        print(json.dumps(one_night(folder, number, arguments.home, arguments.clock)))
        return
    if not (DATA / "arxiv" / "papers.jsonl.gz").is_file():
        sys.exit(
            f"arxiv/papers.jsonl.gz is not below {DATA}; set HADES_DATA. Nothing was measured."
        )
    figures = measure(arguments)
    show(figures, arguments.clock)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """The two nights in a folder that is thrown away."""
    papers = read_papers(arguments.papers)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        environment = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": arguments.embedder}
        nights = []
        for number in (0, 1):
            write_papers(Path(folder) / "papers.jsonl.gz", changed(papers) if number else papers)
            options = ["--home", str(arguments.home)] if arguments.home else []
            told = subprocess.run(
                [
                    sys.executable,
                    __file__,
                    "--night",
                    str(number),
                    folder,
                    "--clock",
                    arguments.clock,
                    *options,
                ],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
            )
            nights.append(json.loads(told.stdout.splitlines()[-1]))
    first, second = nights
    return {
        "papers": len(papers),
        "papers_changed": len(papers[::CHANGED_EVERY]),
        "first": first,
        "second": second,
        "ratio_without_embedding": round(
            second["without_embedding"] / first["without_embedding"], 4
        ),
        "ratio_with_embedding": round(second["with_embedding"] / first["with_embedding"], 4),
    }


def one_night(folder: Path, number: int, prepared: Path | None, clock_name: str) -> dict[str, Any]:
    """The whole build over the papers in the folder; what each stage took and how much memory it
    needed.
    """
    clock = time.process_time if clock_name == "cpu" else time.perf_counter
    settings = load_settings()
    embedder = TimedStore(open_embedder(settings), vectors_of(prepared) if prepared else {}, clock)
    store = open_store(settings, Mode.ADMIN)
    store.provision()
    began = clock()
    with Hades(store, embedder, MiniLmTokenizer(), settings.home) as hades:
        remember(store, papers_in(folder))
        night = Night(NIGHTS[number], NIGHTS[number].timestamp())
        report = build(context_of(settings, hades), hades.ingest, night, clock=clock)
        took = clock() - began
        embedding = embedder.seconds
        reckoned = embedding + embedder.reckoned()
    stages = {name: report[name]["took"] for name in STAGES if name != "contracts"}
    stages["contracts"] = round(sum(one["took"] for one in report["contracts"]), 3)
    return {
        "stages": {name: stages[name] for name in STAGES},
        "without_embedding": round(took - embedding, 3),
        "with_embedding": round(took - embedding + reckoned, 3),
        "embedding": round(reckoned, 3),
        "texts_embedded": embedder.made,
        "vectors_read": embedder.read,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


class TimedStore:
    """An embedder that knows how long it took, and takes known vectors from elsewhere."""

    def __init__(
        self, inner: Embedder, known: dict[str, np.ndarray], clock: Callable[[], float]
    ) -> None:
        self._inner, self._known, self._clock = inner, known, clock
        self.seconds, self.made, self.read = 0.0, 0, 0
        self._sample: list[str] = []

    @property
    def model(self) -> EmbeddingModel:
        """That of the embedder inside."""
        return self._inner.model

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """The vectors, with the clock running."""
        began = self._clock()
        found = [self._known.get(text) for text in texts]
        missing = [row for row, vector in enumerate(found) if vector is None]
        made = iter(
            self._inner.embed([texts[row] for row in missing], progress=progress) if missing else ()
        )
        rows = [next(made) if vector is None else vector for vector in found]
        read = [text for text, vector in zip(texts, found, strict=True) if vector is not None]
        self._sample += read[:: max(1, len(read) // 16)]
        self.made, self.read = self.made + len(missing), self.read + len(read)
        self.seconds += self._clock() - began
        return np.stack(rows) if rows else np.zeros((0, self.model.dimension), np.float32)

    def reckoned(self) -> float:
        """What making the vectors that were read would have taken, by a sample of their texts."""
        sample = self._sample[:: max(1, len(self._sample) // SAMPLE)][:SAMPLE]
        if not sample:
            return 0.0
        began = self._clock()
        self._inner.embed(sample)
        return (self._clock() - began) * self.read / len(sample)


def vectors_of(home: Path) -> dict[str, np.ndarray]:
    """Text to vector of every chunk and every name of a home."""
    known: dict[str, np.ndarray] = {}
    store = SqliteStore.open(home / "graph.db", Mode.READ_ONLY)
    for batch in store.scan("doc_chunks", columns=["title", "headings", "text", "embedding"]):
        columns = (batch.column(name).to_pylist() for name in ("title", "headings", "text"))
        vectors = batch.column("embedding").flatten().to_numpy().reshape(batch.num_rows, -1)
        known |= zip(
            (embedding_text(*parts) for parts in zip(*columns, strict=True)), vectors, strict=True
        )
    for batch in store.scan("entities", columns=["name", "embedding", "vector_of"]):
        vectors = batch.column("embedding").flatten().to_numpy().reshape(batch.num_rows, -1)
        named = zip(
            batch.column("name").to_pylist(),
            batch.column("vector_of").to_pylist(),
            vectors,
            strict=True,
        )
        known |= {name: vector for name, made_of, vector in named if made_of == "name"}
    store.close()
    return known


def context_of(settings: Settings, hades: Hades) -> BuildContext:
    """What the stages after ingestion work with."""
    return BuildContext(
        store=hades.store,
        home=settings.home,
        model=hades.embedder.model.tag,
        path=settings.hirag_pathrag.path,
        open_tracker=lambda: open_tracker(settings),
    )


def papers_in(folder: Path) -> SourceSpec:
    """The corpus of both nights."""
    beside = {name: str(DATA / "arxiv" / f"{file}.jsonl.gz") for name, file in LINKS.items()}
    return SourceSpec(source=SourceKind.ARXIV, path=str(folder / "papers.jsonl.gz"), **beside)


LINKS = {"citations": "citations", "code_links": "github_mentions"}


def read_papers(most: int | None) -> list[dict[str, Any]]:
    """The papers of the data set, or the first of them."""
    with gzip.open(DATA / "arxiv" / "papers.jsonl.gz") as lines:
        papers = [orjson.loads(line) for line in lines]
    return papers[:most]


def changed(papers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The papers with one in a hundred changed: its middle sentence is that of another abstract."""
    after = [dict(paper) for paper in papers]
    for place in range(0, len(papers), CHANGED_EVERY):
        own, other = (
            _SENTENCE.split(papers[row]["abstract"])
            for row in (place, (place * 37 + 11) % len(papers))
        )
        own[len(own) // 2] = other[len(other) // 2]
        after[place]["abstract"] = " ".join(own)
    return after


def write_papers(path: Path, papers: Sequence[dict[str, Any]]) -> None:
    """The papers as the source reads them."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.writelines(orjson.dumps(paper) + b"\n" for paper in papers)


def show(figures: dict[str, Any], clock: str) -> None:
    """A row a stage."""
    first, second = figures["first"], figures["second"]
    title = f"{figures['papers']:,} papers, {figures['papers_changed']:,} changed; {clock} seconds"
    table = Table("stage", "first night", "second", "ratio", title=title)
    for name in STAGES:
        one, other = first["stages"][name], second["stages"][name]
        table.add_row(name, f"{one:.2f}", f"{other:.2f}", f"{other / one:.2f}" if one else "")
    table.add_section()
    for name in ("without_embedding", "embedding", "with_embedding"):
        ratio = f"{second[name] / first[name]:.3f}" if first[name] else ""
        table.add_row(name.replace("_", " "), f"{first[name]:.2f}", f"{second[name]:.2f}", ratio)
    for name in ("texts_embedded", "vectors_read", "peak_mb"):
        table.add_row(name.replace("_", " "), f"{first[name]:,}", f"{second[name]:,}", "")
    Console(width=100).print(table)
    print(
        "embeddings and edges include the seconds inside the embedder; the sums say which they are "
        "without or with"
    )


if __name__ == "__main__":
    main()
