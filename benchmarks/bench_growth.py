"""How ingestion and a first night grow with the corpus, and what follows for a million chunks.

    python benchmarks/bench_growth.py [--sizes 2000,4000,8000] [--json FILE]

For each size the first abstracts of `HADES_DATA`/arxiv_abstracts become a home of their own (hashing embedder): `hades
ingest arxiv` and `hades run nightly`, each in a process of its own. Processor time of the commands and their workers is
measured, and the largest resident size of one process. A line through the logarithms of chunks and seconds gives the
exponent (1: in proportion) and the seconds at a million chunks. What does not grow, libraries that are loaded above
all, is measured with 50 abstracts, taken off first and added again; below some thousand abstracts it is most of the
time and an exponent means nothing. An estimate far beyond the largest size measured is an estimate.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.stores.sqlite.store import SqliteStore

TARGET, FEW = 1_000_000, 50  # chunks to reckon with; abstracts that show what does not grow


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2000,4000,8000", help="numbers of abstracts, smallest first")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    papers = load_settings().data / "arxiv_abstracts" / "papers.jsonl.gz"
    sizes = [int(size) for size in chosen.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        fixed = measure(papers, FEW, Path(folder) / str(FEW))
        measured = [measure(papers, size, Path(folder) / str(size)) for size in sizes]
    body: dict[str, Any] = {"fixed": fixed, "sizes": {str(one["abstracts"]): one for one in measured}}
    for what in ("ingest_cpu_s", "night_cpu_s"):
        body[what.removesuffix("_cpu_s")] = extrapolate(measured, what, fixed[what])
    body["peak"] = extrapolate(measured, "peak_mb", 0.0)
    show(body)
    if chosen.json:
        chosen.json.write_text(json.dumps(body, indent=1))


def measure(papers: Path, size: int, folder: Path) -> dict[str, float]:
    """Processor seconds and the largest process of one size."""
    folder.mkdir()
    corpus = folder / "papers.jsonl"
    with gzip.open(papers, "rt", encoding="utf-8") as lines:
        corpus.write_text("".join(islice(lines, size)), encoding="utf-8")
    environment = {**os.environ, "HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}
    ingest, ingest_mb = run(["ingest", "arxiv", str(corpus)], environment)
    night, night_mb = run(["run", "nightly"], environment)
    with closing(SqliteStore.open(folder / "home" / "graph.db", Mode.READ_ONLY)) as store:
        counts = store.counts()
    figures = {
        "abstracts": size,
        "chunks": counts["doc_chunks"],
        "entities": counts["entities"],
        "relations": counts["relations"],
        "ingest_cpu_s": ingest,
        "night_cpu_s": night,
        "peak_mb": max(ingest_mb, night_mb),
    }
    print(figures, file=sys.stderr, flush=True)
    return figures


def run(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Processor seconds of a command, and the largest process of this kind so far: sizes come smallest first."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "hades.surfaces.cli.commands", *arguments], env=environment, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, after.ru_maxrss / 1024


def extrapolate(measured: Sequence[dict[str, float]], what: str, fixed: float) -> dict[str, float]:
    """Exponent and factor of what = fixed + factor * chunks ** exponent, by least squares of logarithms."""
    chunks = np.log([one["chunks"] for one in measured])
    figures = np.log([max(one[what] - fixed, 1e-3) for one in measured])
    exponent, offset = np.polyfit(chunks, figures, 1)
    return {
        "exponent": float(exponent),
        "at_a_million_chunks": float(fixed + np.exp(offset + exponent * np.log(TARGET))),
        "in_proportion_to_the_largest": fixed + (measured[-1][what] - fixed) * TARGET / measured[-1]["chunks"],
    }


def show(body: dict[str, Any]) -> None:
    """One row a size, and one for a million."""
    table = Table("abstracts", "chunks", "ingest s", "night s", "largest process, MB", title="processor time")
    for one in body["sizes"].values():
        row = (one["abstracts"], one["chunks"], one["ingest_cpu_s"], one["night_cpu_s"], one["peak_mb"])
        table.add_row(*(f"{figure:,.0f}" if figure > 100 else f"{figure:.1f}" for figure in row))
    fitted = [body[what] for what in ("ingest", "night", "peak")]
    table.add_row("", f"{TARGET:,}, by exponent", *(f"{one['at_a_million_chunks']:,.0f}" for one in fitted))
    table.add_row("", "exponent", *(f"{one['exponent']:.2f}" for one in fitted))
    Console().print(table)


if __name__ == "__main__":
    main()
