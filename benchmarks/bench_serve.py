"""The read-only service under 64 clients with a publish and a whole nightly in the middle.

    python benchmarks/bench_serve.py [--clients 64] [--seconds 12] [--json FILE]

A small graph is built with hashing vectors and served by `hades serve --no-token` in a process of
its own. The loads: every client asks again at once out of a few questions (answers are kept while
their snapshot serves); the same with a publish in the middle; clients that read for a while between
two questions that nobody asked before; and the same while `nice -n 10 hades run nightly` builds and
publishes another edition, until it ends. The last two once with one process that answers and once
with two. `slowest` is the 95th percentile of the client that waited longest: one that starves shows
there. The ratio is what the wire costs: a turn over HTTP beside the same turn as a call.
Percentiles belong to the machine and what else it does: the load average is printed with them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table
from serve_clients import ClientAnswer, ask_at_once

from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.wiring import open_answers, open_hades

THINGS = (
    "river",
    "bridge",
    "ferry",
    "harbour",
    "lock",
    "dam",
    "mill",
    "canal",
    "quay",
    "lighthouse",
)
PLACES = (
    "Basel",
    "Vienna",
    "Lyon",
    "Hamburg",
    "Prague",
    "Turin",
    "Krakow",
    "Ghent",
    "Porto",
    "Riga",
)
PAGES = 300
READING_SECONDS = 4.0
WORKERS = (1, 2)
CLI = (sys.executable, "-m", "hades.surfaces.cli.commands")


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.clients, arguments.seconds)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(folder: Path, clients: int, seconds: float) -> dict[str, float]:
    """Every figure; milliseconds, answers a second, bytes."""
    settings = load_settings(
        {"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}, folder
    )
    editions: dict[str, str] = {}
    publish(folder, settings, 1, editions)
    few = [f"which {thing} stands near {place}?" for thing in THINGS for place in PLACES[:5]]
    fresh = [
        f"what joins page {number} and the {thing} of {place}?"
        for number in range(PAGES)
        for thing in THINGS
        for place in PLACES
    ]
    figures: dict[str, float] = {"clients": clients, "seconds": seconds, "pages": PAGES}
    with open_answers(settings) as answers:
        answers.retrieve(few[0])
        figures["call_ms"] = statistics.median(
            timed(lambda one=one: answers.retrieve(one)) for one in fresh[::1000]
        )
    with service(settings, 1) as (process, address):
        alone = ask_at_once(address, fresh, clients=1, seconds=min(5.0, seconds))
        figures["alone_ms"] = alone.percentile(0.5)
        ask_at_once(address, few, clients=clients, seconds=min(5.0, seconds))
        served = psutil.Process(process.pid)
        cpu = cpu_seconds(served)
        kept = ask_at_once(address, few, clients=clients, seconds=seconds)
        note(figures, "kept", kept)
        figures["kept_cpu_ms"] = (cpu_seconds(served) - cpu) * 1000 / len(kept.answers)
        before = served.memory_info().rss
        publishing = threading.Timer(seconds / 2, lambda: publish(folder, settings, 2, editions))
        publishing.start()
        seen = ask_at_once(address, few, clients=clients, seconds=seconds, editions=editions)
        publishing.join()
        note(figures, "publish", seen)
        figures["snapshots_seen"] = len({snapshot for _, _, snapshot, _ in seen.answers})
        figures["rss_ratio"] = served.memory_info().rss / before
    for workers in WORKERS:
        with service(settings, workers) as (process, address):
            figures |= read_slowly(
                folder, settings, fresh, psutil.Process(process.pid), address, workers, figures
            )
    figures["load_average"] = os.getloadavg()[0]
    return figures


def read_slowly(
    folder: Path,
    settings: Settings,
    fresh: list[str],
    served: psutil.Process,
    address: tuple[str, int],
    workers: int,
    asked: dict[str, float],
) -> dict[str, float]:
    """Fresh questions with pauses, alone and while a whole nightly runs."""
    clients, seconds = int(asked["clients"]), asked["seconds"]
    figures: dict[str, float] = {}
    ask_at_once(
        address, fresh, clients=8 * workers, seconds=3.0
    )  # every process has answered before
    cpu = cpu_seconds(served)
    read = ask_at_once(address, fresh, clients=clients, seconds=seconds, think=READING_SECONDS)
    note(figures, f"fresh_{workers}", read)
    figures[f"fresh_{workers}_cpu_ms"] = (cpu_seconds(served) - cpu) * 1000 / len(read.answers)
    write_pages(folder, 2 + workers)
    night = subprocess.Popen(
        ["nice", "-n", "10", *CLI, "run", "nightly"],
        env=environment(settings),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    began = time.perf_counter()
    seen = ask_at_once(
        address,
        fresh,
        clients=clients,
        seconds=seconds,
        think=READING_SECONDS,
        is_enough=lambda _: night.poll() is not None,
    )
    note(figures, f"night_{workers}", seen)
    figures[f"night_{workers}_seconds"] = time.perf_counter() - began
    figures[f"night_{workers}_exit"] = night.wait()
    figures[f"night_{workers}_snapshots"] = len({snapshot for _, _, snapshot, _ in seen.answers})
    return figures


def cpu_seconds(process: psutil.Process) -> float:
    """Processor time of a process and of its children."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def note(figures: dict[str, float], name: str, seen: ClientAnswer) -> None:
    """Keep what a load showed."""
    came = [when for when, _, _, _ in seen.answers]
    figures |= {
        f"{name}_per_second": len(came) / (max(came) - min(came)),
        f"{name}_p50_ms": seen.percentile(0.5),
        f"{name}_p95_ms": seen.percentile(0.95),
        f"{name}_p99_ms": seen.percentile(0.99),
        f"{name}_slowest_ms": seen.slowest_client(0.95),
        f"{name}_errors": sum(count for status, count in seen.statuses.items() if status != 200),
        f"{name}_mixed": len(seen.mixed),
        f"{name}_went_back": seen.went_back,
    }


