"""Compiled walks made ready while a turn's clock stands still: loading them takes longer than a stage may.

The first question of a process loads no compiler: a process that asks once would load it longer than it answers. Its
push over a graph that is not small is machine code that needs none, if some was kept; the rest is interpreted. The
second question loads the compiler, and a service does at its first; searches of a graph that is not small use it too.
The machine code is kept beside the modules, or in the user's cache where they cannot be written, so that it
is compiled once after an installation; do that ahead of the first question with

    python -m hades.retrieval.turn.warm_up
"""

from __future__ import annotations

import importlib
import itertools
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, Adjacency, Csr, Validity, ViewInfo
from hades.ports.view import GraphView
from hades.retrieval.turn.garbage import pass_over_loaded
from hades.retrieval.turn.recipes import GraphStep
from hades.retrieval.walks.compile_kernel import is_interpreted, want_machine_code

WALKS = (
    GraphStep.PAGERANK,
    GraphStep.MULTI_HOP,
    GraphStep.FUSION,
    GraphStep.RECOLLECTION,
    GraphStep.EVERY_CHANNEL,
)
FLOWS = (GraphStep.FLOW, GraphStep.EVERY_CHANNEL)
_JOINED = (GraphStep.PAGERANK, GraphStep.MULTI_HOP, GraphStep.EVERY_CHANNEL)  # steps that weigh types by `FACTORS`
_WALKS, _RANKING, _CHANNELS = (f"hades.retrieval.{folder}." for folder in ("walks", "ranking", "channels"))
_RERANKING = (f"{_RANKING}rerank", f"{_RANKING}supporting_passages")
_LEARNED = f"{_RANKING}learned_ranker"
_PLACED = (f"{_CHANNELS}near", f"{_CHANNELS}placed_search")
_MODULES = {
    GraphStep.NOTHING: _RERANKING,
    GraphStep.BEAM: (*_RERANKING, f"{_CHANNELS}narrow_topics", f"{_WALKS}beam", f"{_WALKS}k_best_paths"),
    GraphStep.TOPICS: (*_RERANKING, f"{_CHANNELS}narrow_topics"),
    GraphStep.NEIGHBOURHOOD: (*_RERANKING, f"{_WALKS}neighbourhood"),
    GraphStep.FLOW: (*_RERANKING, f"{_WALKS}flow_kernel", f"{_WALKS}flow", f"{_WALKS}beam"),
    GraphStep.PAGERANK: (f"{_CHANNELS}contextual_search", f"{_WALKS}hipporag"),
    GraphStep.MULTI_HOP: (f"{_CHANNELS}contextual_search", f"{_WALKS}hipporag"),
    GraphStep.FUSION: (f"{_CHANNELS}contextual_search", f"{_RANKING}nexus"),
    GraphStep.RECOLLECTION: (f"{_CHANNELS}memory_recipe",),
    GraphStep.EVERY_CHANNEL: (
        f"{_RANKING}rank_evidence",
        f"{_WALKS}explain_paths",
        f"{_WALKS}flow_kernel",
    ),
}
SCANNED_FROM = 100_000  # nodes of one kind; a snapshot has cells from this number of vectors on
SEARCHED_FROM = 4_096  # nodes of a graph; below, a search takes too little time for machine code to matter
_ready: set[tuple[GraphStep, bool]] = set()
_questions = itertools.count()
_scans: list[bool] = []


def make_ready(step: GraphStep, adjacency: Adjacency | None) -> None:
    """Load, or compile, what a step calls; nothing over a network.

    Nothing either for the first question of a process that has not loaded the compiler. Machine code is kept by the
    types of the arrays, and those of intervals are there or not.
    """
    if adjacency is None or not len(adjacency.out.starts) > 1:
        return
    if is_interpreted():
        is_large = len(adjacency.out.starts) > SEARCHED_FROM
        if not is_large and step not in (*WALKS, *FLOWS):
            return
        if next(_questions) == 0 and "numba" not in sys.modules:
            if is_large and step in WALKS:
                _read_push()
            return
        want_machine_code()
    for kind, steps, load in ((GraphStep.FLOW, FLOWS, _flow), (GraphStep.PAGERANK, WALKS, _walk)):
        key = (kind, adjacency.validity is not None)
        if step in steps and key not in _ready:
            load(adjacency)
            _ready.add(key)


def join_walked_rows(step: GraphStep, view: GraphView) -> None:
    """Join the rows that a step walks over, where machine code does: once for a snapshot, in some milliseconds."""
    adjacency = view.adjacency() if step in _JOINED and not is_interpreted() else None
    if adjacency is not None:
        from hades.retrieval.walks.joined_rows import join_rows
        from hades.retrieval.walks.pagerank import weigh_types
        from hades.retrieval.walks.walk_search import FACTORS

        join_rows(adjacency, weigh_types(view, None, FACTORS))


