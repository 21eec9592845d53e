"""What one machine holds: bytes a node, an edge and a chunk, opening, turns, and what follows from
them for more.

    python benchmarks/bench_scale.py [--home HOME] [--papers 12000] [--questions 200] [--nodes
    1000000] [--json FILE] python benchmarks/bench_scale.py --grow 2000 8000 32000 [--json FILE]

HOME is a HADES_HOME with `HADES_DATA`/arxiv_abstracts (42,032 papers) ingested by the hashing
embedder and built (`hades ingest arxiv`, `hades run nightly`); nothing is written to it. Without it
a home of the first `--papers` is built first: minutes. Bytes in the store are those of its pages,
by what the pages are of; bytes in the snapshot are those of its files. "Made up" is a random graph
of that many entities with three relations and a vector of 256 numbers each: published, opened in
fresh processes, and asked. Beside wall time stands the processor time of the process, all threads,
which a busy machine inflates less. "On paper" multiplies the measured bytes and the assumptions
that stand with it. `--grow` builds homes of the first so many papers and nothing else: wall and
processor time of ingestion and of the first night, peak memory of one process, and the exponents by
which they grow with chunks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_snapshot_open import Tables, complete
from hades.providers.hashing import HashingEmbedder
from hades.settings.load import load_settings
from hades.snapshot.manifest import load
from hades.snapshot.pointer import served
from hades.snapshot.publish import publish

RECIPES = ("vector", "hirag_pathrag", "hipporag")
SEED, RUNS, EDGES_PER_NODE = 7, 3, 3
NAME = re.compile(r"\b[A-Z]\w{2,}")  # what a repeated paper calls otherwise
# On paper: what a document, a machine and a second of one are taken to be.
ASSUMED = {
    # abstracts by MiniLM: half of what benchmarks/bench_embedding.py has on two
    "embedded_a_second_per_core": 16.0,
    "machine_cores": 64,
    "machine_ram_gib": 512,
    "machine_disk_tib": 16,
    "replicas": 3,
    "share_of_snapshot_in_ram": 0.5,
}
DOCUMENTS = (1e6, 1e8, 1e10)

ASKED = """
import json, sys, time
sys.path.insert(0, {root!r})
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
from hades.wiring import open_answers
questions, recipes = json.load(sys.stdin)
with open_answers() as answers:
    began = time.perf_counter()
    answers.view
    figures = {{"open_ms": (time.perf_counter() - began) * 1e3, "resident_mb_open": resident()}}
    for recipe in recipes:
        for question in questions[: max(5, len(questions) // 10)]:
            answers.retrieve(question, recipe=recipe)
        wall, processor, reads, paths = [], [], [], 0
        for question in questions:
            began, spent = time.perf_counter(), time.process_time()
            found = answers.retrieve(question, recipe=recipe)
            wall.append((time.perf_counter() - began) * 1e3)
            processor.append((time.process_time() - spent) * 1e3)
            reads.append(found.telemetry.reads)
            paths += len(found.paths)
        at = lambda times, share: sorted(times)[int(len(times) * share)]
        figures[recipe] = {{
            "p50_ms": at(wall, 0.5), "p95_ms": at(wall, 0.95),
            "processor_p50_ms": at(processor, 0.5), "processor_p95_ms": at(processor, 0.95),
            "reads_max": max(reads), "paths_mean": paths / len(questions),
        }}
    figures["resident_mb_asked"] = resident()
print(json.dumps(figures))
"""


class MadeUp(Tables):
    """Generated rows of a graph on which no stage has worked yet."""

    def get(self, collection: str, keys: Sequence[str]) -> pa.Table:
        """No stage has left a record."""
        return pa.table({"_key": pa.array([], pa.string())})


def main() -> None:
    """Measure, print tables, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path)
    parser.add_argument(
        "--papers",
        type=int,
        default=12_000,
        help="abstracts of the home that is built without --home",
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--grow", type=int, nargs="+", metavar="PAPERS", help="only build homes of so many papers"
    )
    chosen = parser.parse_args()
    os.environ["HADES_EMBEDDER"] = "hashing"
    papers = load_settings().data / "arxiv_abstracts" / "papers.jsonl.gz"
    if chosen.grow:
        with tempfile.TemporaryDirectory() as folder:
            grown = grow(papers, sorted(chosen.grow), Path(folder), chosen.questions)
        write({"grown": grown}, chosen.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = chosen.home or built(papers, chosen.papers, Path(folder))
        body: dict[str, Any] = {"papers": of_papers(home, sample(papers, chosen.questions))}
        body["made_up"] = of_made_up(
            Path(folder) / "made_up", chosen.nodes, max(20, chosen.questions // 5)
        )
    body["on_paper"] = {f"{count:.0e}": on_paper(body, count) for count in DOCUMENTS}
    write(body, chosen.json)


def write(body: dict[str, Any], path: Path | None) -> None:
    """Print the figures, and add them to those of the file."""
    show(body)
    if path:
        kept = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**kept, **body}, indent=1))


