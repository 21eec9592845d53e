"""Runs commands at once on one graph and kills some of them; what each does while it builds is
noted. Prints JSON.

Every command ingests a folder of its own. The files `begin` and `end` are written inside the lock,
so two of them that overlap are seen whatever the lock says.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import sklearn.feature_extraction  # noqa: F401  loaded once here, so that each child begins to build at once

import hades.api  # noqa: F401
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.surfaces.cli import ingest as commands
from hades.surfaces.cli.commands import whole_app
from hades.wiring import open_hades, open_store
from tests.integration.drivers import hasten_leases

APP = whole_app()

AT_ONCE = 8
FASTER = 3
WORDS = ("Aachen", "Bremen", "Celle", "Dessau", "Erfurt", "Fulda", "Gotha", "Halle")


def main(folder: Path, rounds: int, killed: int, server: dict[str, str]) -> None:
    """Rounds of eight commands of which some are killed; at the end everything is ingested once
    more, undisturbed.
    """
    chance = random.Random(20261117)
    os.environ |= {"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing", **server}
    os.environ["HADES_BUILD_WAIT_SECONDS"] = "600"
    if server:
        open_store(load_settings(), Mode.ADMIN).provision()
        hasten_leases(FASTER)
    commands.open_hades = noted(folder / "events", open_hades)  # type: ignore[assignment]
    failed = []
    for number in range(rounds):
        children = {start(folder, f"r{number}c{place}", place): place for place in range(AT_ONCE)}
        for _ in range(killed):
            kill(folder / "events", chance)
        for child, place in children.items():
            status = os.waitpid(child, 0)[1]
            if status and not os.WIFSIGNALED(status):
                failed.append(
                    f"round {number}, command {place}: "
                    f"{(folder / f'r{number}c{place}.log').read_text()}"
                )
        sys.stderr.write(f"{number + 1} of {rounds} rounds\n")
    for place in range(AT_ONCE):
        os.waitpid(start(folder, f"r{rounds - 1}c{place}", place), 0)
    with closing(open_store(load_settings(), Mode.READ_ONLY)) as store:
        documents = store.count("documents")
        dangling = store.dangling()
    report = {
        "failed": failed,
        "documents": documents,
        "dangling": dangling,
        **read_events(folder / "events"),
    }
    sys.stdout.write(json.dumps(report))


def start(folder: Path, name: str, place: int) -> int:
    """Ingest the page of a round in a process of its own; its id."""
    pages = folder / f"pages{place}"
    pages.mkdir(exist_ok=True)
    page = pages / f"{name}.md"
    page.write_text(
        f"# {WORDS[place]} {name}\n\n{WORDS[place]} lies on the road to {WORDS[place - 1]}.\n"
    )
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with (folder / f"{name}.log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            APP(["ingest", "documents", str(pages)], standalone_mode=True)
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def kill(events: Path, chance: random.Random) -> None:
    """Kill the process that builds, somewhere in its build.

    It is stopped before it is noted as killed, so that nobody can begin between the two.
    """
    before = events.read_text() if events.exists() else ""
    while (now := events.read_text() if events.exists() else "") == before or not now.endswith(
        "\n"
    ):
        time.sleep(0.01)
    time.sleep(chance.random() * 0.3)
    child = int(events.read_text().split()[-1])
    os.kill(child, signal.SIGSTOP)
    note(events, "killed", child)
    os.kill(child, signal.SIGKILL)


def noted(events: Path, opener: Any) -> Any:
    """Opening the graph, which a command does inside the lock, with a note before and after."""

    @contextmanager
    def opened(*arguments: Any, **options: Any) -> Any:
        note(events, "begin", os.getpid())
        with opener(*arguments, **options) as hades:
            yield hades
        note(events, "end", os.getpid())

    return opened


def note(events: Path, what: str, process: int) -> None:
    handle = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{what} {process}\n".encode())
    os.close(handle)


def read_events(events: Path) -> dict[str, Any]:
    """Builds that ended, builds that were killed in the middle, and pairs that overlapped."""
    building: set[str] = set()
    ended, stopped, overlaps = 0, 0, []
    for what, process in (line.split() for line in events.read_text().splitlines()):
        if what == "begin":
            overlaps += [[one, process] for one in building]
            building.add(process)
        elif process in building:
            building.remove(process)
            ended, stopped = ended + (what == "end"), stopped + (what == "killed")
    return {"ended": ended, "stopped": stopped, "overlaps": overlaps}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
