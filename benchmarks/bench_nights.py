"""Nights after no change and after one document changed, and forgetting one document; all against
the first night.

    python benchmarks/bench_nights.py [--limit N] [--files N] [--papers N] [--only
    passages|files|papers] [--json FILE]

Reads `hotpotqa/corpus.jsonl.gz` and `arxiv/papers.jsonl.gz` below HADES_DATA (default
../shared/data) and, for the workspace, modules of the Python standard library, which every machine
has. Of the papers one in a hundred changes. Each night is the command `hades run nightly` in a
process of its own with the hashing embedder; seconds are those of the processor, user and system,
the start of the process included. Modules are compiled once, as in an installed package. With
--only one corpus is measured and the figures of the others stay in the JSON file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

DATA = Path(os.environ.get("HADES_DATA", Path(__file__).parents[2] / "shared" / "data"))
CORPUS = DATA / "hotpotqa" / "corpus.jsonl.gz"
PAPERS = DATA / "arxiv" / "papers.jsonl.gz"
ONE_IN = 100  # papers, of which one changes
ADDED = " Ada Lovelace wrote to Charles Babbage about the Analytical Engine."
CHANGED_LINE = (
    '\n\ndef describe_change() -> str:\n    """Say that this module was changed."""\n  '
    " "
    ' return "changed"\n'
)


def main() -> None:
    """Measure the corpora and print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int, help="only the first passages")
    parser.add_argument("--files", type=int, default=160, help="modules of the workspace")
    parser.add_argument("--papers", type=int, help="only the first papers")
    parser.add_argument(
        "--only", choices=("passages", "files", "papers"), help="measure one corpus"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for corpus in (CORPUS, PAPERS):
        if not corpus.is_file():
            sys.exit(f"{corpus} is not there; set HADES_DATA. Nothing was measured.")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only in (None, "passages"):
            figures |= measure_passages(Path(folder), arguments.limit)
        if arguments.only in (None, "files"):
            figures |= measure_workspace(Path(folder), arguments.files)
        if arguments.only in (None, "papers"):
            figures |= measure_papers(Path(folder), arguments.papers)
    show(figures)
    if arguments.json:
        before = (
            json.loads(arguments.json.read_text())
            if arguments.only and arguments.json.is_file()
            else {}
        )
        arguments.json.write_text(json.dumps(before | figures, indent=1))


def measure_passages(folder: Path, limit: int | None) -> dict[str, float]:
    """Nights over passages, and forgetting one of them."""
    passages = read_rows(CORPUS, limit)
    corpus, home = folder / "corpus.jsonl", folder / "passages"
    write_rows(corpus, passages)
    first = run_hades(home, "ingest", "passages", str(corpus)) + run_hades(home, "run", "nightly")
    same = run_hades(home, "run", "nightly")
    passages[len(passages) // 2]["text"] += ADDED
    write_rows(corpus, passages)
    changed = run_hades(home, "run", "nightly")
    forget = run_hades(home, "forget", str(passages[1]["id"]))
    return {
        "passages": len(passages),
        "passages: first night": first,
        "passages: night after no change": same,
        "passages: night after one changed": changed,
        "passages: one changed, of the first": round(changed / first, 3),
        "passages: forget one": forget,
    }


def measure_workspace(folder: Path, files: int) -> dict[str, float]:
    """Nights over modules of the standard library."""
    home, workspace = folder / "code", folder / "workspace"
    workspace.mkdir()
    library = Path(sysconfig.get_path("stdlib"))
    for module in sorted(library.glob("*.py"))[:files]:
        shutil.copy(module, workspace / module.name)
    first = run_hades(home, "ingest", "workspace", str(workspace)) + run_hades(
        home, "run", "nightly"
    )
    same = run_hades(home, "run", "nightly")
    with sorted(workspace.glob("*.py"))[files // 2].open("a") as module:
        module.write(CHANGED_LINE)
    changed = run_hades(home, "run", "nightly")
    return {
        "files": len(list(workspace.glob("*.py"))),
        "files: first night": first,
        "files: night after no change": same,
        "files: night after one changed": changed,
        "files: one changed, of the first": round(changed / first, 3),
    }


def measure_papers(folder: Path, limit: int | None) -> dict[str, float]:
    """Nights over abstracts, before and after one in a hundred of them changed."""
    papers = read_rows(PAPERS, limit)
    corpus, home = folder / "papers.jsonl", folder / "papers"
    write_rows(corpus, papers)
    first = run_hades(home, "ingest", "arxiv", str(corpus)) + run_hades(home, "run", "nightly")
    for paper in papers[::ONE_IN]:
        paper["abstract"] += ADDED
    write_rows(corpus, papers)
    changed = run_hades(home, "run", "nightly")
    return {
        "papers": len(papers),
        "papers: changed": len(papers[::ONE_IN]),
        "papers: first night": first,
        "papers: night after 1% changed": changed,
        "papers: 1% changed, of the first": round(changed / first, 3),
    }


def run_hades(home: Path, *arguments: str) -> float:
    """Processor seconds of one command."""
    environment = {
        **os.environ,
        "HADES_HOME": str(home),
        "HADES_EMBEDDER": "hashing",
        "NO_COLOR": "1",
    }
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command: Sequence[str] = (sys.executable, "-m", "hades.surfaces.cli.commands", *arguments)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"{' '.join(arguments)} failed with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def read_rows(path: Path, limit: int | None) -> list[dict[str, Any]]:
    """The first rows of a corpus, or all."""
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines][:limit]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The corpus as the source reads it."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))


def show(figures: dict[str, float]) -> None:
    """One row a figure."""
    table = Table(
        "what", "processor seconds or share", title="nights and forgetting, hashing embedder"
    )
    for name, value in figures.items():
        table.add_row(name, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