def built(papers: Path, count: int, folder: Path) -> Path:
    """The first papers as a graph of their own, as a first night makes it."""
    home = folder / "papers"
    first = write_papers(papers, count, folder)
    environment = {**os.environ, "HADES_HOME": str(home)}
    for command in (["ingest", "arxiv", str(first)], ["run", "nightly"]):
        program = [sys.executable, "-m", "hades.surfaces.cli.commands", *command]
        subprocess.run(program, env=environment, check=True)
    return home


def write_papers(papers: Path, count: int, folder: Path) -> Path:
    """A file of the first papers; beyond the last they are repeated, each time with other names."""
    path = folder / "papers.jsonl"
    with gzip.open(papers, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, count)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            repetition, place = divmod(number, len(rows))
            row = rows[place]
            if repetition:
                row = rename(row, repetition)
            file.write(json.dumps(row) + "\n")
    return path


def rename(row: dict[str, Any], repetition: int) -> dict[str, Any]:
    """A paper that speaks of other names: each capitalised word and the title have a mark."""
    mark = f"x{repetition}"
    renamed = {**row, "id": f"{row['id']}{mark}"}
    for field in ("title", "abstract"):
        renamed[field] = NAME.sub(lambda match: match.group() + mark, row[field])
    renamed["title"] += f" {mark}"
    return renamed


def grow(papers: Path, sizes: Sequence[int], folder: Path, questions: int) -> dict[str, Any]:
    """Homes of several sizes, and the exponent of each figure over chunks by least squares of
    logarithms.
    """
    figures = {}
    for count in sizes:
        figures[f"{count:,} papers"] = grow_to(papers, count, folder / str(count), questions)
    if len(figures) < 2:
        return figures
    chunks = np.log([size["chunks"] for size in figures.values()])
    exponents = {}
    for name in next(iter(figures.values())):
        values = np.log([size[name] for size in figures.values()])
        exponents[name] = float(np.polyfit(chunks, values, 1)[0])
    return {**figures, "exponent": exponents}


def grow_to(papers: Path, count: int, folder: Path, questions: int) -> dict[str, float]:
    """A home of so many papers: seconds, memory and bytes of its stages, and turns on it."""
    folder.mkdir(parents=True)
    first = write_papers(papers, count, folder)
    home = folder / "home"
    figures: dict[str, float] = {}
    for command in (["ingest", "arxiv", str(first)], ["build"]):
        began = time.perf_counter()
        program = [sys.executable, "-m", "hades.surfaces.cli.commands", *command]
        process = subprocess.Popen(program, env={**os.environ, "HADES_HOME": str(home)})
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} of {count:,} papers ended with status {status}")
        figures[f"{command[0]} s"] = time.perf_counter() - began
        figures[f"{command[0]} processor s"] = usage.ru_utime + usage.ru_stime
        figures[f"{command[0]} memory mb"] = usage.ru_maxrss / 1024
    snapshot = home / "snapshots" / served(home)
    contents, _ = load(snapshot)
    turns = asked(home, sample(papers, questions), ("auto",))
    return {
        "chunks": contents.nodes["doc_chunks"],
        "edges": sum(contents.edges.values()),
        **figures,
        "store mb": (home / "graph.db").stat().st_size / 2**20,
        "snapshot mb": snapshot_bytes(snapshot)[0] / 2**20,
        "turn p50 ms": turns["auto"]["p50_ms"],
        "turn p95 ms": turns["auto"]["p95_ms"],
        "open ms": turns["open_ms"],
    }


