"""What a person waits for beside `hades watch`: an answer in a new process, with and without the
warm process, and a saved page until it can be asked and until its graph is there.

    python benchmarks/bench_first_answer.py [--folder docs] [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
CLI = (sys.executable, "-m", "hades.surfaces.cli.start")
QUESTION = "How do I add a column to a table that is there already?"
PAGES_SAVED, GRAPH_UPDATED = "what changed can be asked", "updated in"
_QUIET_SECONDS = 1.0


def main() -> None:
    """A table for people, JSON for programs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = Path(os.environ.get("HADES_DATA", ROOT / "../shared/data"))
    parser.add_argument("--folder", type=Path, help="pages; by default those of the data's `docs`")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        pages = Path(place) / "pages"
        copy_pages(asked.folder, data / "docs", pages)
        body = measure(pages, Path(place) / "home", asked.runs)
    for name, figure in body.items():
        print(f"{name:34}{figure:10.2f}")
    print("\n" + json.dumps(body))
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def copy_pages(folder: Path | None, manuals: Path, pages: Path) -> None:
    """A folder of its own, whose pages are edited here."""
    pages.mkdir()
    if folder is not None:
        subprocess.run(["cp", "-r", str(folder), str(pages)], check=True)
        return
    for archive in sorted(manuals.glob("*/docs.tar.gz")):
        with tarfile.open(archive) as files:
            files.extractall(pages / archive.parent.name, filter="data")


def measure(pages: Path, home: Path, runs: int) -> dict[str, float]:
    """Medians, each alternately with and without."""
    environment = {**os.environ, "HADES_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment["HADES_WARM"] = "1"
    with watching(pages, environment) as lines:
        wait_for_line(lines, GRAPH_UPDATED)
        wait_for_socket(home)
        time.sleep(3)  # the warm process opens the snapshot
        cold: list[float] = []
        warm: list[float] = []
        for _ in range(runs):
            cold.append(seconds_of_answer({**environment, "HADES_WARM": "0"}))
            warm.append(seconds_of_answer(environment))
        asked, updated = saved_page(pages, lines, runs)
    body = {
        "pages": float(sum(path.is_file() for path in pages.rglob("*"))),
        "load": os.getloadavg()[0],
        "answer_s": statistics.median(cold),
        "answer_warm_s": statistics.median(warm),
        "saved_page_asked_s": statistics.median(asked),
        "saved_page_graph_s": statistics.median(updated),
    }
    body["answer_ratio"] = body["answer_s"] / body["answer_warm_s"]
    body["saved_page_ratio"] = body["saved_page_graph_s"] / body["saved_page_asked_s"]
    return body


def seconds_of_answer(environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([*CLI, "answer", QUESTION], env=environment, capture_output=True, check=True)
    return time.perf_counter() - began


def saved_page(pages: Path, lines: IO[str], runs: int) -> tuple[list[float], list[float]]:
    """Seconds from the save until the page can be asked, and until its graph is there."""
    page = max(pages.rglob("*.*"), key=lambda path: path.stat().st_size * path.is_file())
    asked: list[float] = []
    updated: list[float] = []
    for number in range(runs):
        with page.open("a") as file:
            file.write(f"\nLine {number} was written by Ermintrude of Hobart.\n")
        began = time.perf_counter()
        wait_for_line(lines, PAGES_SAVED)
        asked.append(time.perf_counter() - began)
        wait_for_line(lines, GRAPH_UPDATED)
        updated.append(time.perf_counter() - began)
    return asked, updated


@contextmanager
def watching(pages: Path, environment: dict[str, str]) -> Iterator[IO[str]]:
    """`hades watch` in a process of its own; the lines that it writes."""
    command = [*CLI, "watch", str(pages), "--quiet-seconds", str(_QUIET_SECONDS)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        yield process.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def wait_for_line(lines: IO[str], wanted: str) -> None:
    for line in lines:
        if wanted in line:
            return
    raise SystemExit(f"hades watch ended without a line {wanted!r}")


def wait_for_socket(home: Path) -> None:
    for _ in range(600):
        if (home / ".warm").exists():
            return
        time.sleep(0.1)
    raise SystemExit("no warm process answers; the benchmark needs Linux")


if __name__ == "__main__":
    main()
