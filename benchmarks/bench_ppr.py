"""Personalized PageRank by forward push against networkx and igraph, on a graph with communities,
in one run.

    python benchmarks/bench_ppr.py [--sizes 100000,1000000] [--questions 20] [--networkx-limit
    1000000] [--json FILE]

Communities of 100 nodes, 9 of 10 edges inside, ten edges a node, weights in (0, 1], damping .5, two
restart nodes a question. Push is the median over the questions, arrays warm as in a process that
serves, to a bound of 5e-5 per degree; its agreement in the first 20 is with power iteration run to
1e-12. networkx.pagerank runs once, at its own tolerance, which stops it after few iterations; above
`--networkx-limit` edges it is not run and its time is the measured time scaled by the number of
edges, which flatters it, and the table says "scaled".
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.ports.graph import Adjacency, Csr
from hades.retrieval.walks.pagerank import personalized_pagerank

EDGES_PER_NODE = 10
COMMUNITY = 100
INSIDE = 0.9
DAMPING = 0.5
TOP = 20
EPSILON = 5e-5


def main() -> None:
    """Generate, measure, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sizes", default="100000,1000000", help="numbers of nodes")
    options.add_argument("--questions", type=int, default=20)
    options.add_argument(
        "--networkx-limit", type=int, default=1_000_000, help="edges up to which networkx is run"
    )
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    rows: list[dict[str, Any]] = []
    for size in map(int, asked.sizes.split(",")):
        rows.append(measured(size, asked.questions, asked.networkx_limit, rows))
        show(rows[-1])
    body: dict[str, Any] = {"questions": asked.questions, "sizes": rows}
    if len(rows) > 1:
        growth = rows[-1]["push_ms"] / rows[0]["push_ms"]
        body["growth"] = growth
        body["growth_exponent"] = math.log(growth) / math.log(rows[-1]["nodes"] / rows[0]["nodes"])
        print(
            f"\nfrom {rows[0]['nodes']} to {rows[-1]['nodes']} nodes push takes {growth:.2f} times "
            "as long"
        )
    print("\n" + json.dumps(body))
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def measured(
    n_nodes: int, questions: int, networkx_limit: int, before: list[dict[str, Any]]
) -> dict[str, Any]:
    """All ways on one graph."""
    source, target, weight = generated(n_nodes)
    adjacency = Adjacency(
        rows_of(source, target, weight, n_nodes), rows_of(target, source, weight, n_nodes), None
    )
    chance = np.random.default_rng(11)
    starts = [chance.integers(0, n_nodes, 2) for _ in range(questions)]

    def push(restart: Any) -> Any:
        return personalized_pagerank(
            adjacency, restart, np.ones(2), damping=DAMPING, epsilon=EPSILON, max_work=50_000_000
        )

    for restart in starts:
        push(restart)  # pages in memory
    times, works, agreed = [], [], []
    exact = power_iteration(source, target, weight, n_nodes)
    for restart in starts:
        began = time.perf_counter()
        found = push(restart)
        times.append(time.perf_counter() - began)
        works.append(found.work)
    for restart in starts[:10]:
        truth = set(np.argsort(-exact(restart), kind="stable")[:TOP].tolist())
        agreed.append(len(truth & set(push(restart).numbers[:TOP].tolist())) / TOP)
    igraph_ms = igraph_time(source, target, weight, n_nodes, starts[0]) * 1e3
    if len(source) <= networkx_limit:
        networkx_ms, how = (
            networkx_time(source, target, weight, n_nodes, starts[0]) * 1e3,
            "measured",
        )
    elif before and before[0]["networkx"] == "measured":
        networkx_ms, how = before[0]["networkx_ms"] * len(source) / before[0]["edges"], "scaled"
    else:
        networkx_ms, how = math.nan, "not run"
    ours = statistics.median(times) * 1e3
    return {
        "nodes": n_nodes,
        "edges": len(source),
        "push_ms": ours,
        "push_work": int(statistics.median(works)),
        "agreement_top20": float(np.mean(agreed)),
        "igraph_ms": igraph_ms,
        "igraph_ratio": igraph_ms / ours,
        "networkx_ms": networkx_ms,
        "networkx": how,
        "networkx_ratio": networkx_ms / ours,
    }