def sample(papers: Path, count: int) -> list[str]:
    """Questions about titles, from a fixed seed."""
    with gzip.open(papers, "rt", encoding="utf-8") as lines:
        titles = [json.loads(line)["title"] for line in lines]
    return [f"What is known about {title}?" for title in random.Random(SEED).sample(titles, count)]


def of_papers(home: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Bytes of the real graph by what they are spent on, and turns on it."""
    store, snapshot = store_bytes(home / "graph.db"), home / "snapshots" / served(home)
    contents, _ = load(snapshot)
    nodes, edges = sum(contents.nodes.values()), sum(contents.edges.values())
    chunks, documents = contents.nodes["doc_chunks"], contents.documents
    total, spent = snapshot_bytes(snapshot)
    return {
        "documents": documents,
        "chunks": chunks,
        "nodes": nodes,
        "edges": edges,
        "store_mb": (home / "graph.db").stat().st_size / 2**20,
        "store_bytes": store,
        "store_bytes_per_document": (home / "graph.db").stat().st_size / documents,
        "snapshot_mb": total / 2**20,
        "snapshot_bytes": spent,
        "snapshot_bytes_per_document": total / documents,
        "turns": asked(home, questions, RECIPES),
    }


def store_bytes(path: Path) -> dict[str, float]:
    """Bytes a row of the tables and of their indexes, where SQLite is built to tell (`dbstat`)."""
    figures: dict[str, float] = {}
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
        try:
            sizes = dict(file.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        except sqlite3.OperationalError:
            return {}
        for name in ("documents", "entities", "doc_chunks", "relations", "mentions"):
            rows = max(1, file.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            indexes = sum(
                size
                for one, size in sizes.items()
                if one.startswith((f"{name}_by_", f"sqlite_autoindex_{name}"))
            )
            figures[f"{name}: row"], figures[f"{name}: indexes"] = (
                sizes[name] / rows,
                indexes / rows,
            )
    return figures


def snapshot_bytes(folder: Path) -> tuple[int, dict[str, float]]:
    """All bytes of a snapshot, and those a node, an edge, a chunk or a document takes, by what they
    are spent on.
    """
    contents, _ = load(folder)
    sizes = Counter[str]()
    for name in contents.files:
        sizes[name.split(".")[0]] += (folder / name).stat().st_size
    nodes, edges = sum(contents.nodes.values()), sum(contents.edges.values())
    vectors = sum(rows for kind, rows in contents.nodes.items() if contents.models.get(kind))
    figures = {
        "vector, each": sizes["vector"] / max(1, vectors),
        "node: key, name, place": (sizes["node"] + sizes["name"]) / nodes,
        "edge: ends, weight, both ways": (sizes["edge"] + sizes["out"] + sizes["into"])
        / max(1, edges),
        "document: text": sizes["document"] / max(1, contents.documents),
        "chunk: words": sizes["lexical"] / max(1, contents.nodes["doc_chunks"]),
    }
    return sum(sizes.values()), figures


def asked(home: Path, questions: Sequence[str], recipes: Sequence[str]) -> dict[str, Any]:
    """Turns in a fresh process whose caches a tenth of the questions warmed; opening is the median
    of a few.
    """
    environment = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    program = ASKED.format(root=str(ROOT))

    def run(some: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps([list(some), list(names)]),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures

    opened = [run(questions[:1], ())["open_ms"] for _ in range(RUNS)]
    return {**run(questions, recipes), "open_ms": statistics.median(opened)}


def of_made_up(home: Path, nodes: int, questions: int) -> dict[str, Any]:
    """A random graph, published and asked; its names are asked for."""
    embedder = HashingEmbedder()
    began = time.perf_counter()
    published = publish(MadeUp(made_up(nodes, embedder.model.tag, embedder.model.dimension)), home)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    chance = random.Random(SEED)
    texts = [
        f"how does name {chance.randrange(nodes)} lead to name {chance.randrange(nodes)}?"
        for _ in range(questions)
    ]
    size = sum(path.stat().st_size for path in published.path.iterdir())
    return {
        "nodes": nodes,
        "edges": nodes * EDGES_PER_NODE,
        "generate_and_publish_s": seconds,
        "snapshot_mb": size / 2**20,
        "snapshot_bytes_per_node_with_its_edges": size / nodes,
        "turns": asked(home, texts, ("vector", "hirag_pathrag")),
    }


def made_up(count: int, model: str, dimension: int) -> dict[str, pa.Table]:
    """Entities with random vectors of unit length, each with a few random relations."""
    chance = np.random.default_rng(SEED)
    keys = np.char.add("e", np.char.zfill(np.arange(count).astype(str), 8))
    names = np.char.add("Name ", np.arange(count).astype(str))
    vectors = chance.standard_normal((count, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    starts = np.arange(0, count * dimension + 1, dimension, dtype=np.int32)
    entities = {
        "_key": keys,
        "name": names,
        "name_lower": np.char.lower(names),
        "type": np.full(count, "concept"),
        "embedding": pa.ListArray.from_arrays(pa.array(starts), pa.array(vectors.ravel())),
        "embedding_model": np.full(count, model),
    }
    edges, ids = count * EDGES_PER_NODE, np.char.add("entities/", keys)
    relations = {
        "_key": np.char.add("r", np.char.zfill(np.arange(edges).astype(str), 9)),
        "_from": ids[chance.integers(0, count, edges)],
        "_to": ids[chance.integers(0, count, edges)],
        "type": np.array(["refers_to", "cites", "related_to"])[chance.integers(0, 3, edges)],
        "weight": chance.random(edges),
        "cost": chance.random(edges),
    }
    return {
        "entities": complete("entities", entities),
        "relations": complete("relations", relations),
    }


def on_paper(body: dict[str, Any], documents: float) -> dict[str, float]:
    """What this number of documents would need if every byte and second grew with it."""
    papers, made_up_graph = body["papers"], body["made_up"]
    store = papers["store_bytes_per_document"] * documents * ASSUMED["replicas"]
    snapshot = papers["snapshot_bytes_per_document"] * documents
    ram = snapshot * ASSUMED["share_of_snapshot_in_ram"]
    vectors = papers["nodes"] / papers["documents"] * documents
    scan = made_up_graph["turns"]["vector"]["processor_p50_ms"] / 1e3 / made_up_graph["nodes"]
    embedding = (
        papers["chunks"]
        / papers["documents"]
        * documents
        / ASSUMED["embedded_a_second_per_core"]
        / 3600
    )
    return {
        "store_tib_with_replicas": store / 2**40,
        "snapshot_tib": snapshot / 2**40,
        "machines_for_store": max(
            ASSUMED["replicas"], np.ceil(store / 2**40 / ASSUMED["machine_disk_tib"])
        ),
        "machines_for_snapshot_ram": float(np.ceil(ram / 2**30 / ASSUMED["machine_ram_gib"])),
        "vectors": vectors,
        "exact_vector_scan_core_seconds": vectors * scan,
        "embedding_core_hours": embedding,
        "embedding_days_on_100_machines": embedding / ASSUMED["machine_cores"] / 100 / 24,
    }


def show(body: dict[str, Any]) -> None:
    """A table a part."""
    for part, figures in body.items():
        table = Table(
            title=f"{part.replace('_', ' ')}, {platform.machine()}, {os.cpu_count()} cores",
            show_header=False,
        )
        for name, value in flat(figures):
            table.add_row(name, f"{value:,.4g}")
        Console().print(table)


def flat(figures: dict[str, Any], head: str = "") -> list[tuple[str, float]]:
    """Figures by their whole name."""
    rows: list[tuple[str, float]] = []
    for name, value in figures.items():
        rows += (
            flat(value, f"{head}{name}: ") if isinstance(value, dict) else [(head + name, value)]
        )
    return rows


if __name__ == "__main__":
    main()