def load_modules(step: GraphStep, *, has_ranker: bool = False, is_placed: bool = False) -> None:
    """Import what a step imports when it is taken, so that no stage spends its time on it.

    A snapshot may have a fitted ranker, and a question may be asked from a place; few are.
    """
    for name in (*_MODULES.get(step, ()), *((_LEARNED,) if has_ranker else ()), *(_PLACED if is_placed else ())):
        importlib.import_module(name)


def load_scan(info: ViewInfo) -> None:
    """Load the scan of coded vectors and the sums of postings where machine code is wanted.

    Both give what is found without them, several times faster. A collection that is so large that it is searched no
    other way needs the scan at once. Nobody looks for garbage in what is loaded by then: the compiler leaves some
    150,000 objects that stay, and looking through them takes longer than two questions.
    """
    is_large = max(info.nodes.values(), default=0) >= SCANNED_FROM
    if info.is_local and (is_large or not is_interpreted() or "numba" in sys.modules):
        _load_scans()


def main() -> None:
    """Everything there is."""
    want_machine_code()
    _load_scans()
    for step in GraphStep:
        for adjacency in _tiny():
            make_ready(step, adjacency)
    from hades.retrieval.walks.push import write_code

    write_code(_tiny()[0])


def _load_scans() -> None:
    if _scans:
        return
    from models.adjacency import ALL, merge_entries, take_entries
    from models.postings import add_postings
    from models.vector_search.scan import best_in_ranges, multiply
    from models.vector_search.signs import SignedRows, sign_question

    codes, rows, shares = np.zeros((1, 1), np.int8), np.zeros(1, np.int32), np.zeros(1, np.float32)
    signs, starts, types = np.zeros((1, 1), np.uint64), np.array([0, 1], np.int64), np.zeros(1, np.uint8)
    arrays: tuple[NDArray[Any], ...] = (codes, rows, shares, signs, starts, types)
    for array in arrays:
        array.setflags(write=False)  # as those of a snapshot are: machine code is kept by type
    multiply(codes, np.zeros((1, 1), np.int16))
    first = np.zeros(1, np.int64)
    best_in_ranges(SignedRows(signs, shares), sign_question(np.ones(1, np.float32)), first, first + 1, shares + 0, 1)
    add_postings(rows, shares, np.zeros(1, np.int64), np.ones(1, np.int64), 1)
    row, entry, _ = take_entries(starts, rows, types, np.zeros(1, np.int64), np.ones(1, np.bool_), False, 1, 1)
    columns = (rows, rows, types, shares)
    merge_entries((row, entry), (row, entry), columns, columns, ALL)
    pass_over_loaded()
    _scans.append(True)


def _read_push() -> None:
    from hades.retrieval.walks.push import read_code

    read_code()


def _flow(adjacency: Adjacency) -> None:
    from hades.retrieval.walks.flow_kernel import BOTH_WAYS, spread

    one, always = np.zeros(1, np.int64), int(ALWAYS)
    spread(
        adjacency, one, np.ones(1), one, gains=np.ones(256), ways=BOTH_WAYS, within=None, moments=(always, always),
        alpha=0.5, theta=0.5, max_hops=1, splits=True, max_work=1, slice_work=1,
    )  # fmt: skip


def _walk(adjacency: Adjacency) -> None:
    from hades.retrieval.walks.joined_rows import join_rows, push_joined
    from hades.retrieval.walks.pagerank import personalized_pagerank

    personalized_pagerank(adjacency, np.zeros(1, np.int64), np.ones(1), max_work=1)
    rows = join_rows(_tiny()[0], np.ones(1))
    if rows is not None:
        push_joined(rows, np.zeros(1, np.int64), np.ones(1), damping=0.5, epsilon=0.1, max_work=1)


def _tiny() -> tuple[Adjacency, Adjacency]:
    """Two nodes and an edge, without intervals and with them, in arrays as a snapshot has them."""
    target, edge, kind, weight = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8), np.ones(1, "f4")
    starts, bound = np.array([0, 1, 1], np.int64), np.array([ALWAYS], np.int64)
    for array in (target, edge, kind, weight, starts, bound):
        array.setflags(write=False)
    rows = Csr(starts, target, edge, kind, weight)
    return Adjacency(rows, rows, None), Adjacency(rows, rows, Validity(bound, bound, bound, bound))


if __name__ == "__main__":
    main()