def publish(folder: Path, settings: Settings, edition: int, editions: dict[str, str]) -> None:
    """Write every page of an edition, ingest and publish it."""
    write_pages(folder, edition)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        editions[hades.publish().snapshot] = f"edition{edition}"


def write_pages(folder: Path, edition: int) -> None:
    """Write every page of an edition."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    for number in range(PAGES):
        thing, place = THINGS[number % 10], PLACES[number // 10 % 10]
        other = PLACES[(number * 7 + 3) % 10]
        said = (
            f"The {thing} of {place} leads to {other}. This is edition{edition} of page {number}."
        )
        text = f"# Page {number}\n\n{said}\n"
        (pages / f"{number}.md").write_text(text, encoding="utf-8")


@contextmanager
def service(
    settings: Settings, workers: int
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """`hades serve` on a free port, and where it listens."""
    command = [*CLI, "serve", "--port", "0", "--no-token", "--workers", str(workers)]
    process = subprocess.Popen(
        command,
        env=environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    found = re.search(r"http://([\d.]+):(\d+)", process.stderr.readline())
    assert found is not None
    try:
        yield process, (found[1], int(found[2]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def environment(settings: Settings) -> dict[str, str]:
    """What the processes of the benchmark are told."""
    return {
        **os.environ,
        "HADES_HOME": str(settings.home),
        "HADES_EMBEDDER": "hashing",
        "HADES_SERVE_RATE": "0",
    }


def timed(call: object) -> float:
    """Milliseconds of a call."""
    began = time.perf_counter()
    call()  # type: ignore[operator]
    return (time.perf_counter() - began) * 1000


def show(figures: dict[str, float]) -> None:
    """The table: load, answers a second, percentiles, errors."""
    table = Table(
        title=f"{figures['clients']:.0f} clients, {figures['seconds']:.0f} s each, "
        f"{os.cpu_count()} cores, "
        f"load average {figures['load_average']:.1f}"
    )
    for heading in ("load", "a second", "p50 ms", "p95 ms", "p99 ms", "slowest", "errors", "mixed"):
        table.add_column(heading, justify="left" if heading == "load" else "right")
    for name, about in (
        ("kept", "50 questions, asked again at once"),
        ("publish", "the same, a publish in the middle"),
        *(
            (f"fresh_{one}", f"fresh questions, {READING_SECONDS:.0f} s to read, {one} process(es)")
            for one in WORKERS
        ),
        *((f"night_{one}", f"the same while a nightly runs, {one} process(es)") for one in WORKERS),
    ):
        table.add_row(
            about,
            *(
                f"{figures[f'{name}_{what}']:.1f}"
                for what in ("per_second", "p50_ms", "p95_ms", "p99_ms", "slowest_ms")
            ),
            *(f"{figures[f'{name}_{what}']:.0f}" for what in ("errors", "mixed")),
        )
    console = Console()
    console.print(table)
    over = figures["alone_ms"] / figures["call_ms"]
    console.print(
        f"one client: {figures['alone_ms']:.1f} ms over HTTP, {figures['call_ms']:.1f} ms as a "
        f"call ({over:.2f} x)\n"
        f"the service's own CPU: {figures['kept_cpu_ms']:.2f} ms for a kept answer, "
        f"{figures['fresh_1_cpu_ms']:.1f} ms for a fresh one\n"
        f"memory after the publish {figures['rss_ratio']:.2f} x before; snapshots seen "
        f"{figures['snapshots_seen']:.0f}"
    )


if __name__ == "__main__":
    main()
