"""Compile and load the walks before a turn begins, so that no turn pays for the compiler."""

from __future__ import annotations

from functools import cache

import numpy as np

from hades.ports.graph import ALWAYS, Adjacency, Csr, Validity
from hades.retrieval.walks.flow_kernel import spread
from hades.retrieval.walks.pagerank import personalized_pagerank


@cache
def load_kernels() -> None:
    """Run each kernel once on two nodes and an edge; numba caches the machine code beside its module."""
    one, always = np.zeros(1, np.int64), int(ALWAYS)
    for adjacency in _tiny_graphs():
        personalized_pagerank(adjacency, one, np.ones(1), max_work=1)
        spread(
            adjacency, one, one, gains=np.ones(256), within=None, moments=(always, always),
            alpha=0.5, theta=0.5, max_hops=1, max_work=1, slice_work=1,
        )  # fmt: skip


def _tiny_graphs() -> tuple[Adjacency, Adjacency]:
    """One edge without and with valid times, in read-only arrays as a snapshot has them: numba compiles by type."""
    target, edge, kind, weight = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8), np.ones(1, "f4")
    starts, bound = np.array([0, 1, 1], np.int64), np.array([ALWAYS], np.int64)
    for array in (target, edge, kind, weight, starts, bound):
        array.setflags(write=False)
    rows = Csr(starts, target, edge, kind, weight)
    return Adjacency(rows, rows, None), Adjacency(rows, rows, Validity(bound, bound, bound, bound))
