"""The learned ranker: an epoch beside a plain PyG GraphSAGE of the same size, and what ranking candidates costs.

    python benchmarks/bench_ranker.py [--home HOME] [--candidates 500] [--json FILE]

HOME is a published graph (HADES_HOME by default); without one a graph of the size of arXiv's is made up. Both networks
see the same features and edges, and take a step on the same loss in a full batch: processor seconds are compared, each
side's fastest epoch. `sample` is drawing the neighbourhoods of one step of a graph that is fitted by parts. `fit` is
what fitting the states to the end takes, `peak_mb` what it holds. Ranking is the part that grows with the candidates:
states looked up, products, three heads, confidence; reading texts is not in it.
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
from numpy_sampler import sample_in_numpy
from rich.console import Console
from rich.table import Table

from hades.settings.load import load_settings
from hades.snapshot.manifest import served
from hades.snapshot.open import open_snapshot
from hades.snapshot.write_edges import graph_of
from models.ranker.fit import StateRules, fit_states
from models.ranker.infer import HEADS, Graph, Head, RankerModel, node_states, undirected
from models.ranker.network import NeighbourSampler

NODES, EDGES, WIDTH, DIMENSION = 65_000, 218_000, 396, 384
EPOCHS = 4
REPEATS = 400


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=load_settings().home)
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    graph = published(arguments.home) if served(arguments.home) else made_up()
    figures = measure(graph, arguments.candidates)
    table = Table("what", "figure", title=f"{len(graph):,} nodes, {len(graph.targets) // 2:,} edges")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:,.4g}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(graph: Graph, candidates: int) -> dict[str, float]:
    """Every figure."""
    plain, own = plain_epoch(graph), own_epoch(graph)
    began = time.perf_counter()
    arrays, curve = fit_states(graph, None, StateRules())
    fit_seconds = time.perf_counter() - began
    model = RankerModel({}, {**arrays, "tower": np.ones((DIMENSION, 64), np.float32)})
    states_seconds, states = timed(lambda: node_states(model, graph.features, graph.starts, graph.targets))
    milliseconds = ranking(model, states, candidates)
    in_numpy, compiled = sampling(graph)
    return {
        "nodes": len(graph),
        "edges": len(graph.targets) // 2,
        "plain_sage_epoch_s": plain,
        "our_epoch_s": own,
        "our_epoch_over_plain": own / plain,
        "fit_states_s": fit_seconds,
        "fit_epochs": len(curve.fitted),
        "states_in_numpy_s": states_seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "sample_in_numpy_ms": in_numpy,
        "sample_compiled_ms": compiled,
        "sample_compiled_over_numpy": compiled / in_numpy,
        "candidates": candidates,
        "rank_p50_ms": float(np.quantile(milliseconds, 0.5)),
        "rank_p95_ms": float(np.quantile(milliseconds, 0.95)),
        "one_candidate_us": float(np.quantile(milliseconds, 0.5)) * 1000 / candidates,
    }


def plain_epoch(graph: Graph) -> float:
    """Processor seconds of an epoch of two plain SAGEConv layers of the same size on the same loss."""
    import torch
    from torch_geometric.nn import SAGEConv

    from models.ranker.network import States

    rules = StateRules()
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([SAGEConv(graph.features.shape[1], rules.hidden), SAGEConv(rules.hidden, rules.state)])
    loss_of = States(1, 1, 1, 1)
    learner = torch.optim.AdamW(layers.parameters(), lr=rules.rate)
    features = torch.from_numpy(graph.features)
    left = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    edges = torch.from_numpy(np.stack([graph.targets.astype(np.int64), left]))
    random = np.random.default_rng(0)

    def epoch() -> None:
        chosen = torch.from_numpy(random.integers(0, edges.shape[1], rules.links))
        other = torch.from_numpy(random.integers(0, len(graph), rules.links))
        learner.zero_grad()
        hidden = torch.nn.functional.dropout(torch.relu(layers[0](features, edges)), rules.dropout)
        states = torch.nn.functional.normalize(layers[1](hidden, edges), dim=1)
        loss_of.link_loss(states, edges[0][chosen], edges[1][chosen], other).backward()
        learner.step()
        layers.eval()
        with torch.no_grad():
            layers[1](torch.relu(layers[0](features, edges)), edges)
        layers.train()

    return fastest(epoch)


def own_epoch(graph: Graph) -> float:
    """Processor seconds of our fastest epoch, its look at held-out edges included, as above."""
    marks = [time.process_time()]
    rules = StateRules(epochs=EPOCHS, patience=EPOCHS)
    fit_states(graph, None, rules, lambda what, done, of: marks.append(time.process_time()))
    return float(np.diff(marks)[1:].min())


def sampling(graph: Graph) -> tuple[float, float]:
    """Processor milliseconds of drawing the neighbourhoods of one step, by numpy and compiled; each side's fastest."""
    rules, sampler = StateRules(), NeighbourSampler(graph.starts, graph.targets)
    random = np.random.default_rng(0)
    asked = np.unique(random.integers(0, len(graph), 3 * rules.batch))
    in_numpy = fastest(lambda: sample_in_numpy(graph.starts, graph.targets, asked, rules.fanouts, random))
    compiled = fastest(lambda: sampler.sample(asked, rules.fanouts, random))
    return in_numpy * 1000, compiled * 1000


def ranking(model: RankerModel, states: np.ndarray, candidates: int) -> np.ndarray:
    """Milliseconds of ranking this number of candidates; the ranking is repeated."""
    random = np.random.default_rng(0)
    heads = {name: made_up_head(len(HEADS[name]), random) for name in ("reach", "read", "sure")}
    columns = {name: random.normal(size=(candidates, len(HEADS[name]))).astype(np.float32) for name in heads}
    vector = random.normal(size=DIMENSION).astype(np.float32)
    served = RankerModel(
        {}, {**model.arrays, "sure.from": np.arange(64, dtype=np.float32), "sure.to": np.linspace(0, 1, 64)}
    )
    taken = []
    for _ in range(REPEATS):
        nodes = random.integers(0, len(states), candidates)
        began = time.perf_counter()
        own = states[nodes].astype(np.float32)
        towards, near = own @ served.question_state(vector), own @ own[:8].T
        scores = {name: head.score(columns[name]) for name, head in heads.items()}
        served.confidence(scores["sure"])
        np.argsort(-(scores["reach"] + scores["read"] + towards + near[:, 0]), kind="stable")
        taken.append((time.perf_counter() - began) * 1000)
    return np.array(taken[REPEATS // 10 :])


def made_up_head(width: int, random: np.random.Generator) -> Head:
    """A head as wide as five folds make it."""
    shapes = ((width,), (width,), (width,), (width, 40), (40,), (40,))
    return Head(*(random.normal(size=shape).astype(np.float32) for shape in shapes))


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


def fastest(work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of a few runs, after one to warm up."""
    work()
    taken = []
    for _ in range(EPOCHS - 1):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds, and what came of it."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def _csr(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(left, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(left, minlength=NODES))]).astype(np.int64), right[order].astype(
        np.int32
    )


if __name__ == "__main__":
    main()
