"""The learned ranker: what an epoch, fitting to the end and ranking candidates cost.

    python benchmarks/bench_ranker.py [--home HOME] [--candidates 500] [--json FILE]

HOME is a published graph (HADES_HOME by default); without one a graph of the size of arXiv's is
made up. The fastest epoch counts, in processor seconds. `fit` is what fitting the states to the end
takes, `peak_mb` what it holds. Ranking is the part that grows with the candidates: states looked
up, products, the line; reading texts is not in it.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import served
from hades.snapshot.write_graph import graph_of
from models.ranker.fit import fit_states
from models.ranker.infer import COLUMNS, Graph, RankerModel, StateRules, node_states, undirected

NODES, EDGES, WIDTH, DIMENSION = 65_000, 218_000, 396, 384
EPOCHS = 4
REPEATS = 400


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=load_settings().home)
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    graph = published(arguments.home) if served(arguments.home) else made_up()
    figures = measure(graph, arguments.candidates)
    table = Table(
        "what", "figure", title=f"{len(graph):,} nodes, {len(graph.targets) // 2:,} edges"
    )
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:,.4g}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(graph: Graph, candidates: int) -> dict[str, float]:
    """Every figure."""
    epoch = own_epoch(graph)
    began = time.perf_counter()
    arrays, curve = fit_states(graph, (), StateRules())
    fit_seconds = time.perf_counter() - began
    model = RankerModel({}, {**arrays, "tower": np.ones((DIMENSION, 64), np.float32)})
    states_seconds, states = timed(
        lambda: node_states(model, graph.features, graph.starts, graph.targets)
    )
    milliseconds = ranking(model, states, candidates)
    return {
        "nodes": len(graph),
        "edges": len(graph.targets) // 2,
        "epoch_s": epoch,
        "fit_states_s": fit_seconds,
        "fit_epochs": len(curve),
        "states_in_numpy_s": states_seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "candidates": candidates,
        "rank_p50_ms": float(np.quantile(milliseconds, 0.5)),
        "rank_p95_ms": float(np.quantile(milliseconds, 0.95)),
        "one_candidate_us": float(np.quantile(milliseconds, 0.5)) * 1000 / candidates,
    }


def own_epoch(graph: Graph) -> float:
    """Processor seconds of the fastest epoch, its look at held-out edges included."""
    marks = [time.process_time()]
    rules = StateRules(epochs=EPOCHS, patience=EPOCHS)
    fit_states(graph, (), rules, lambda what, done, of: marks.append(time.process_time()))
    return float(np.diff(marks)[1:].min())


def ranking(model: RankerModel, states: np.ndarray, candidates: int) -> np.ndarray:
    """Milliseconds of ranking this number of candidates; the ranking is repeated."""
    random = np.random.default_rng(0)
    columns = random.normal(size=(candidates, len(COLUMNS)))
    line = random.normal(size=len(COLUMNS))
    vector = random.normal(size=DIMENSION).astype(np.float32)
    taken = []
    for _ in range(REPEATS):
        nodes = random.integers(0, len(states), candidates)
        began = time.perf_counter()
        columns[:, -1] = states[nodes].astype(np.float32) @ model.question_state(vector)
        np.argsort(-(columns @ line), kind="stable")
        taken.append((time.perf_counter() - began) * 1000)
    return np.array(taken[REPEATS // 10 :])


def published(home: Path) -> Graph:
    """The graph that serves."""
    with closing(open_snapshot(home)) as view:
        tag = next(tag for tags in view.info.models.values() for tag in tags)
        return graph_of(view, tag)


def made_up() -> Graph:
    """A graph of the size of arXiv's, edges and features drawn at random."""
    random = np.random.default_rng(0)
    left, right = random.integers(0, NODES, EDGES), random.integers(0, NODES, EDGES)
    features = random.normal(size=(NODES, WIDTH)).astype(np.float32)
    return Graph(features, *undirected(*_csr(left, right), *_csr(right, left)))


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds, and what came of it."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def _csr(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(left, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(left, minlength=NODES))]).astype(
        np.int64
    ), right[order].astype(np.int32)


if __name__ == "__main__":
    main()
