"""Kills nightly builds at random moments; what serves must answer, the next build must end. Prints
JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import igraph  # noqa: F401  loaded once here, so that each child begins to build at once
import mlflow  # noqa: F401
import sklearn.cluster  # noqa: F401

from flows.nightly import nightly
from hades.ports.graph import Kind
from hades.snapshot.open import open_snapshot
from schemas.sources import SourceKind, SourceSpec
from tasks.unit import without_server
from tests.installation import whole_installation

PEOPLE = [
    "Ada Lovelace",
    "Charles Babbage",
    "Grace Hopper",
    "Alan Turing",
    "Mary Somerville",
    "Kurt Goedel",
]
PLACES = ["London", "New York", "Manchester", "Vienna", "Analytical Engine", "Difference Engine"]


def main(folder: Path, kills: int) -> None:
    """A first night that ends, then rounds of change, kill, ask, and a night that ends."""
    chance = random.Random(20261115)
    pages, home = folder / "pages", folder / "home"
    pages.mkdir(parents=True)
    os.environ |= {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    for number in range(40):
        write_page(pages, number, chance)
    whole = finish(start(pages, home))
    problems, landed = [], 0
    for number in range(kills):
        landed += killed_midway(pages, home, chance, whole)
        problems += [f"kill {number}: {problem}" for problem in asked(home)]
        whole = 0.5 * whole + 0.5 * finish(start(pages, home))
        problems += [f"night {number}: {problem}" for problem in asked(home)]
        sys.stderr.write(f"{number + 1} of {kills} kills, {len(problems)} problems\n")
    sys.stdout.write(json.dumps({"kills": kills, "landed": landed, "problems": problems}))


def start(pages: Path, home: Path) -> int:
    """Begin a night in a child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with without_server(), (home.parent / "child.log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            nightly.fn(sources=[SourceSpec(source=SourceKind.DOCUMENTS, path=str(pages))])
        code = 0
    finally:
        os._exit(code)


def finish(child: int) -> float:
    """Let a night end; how long it took from now."""
    began = time.monotonic()
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a night that nobody disturbed ended with {status}")
    return time.monotonic() - began


def killed_midway(pages: Path, home: Path, chance: random.Random, whole: float) -> bool:
    """Kill a night after a part of its time; sooner in another night where it ended first. Whether
    one was killed.
    """
    seconds = chance.random() * whole
    for _ in range(20):
        write_page(pages, chance.randrange(60), chance)
        child = start(pages, home)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            return True
        seconds *= 0.6
    return False


def asked(home: Path) -> list[str]:
    """What is wrong with what serves; nothing, when it opens undamaged and answers."""
    view = open_snapshot(home)
    problems = [view.info.degraded_from] if view.info.degraded_from else []
    hits = view.lexical("Ada Lovelace", kind=Kind.CHUNK, limit=5)
    if not len(hits) or "Ada Lovelace" not in view.passages(hits.numbers)[0].text:
        problems.append("a question had no answer")
    return problems


def write_page(pages: Path, number: int, chance: random.Random) -> None:
    """One page about a few people, new or changed."""
    names = ["Ada Lovelace", *chance.sample(PEOPLE[1:], 2)]
    lines = [
        f"{name} worked in {chance.choice(PLACES)} with {chance.choice(names)}." for name in names
    ]
    (pages / f"page{number}.md").write_text(f"# Page {number}\n\n" + " ".join(lines) + "\n")


if __name__ == "__main__":
    with whole_installation() if "whole" in sys.argv else nullcontext():
        main(Path(sys.argv[1]), int(sys.argv[2]))
