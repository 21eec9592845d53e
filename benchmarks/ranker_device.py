"""Fitting the states of a graph's nodes: processor beside accelerator.

    python benchmarks/ranker_device.py [--nodes 1000000] [--edges 8000000] [--device cuda] [--epochs
    3]
                                       [--json FILE]

Needs torch, torch-geometric and numpy, and of this repository `models/` only. The graph is made up:
a thousand communities, nine of ten edges inside one. Every way fits the same network with the same
seed for the same epochs; seconds are of an epoch, the first (which warms up) left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from models.ranker.fit import fit_states
from models.ranker.infer import Graph, StateRules, undirected

WIDTH = 384 + 12
COMMUNITIES = 1_000


def main() -> None:
    """Measure each way, print JSON."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--nodes", type=int, default=1_000_000)
    options.add_argument("--edges", type=int, default=8_000_000)
    options.add_argument("--device", default=None, help="cuda where there is one, by default")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--skip-cpu", action="store_true")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    import torch

    graph = made_up(asked.nodes, asked.edges)
    fast = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    devices = [fast] if fast == "cpu" or asked.skip_cpu else ["cpu", fast]
    body: dict[str, Any] = {
        "nodes": len(graph),
        "edges": int(len(graph.targets) // 2),
        "width": graph.features.shape[1],
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if fast == "cuda" else fast,
        "threads": torch.get_num_threads(),
    }
    for device in devices:
        body[device] = measured(graph, device, asked.epochs)
        print(f"{device}: {body[device]}", file=sys.stderr, flush=True)
    print(json.dumps(body, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def measured(graph: Graph, device: str, epochs: int) -> dict[str, float]:
    """Seconds an epoch, peak memory in MB, and where the losses ended."""
    import torch

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times: list[float] = [time.perf_counter()]

    def told(what: str, done: int, of: int) -> None:
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter())

    rules = StateRules(epochs=epochs + 1, patience=epochs + 1, device=device)
    _, curve = fit_states(graph, (), rules, told)
    peak = (
        torch.cuda.max_memory_allocated()
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
    return {
        "seconds_an_epoch": round(float(np.mean(np.diff(times)[1:])), 3),
        "peak_mb": round(peak / 2**20),
        "loss": round(curve[-1][0], 4),
        "held_out_loss": round(curve[-1][1], 4),
    }


def made_up(n_nodes: int, n_edges: int) -> Graph:
    """Communities of equal size, features that lean towards their community; seeded."""
    random = np.random.default_rng(20260101)
    town = random.integers(0, COMMUNITIES, n_nodes)
    order = np.argsort(town, kind="stable")
    starts = np.searchsorted(town[order], np.arange(COMMUNITIES + 1))
    left = random.integers(0, n_nodes, n_edges)
    sizes = np.diff(starts)[town[left]]
    inside = order[starts[town[left]] + (random.random(n_edges) * sizes).astype(np.int64)]
    right = np.where(random.random(n_edges) < 0.9, inside, random.integers(0, n_nodes, n_edges))
    centres = random.standard_normal((COMMUNITIES, WIDTH), np.float32)
    features = random.standard_normal((n_nodes, WIDTH), np.float32)
    features += centres[town]
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return Graph(features, *undirected(*_csr(left, right, n_nodes), *_csr(right, left, n_nodes)))


def _csr(left: np.ndarray, right: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(left, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(left, minlength=n))]).astype(np.int64)
    return starts, right[order].astype(np.int32)


if __name__ == "__main__":
    main()
