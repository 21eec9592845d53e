"""Learning weights from choices, compiled, beside a plain Python loop of the same rule.

    python benchmarks/bench_learning.py [--edges 1000000] [--pairs 100000] [--json FILE]

Both replay the same pairs over the same edges, turn after turn. Both use one thread, so processor seconds are compared:
other work on the machine does not count, and each side's fastest repetition does. The offsets of both are compared,
edge by edge, before anything is printed. Compiling, which happens once and is then read from the disk, is told apart.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from models.weights.learn import CALM, Doubles, Pairs, Results, learn_offsets

RATE, RADIUS = 0.25, 1.5
SHOWN = 6  # results a turn
EDGES_EACH = 3


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.edges, arguments.pairs)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(edges: int, pairs: int) -> dict[str, float]:
    """Processor seconds of both ways, and how many times one goes into the other."""
    prior, results, chosen = made_up_choices(edges, pairs)
    began = time.process_time()
    found = compiled(prior, results, chosen)
    first = time.process_time() - began
    np.testing.assert_allclose(found, in_python(prior, results, chosen), atol=1e-9)
    plain = fastest(lambda: in_python(prior, results, chosen), 2)
    quick = fastest(lambda: compiled(prior, results, chosen), 10)
    return {
        "edges": edges,
        "pairs": len(chosen),
        "python": plain,
        "compiled": quick,
        "times_faster": plain / quick,
        "first_call": first,
        "moved": int(np.count_nonzero(found)),
    }


def compiled(prior: Doubles, results: Results, chosen: Pairs) -> Doubles:
    """As the stage `weights` does it."""
    return learn_offsets(prior, results, chosen, rate=RATE, radius=RADIUS)


def in_python(prior: Doubles, results: Results, chosen: Pairs) -> list[float]:
    """The same rule in lists and floats."""
    logits, starts, edges = prior.tolist(), results.starts.tolist(), results.edges.tolist()
    rows = list(
        zip(*(getattr(chosen, name).tolist() for name in ("turn", "preferred", "other", "weight")), strict=True)
    )
    now, mean, squares, updates = ([start] * len(logits) for start in (0.0, 0.0, CALM, 0))
    place = 0
    while place < len(rows):
        turn, pull = rows[place][0], dict[int, float]()
        while place < len(rows) and rows[place][0] == turn:
            _, preferred, other, weight = rows[place]
            good = edges[starts[preferred] : starts[preferred + 1]]
            rest = edges[starts[other] : starts[other + 1]]
            above = sum(logits[edge] + now[edge] for edge in good) / len(good)
            below = sum(logits[edge] + now[edge] for edge in rest) / len(rest)
            surprise = weight / (1.0 + math.exp(above - below))
            for edge in good:
                pull[edge] = pull.get(edge, 0.0) + surprise
            for edge in rest:
                pull[edge] = pull.get(edge, 0.0) - surprise
            place += 1
        for edge, force in pull.items():
            squares[edge] += force * force
            now[edge] = max(-RADIUS, min(RADIUS, now[edge] + RATE * force / math.sqrt(squares[edge])))
            updates[edge] += 1
            mean[edge] += 2.0 / (updates[edge] + 1.0) * (now[edge] - mean[edge])
    return mean


def made_up_choices(edges: int, pairs: int) -> tuple[Doubles, Results, Pairs]:
    """Turns of six results, each of three edges of its own; one of them is preferred to the others."""
    chance = np.random.default_rng(0)
    turns = pairs // (SHOWN - 1)
    members = chance.integers(0, edges, (turns * SHOWN, EDGES_EACH))
    members[:, 1:] = (members[:, :1] + np.cumsum(chance.integers(1, edges // 4, (len(members), 2)), axis=1)) % edges
    results = Results(np.arange(len(members) + 1) * EDGES_EACH, members.ravel())
    first = np.arange(turns) * SHOWN
    best = chance.integers(0, SHOWN, turns)
    others = (best[:, None] + np.arange(1, SHOWN)) % SHOWN
    repeat = np.repeat(np.arange(turns), SHOWN - 1)
    chosen = Pairs(
        repeat,
        (first + best)[repeat],
        (first[:, None] + others).ravel(),
        np.full(len(repeat), 1.0 / (SHOWN - 1)),
        np.ones(len(repeat), np.bool_),
    )
    return chance.normal(0.0, 1.0, edges), results, chosen


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest of several runs."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def show(figures: dict[str, float]) -> None:
    """A table for people."""
    shown = Table(
        title=f"{figures['pairs']:,.0f} pairs over {figures['edges']:,.0f} edges, {platform.machine()}, "
        f"Python {platform.python_version()}"
    )
    for heading in ("way", "processor seconds", "times"):
        shown.add_column(heading, justify="left" if heading == "way" else "right")
    shown.add_row("plain Python", f"{figures['python']:.3f}", f"{figures['times_faster']:,.0f}")
    shown.add_row("compiled", f"{figures['compiled']:.4f}", "1")
    shown.add_row("first call, with compiling or reading the cache", f"{figures['first_call']:.2f}", "")
    Console().print(shown)


if __name__ == "__main__":
    main()