def generated(n_nodes: int) -> tuple[Any, Any, Any]:
    """Ends and weights from a fixed seed; no node points to itself."""
    chance = np.random.default_rng(7)
    n_edges = n_nodes * EDGES_PER_NODE
    source = chance.integers(0, n_nodes, n_edges)
    near = source // COMMUNITY * COMMUNITY + chance.integers(0, COMMUNITY, n_edges)
    target = np.where(
        chance.random(n_edges) < INSIDE,
        np.minimum(near, n_nodes - 1),
        chance.integers(0, n_nodes, n_edges),
    )
    target = np.where(target == source, (target + 1) % n_nodes, target)
    return source, target, (1.0 - chance.random(n_edges)).astype(np.float32)


def rows_of(near: Any, far: Any, weight: Any, n_nodes: int) -> Csr:
    """One direction, as a snapshot holds it: heaviest first."""
    order = np.lexsort((-weight, near))
    starts = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=n_nodes), out=starts[1:])
    kinds = np.zeros(len(near), np.uint8)
    return Csr(starts, far[order].astype(np.int32), order.astype(np.int32), kinds, weight[order])


def power_iteration(source: Any, target: Any, weight: Any, n_nodes: int) -> Callable[[Any], Any]:
    """The exact answer to 1e-12, by a sparse matrix."""
    import scipy.sparse as sparse

    one_way = sparse.coo_matrix(
        (weight.astype(np.float64), (source, target)), shape=(n_nodes, n_nodes)
    ).tocsr()
    both = one_way + one_way.T
    degree = np.asarray(both.sum(axis=0)).ravel()
    step = both @ sparse.diags(1.0 / np.where(degree > 0, degree, 1.0))

    def exact(restart: Any) -> Any:
        mass = np.bincount(restart, np.full(len(restart), 1.0 / len(restart)), minlength=n_nodes)
        score = mass
        for _ in range(40):  # .5 ** 40 < 1e-12
            score = DAMPING * (step @ score) + (1.0 - DAMPING) * mass
        return score

    return exact


def igraph_time(source: Any, target: Any, weight: Any, n_nodes: int, restart: Any) -> float:
    """igraph's own solver (PRPACK), the graph built beforehand."""
    import igraph

    graph = igraph.Graph(n=n_nodes, edges=np.column_stack([source, target]), directed=False)
    weights = weight.astype(float).tolist()
    began = time.perf_counter()
    graph.personalized_pagerank(
        reset_vertices=restart.tolist(), damping=DAMPING, weights=weights, directed=False
    )
    return time.perf_counter() - began


def networkx_time(source: Any, target: Any, weight: Any, n_nodes: int, restart: Any) -> float:
    """networkx.pagerank, the graph built beforehand."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_weighted_edges_from(
        zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)
    )
    began = time.perf_counter()
    networkx.pagerank(
        graph, alpha=DAMPING, personalization=dict.fromkeys(restart.tolist(), 1.0), weight="weight"
    )
    return time.perf_counter() - began


def show(row: dict[str, Any]) -> None:
    """One size, for people."""
    print(f"{row['nodes']} nodes, {row['edges']} edges")
    agreed = f"top {TOP} agree {row['agreement_top20']:.3f}"
    print(f"  push      {row['push_ms']:12.3f} ms   {row['push_work']} entries, {agreed}")
    print(f"  igraph    {row['igraph_ms']:12.1f} ms   {row['igraph_ratio']:.0f} times as long")
    print(
        f"  networkx  {row['networkx_ms']:12.1f} ms   {row['networkx_ratio']:.0f} times as long "
        f"({row['networkx']})"
    )


if __name__ == "__main__":
    main()
