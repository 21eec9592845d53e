"""Compiled walks made ready before a turn's clock starts: loading them takes longer than most turns may.

The first question of a process would otherwise spend its graph stage on it and answer without paths. The machine code
is kept beside the modules, or in the user's cache where they cannot be written, so that it is compiled once after an
installation; do that ahead of the first question with

    python -m hades.retrieval.warm
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hades.ports.view import ALWAYS, Adjacency, Csr, Validity
from hades.retrieval.recipes import GraphStep


@cache
def make_ready(step: GraphStep) -> None:
    """Load, or compile, what a step calls; steps that call nothing compiled cost nothing."""
    if step is GraphStep.FLOW:
        _flow()
    elif step in (GraphStep.PAGERANK, GraphStep.MULTI_HOP, GraphStep.FUSION):
        _push()


def main() -> None:
    """Everything there is."""
    for step in GraphStep:
        make_ready(step)


def _flow() -> None:
    from hades.retrieval.flow_kernel import BOTH_WAYS, spread

    one = np.zeros(1, np.int64)
    for adjacency in _tiny():
        spread(
            adjacency, one, np.ones(1), one, gains=np.ones(1), ways=BOTH_WAYS, within=None,
            moments=(int(ALWAYS), int(ALWAYS)), alpha=0.5, theta=0.5, max_hops=1, splits=True,
            max_work=10, slice_work=10,
        )  # fmt: skip


def _push() -> None:
    from hades.retrieval.ppr import personalized_pagerank

    for adjacency in _tiny():
        personalized_pagerank(adjacency, np.zeros(1, np.int64), np.ones(1), max_work=10)


def _tiny() -> list[Adjacency]:
    """Two nodes and an edge, without intervals and with them: code is kept by the types of its arrays."""
    bounds = _fixed(np.array([ALWAYS], np.int64))
    out, into = _rows(0, 1), _rows(1, 0)
    return [Adjacency(out, into, None), Adjacency(out, into, Validity(bounds, bounds, bounds, bounds))]


def _rows(tail: int, head: int) -> Csr:
    starts = np.array([0, 1, 1] if tail == 0 else [0, 0, 1], np.int64)
    parts = (starts, np.array([head], np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8), np.ones(1, np.float32))
    return Csr(*map(_fixed, parts))


def _fixed(
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    array.setflags(write=False)  # as the arrays of a snapshot are
    return array


if __name__ == "__main__":
    main()
