"""Flow-pruned paths among 40 nodes beside breadth-first enumeration of weighted paths over
networkx, and their growth.

    python benchmarks/bench_flow.py [--nodes 10000,100000] [--json FILE]

The graph is made up with a fixed seed: ten edges a node, drawn by preference, so that there are
hubs. The enumeration does what published PathRAG code does for each ordered pair of the 40 nodes:
every loopless path of at most three edges, breadth first, each with its decayed weight. It runs
over a sample of the pairs and is scaled up; a second figure lets it share one enumeration among all
pairs of a source. The flow follows edges both ways with the defaults of a turn and returns what
carries at least the threshold: it is faster because it never walks the rest. All figures come from
one run on one machine; read the ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from pathlib import Path

import networkx
import numpy as np
from rich.console import Console
from rich.table import Table

from hades.ports.graph import Adjacency, Csr
from hades.retrieval.walks.flow import DECAY_RATE, LEAST_FLOW, spread
from hades.retrieval.walks.rows import Rows

NODES, HOPS, EDGES_A_NODE = 40, 3, 10
SAMPLED_PAIRS, REPEATS, DRAWS = 6, 9, 5


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="10000,100000")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.nodes.split(",")]
    figures = {str(size): measure(size) for size in sizes}
    first, last = figures[str(sizes[0])], figures[str(sizes[-1])]
    body: dict[str, object] = dict(figures)
    if len(sizes) > 1:
        grown = math.log(sizes[-1] / sizes[0])
        body["growth"] = {
            "exponent_of_seconds": math.log(last["flow"] / first["flow"]) / grown,
            "exponent_of_entries": math.log(last["entries"] / first["entries"]) / grown,
            "seconds_per_entry_ratio": (last["flow"] / last["entries"])
            / (first["flow"] / first["entries"]),
        }
    show(body)
    if arguments.json:
        arguments.json.write_text(json.dumps(body, indent=1))


def measure(size: int) -> dict[str, float]:
    """Seconds of each way over one graph."""
    tails, heads, weights = made_up_graph(size)
    adjacency = Adjacency(
        rows(tails, heads, weights, size), rows(heads, tails, weights, size), None
    )
    draws = [
        np.random.default_rng(draw).choice(size, NODES, replace=False) for draw in range(DRAWS)
    ]
    spread_from(adjacency, draws[0])  # pages in memory, before anything is measured
    flow = statistics.median(
        seconds(partial(spread_from, adjacency, chosen)) for chosen in draws * REPEATS
    )
    found = [spread_from(adjacency, chosen) for chosen in draws]
    plain = networkx.Graph()
    plain.add_weighted_edges_from(
        zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True)
    )
    pairs = list(permutations(draws[0].tolist(), 2))
    sample = [
        pairs[place]
        for place in np.random.default_rng(1).choice(len(pairs), SAMPLED_PAIRS, replace=False)
    ]
    by_pair = seconds(
        lambda: [list(enumerated(plain, source, {target})) for source, target in sample]
    )
    sources = [source for source, _ in sample]
    by_source = seconds(
        lambda: [list(enumerated(plain, source, set(draws[0].tolist()))) for source in sources]
    )
    return {
        "flow": flow,
        "entries": statistics.mean(work for _, work in found),
        "paths": statistics.mean(paths for paths, _ in found),
        "enumeration": by_pair / SAMPLED_PAIRS * len(pairs),
        "enumeration_shared_by_source": by_source / SAMPLED_PAIRS * NODES,
        "times_faster": by_pair / SAMPLED_PAIRS * len(pairs) / flow,
        "times_faster_than_shared": by_source / SAMPLED_PAIRS * NODES / flow,
    }


def made_up_graph(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each node joins ten earlier ones; half of them are ends of earlier edges, which makes
    hubs.
    """
    chance = np.random.default_rng(0)
    tails = np.repeat(np.arange(size), EDGES_A_NODE)
    heads = (chance.random(len(tails)) * np.maximum(tails, 1)).astype(np.int64)
    preferred = chance.random(len(tails)) < 0.5
    copied = (chance.random(len(tails)) * np.maximum(np.arange(len(tails)), 1)).astype(np.int64)
    for place in np.flatnonzero(preferred):
        heads[place] = heads[copied[place]]
    kept = tails != heads
    return tails[kept], heads[kept], chance.uniform(0.1, 1.0, kept.sum()).astype(np.float32)


def rows(near: np.ndarray, far: np.ndarray, weights: np.ndarray, size: int) -> Csr:
    """One direction, heaviest first and read-only, as a snapshot has it."""
    order = np.lexsort((-weights, near))
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=size), out=starts[1:])
    types = np.zeros(len(near), np.uint8)
    made = Csr(starts, far[order].astype(np.int32), order.astype(np.int32), types, weights[order])
    for part in (made.starts, made.target, made.edge, made.type, made.weight):
        part.setflags(write=False)
    return made


def spread_from(adjacency: Adjacency, chosen: np.ndarray) -> tuple[int, int]:
    """The flow from all chosen nodes, with the defaults: how many paths, and entries read."""
    always = np.iinfo(np.int64).min
    read = Rows(adjacency, np.ones(1), (always, always), shares=True)
    found, _ = spread(
        read, chosen, np.sort(chosen), allowed=None, theta=LEAST_FLOW, hops=HOPS, max_work=10**9
    )
    return sum(len(walks.nodes) for walks in found), read.work


def enumerated(
    graph: networkx.Graph, source: int, targets: set[int]
) -> Iterator[tuple[list[int], float]]:
    """Every loopless path of at most three edges to a target, breadth first, with its decayed
    weight.
    """
    frontier: list[tuple[list[int], float]] = [([source], 1.0)]
    for _ in range(HOPS):
        grown = []
        for path, flow in frontier:
            for neighbour, edge in graph.adj[path[-1]].items():
                if neighbour not in path:
                    passed = flow * DECAY_RATE * edge["weight"]
                    longer = [*path, neighbour]
                    grown.append((longer, passed))
                    if neighbour in targets and neighbour != source:
                        yield longer, passed
        frontier = grown


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(body: dict[str, object]) -> None:
    """One row a figure."""
    table = Table(
        title=f"paths among {NODES} nodes, {platform.machine()}, Python {platform.python_version()}"
    )
    for heading in ("graph", "what", "figure"):
        table.add_column(heading, justify="right" if heading == "figure" else "left")
    for graph, figures in body.items():
        for what, value in figures.items():  # type: ignore[attr-defined]
            table.add_row(graph, what.replace("_", " "), f"{value:,.5g}")
    Console().print(table)


if __name__ == "__main__":
    main()
