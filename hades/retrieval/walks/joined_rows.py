"""Forward push over rows that join both directions of an adjacency as a walk weighs it: less to read, one call a walk.

An entry is left out where its type counts nothing, and where it is the second half of a loop. Each knows the degree up
to it, so a node that need not push is told without reading its row. Sums are added in the order of `push` and the work
is counted as there, so every number is the same to the last bit. A walk that does not end within its work is left to
`push`, as are walks under a mask and those in which no node pushes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Adjacency, Csr
from hades.retrieval.walks.compile_kernel import compiled_loop, is_interpreted

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

MOST_ENTRIES = 3_000_000  # of both directions; 24 bytes each, in every process that walks
_LINE = 64  # bytes that the processor reads at once
_KEPT = 2  # graphs, or ways to weigh one: what serves, and what another recipe asks for
_ESTIMATE, _RESIDUAL, _DEGREE, _READ = range(4)
_START, _FIRST_DEGREE, _FIRST_READ, _WHOLE_DEGREE = range(4)
_QUEUED, _TOUCHED, _NOT_QUEUED = 1, 2, 0xFE

_kept: list[tuple[Csr, bytes, JoinedRows]] = []
_of_thread = threading.local()


@dataclass(frozen=True)
class JoinedRows:
    """The entries of a node stand between its start and that of the next node, those of outgoing edges first.

    `nodes` (nodes + 1, 4): the start of each, `degree` and `read` of its first entry, `degree` of its last: most nodes
    that a walk reaches need no more, so nothing is read of their entries.
    `gain` is weight times factor, `degree` its sum up to and with an entry, `read` how many entries of the adjacency
    stand up to there; `entries` (nodes,) how many there are of a node.
    """

    nodes: Floats
    target: NDArray[np.int32]
    gain: Floats
    degree: Floats
    read: NDArray[np.int32]
    entries: NDArray[np.int32]


@dataclass(frozen=True)
class Pushed:
    """Nodes with an estimate and their scores; what nodes hold that did not push it on, and the degrees known then."""

    numbers: Longs
    scores: Floats
    left: Floats
    degrees: Floats
    work: int


def join_rows(adjacency: Adjacency, factors: Floats) -> JoinedRows | None:
    """The rows weighed by factors of the types' codes; None where kernels are interpreted, or the graph is large."""
    if is_interpreted() or len(adjacency.out.target) + len(adjacency.into.target) > MOST_ENTRIES:
        return None
    key = factors.tobytes()
    for rows, weighed, joined in _kept:
        if rows is adjacency.out and weighed == key:
            return joined
    joined = _join_rows(adjacency, factors)
    _kept.append((adjacency.out, key, joined))
    del _kept[:-_KEPT]
    return joined


def push_joined(
    rows: JoinedRows, restart: Longs, weights: Floats, *, damping: float, epsilon: float, max_work: int
) -> Pushed | None:
    """Push until no node holds more than epsilon times its degree; None when `max_work` ended it first.

    `restart` are distinct, `weights` sum to 1. The arrays belong to the thread and are left as clean as they were.
    """
    n_nodes = len(rows.nodes) - 1
    scratch = getattr(_of_thread, "scratch", None)
    if scratch is None or len(scratch[1]) != n_nodes:
        whole, real = np.zeros(n_nodes, np.int32), np.zeros(n_nodes)
        scratch = _lay_together(np.zeros((n_nodes, 4)), np.zeros(n_nodes, np.uint8), *[whole] * 3, *[real] * 3)
    _of_thread.scratch = None  # an error inside leaves arrays behind that are not clean
    counts = np.zeros(3, np.int64)
    columns = (rows.nodes, rows.target, rows.gain, rows.degree, rows.read, rows.entries)
    is_complete = _push(*columns, restart, weights, *scratch, counts, epsilon, damping, max_work)
    _of_thread.scratch = scratch
    if not is_complete:
        return None
    n_scored, n_left, work = counts.tolist()
    _, _, _, _, numbers, scores, left, degrees = scratch
    return Pushed(
        numbers[:n_scored].astype(np.int64),
        scores[:n_scored].copy(),
        left[:n_left].copy(),
        degrees[:n_left].copy(),
        work,
    )


def _join_rows(adjacency: Adjacency, factors: Floats) -> JoinedRows:
    out, into = adjacency.out, adjacency.into
    most = len(out.target) + len(into.target)
    starts, target, read = np.zeros(len(out.starts), np.int64), np.empty(most, np.int32), np.empty(most, np.int32)
    gain, degree = np.empty(most), np.empty(most)
    arrays = (out.starts, out.target, out.type, out.weight, into.starts, into.target, into.type, into.weight)
    count = _join(*arrays, factors, starts, target, gain, degree, read)
    entries = (np.diff(out.starts) + np.diff(into.starts)).astype(np.int32)
    own = slice(count)
    nodes = _describe_nodes(starts, degree, read)
    return JoinedRows(*_lay_together(nodes, target[own], gain[own], degree[own], read[own], entries))


def _describe_nodes(starts: Longs, degree: Floats, read: NDArray[np.int32]) -> Floats:
    nodes = np.zeros((len(starts), 4))
    nodes[:, _START] = starts
    own = np.flatnonzero(np.diff(starts))  # a node without entries has the degree 0
    nodes[own, _FIRST_DEGREE], nodes[own, _FIRST_READ] = degree[starts[own]], read[starts[own]]
    nodes[own, _WHOLE_DEGREE] = degree[starts[own + 1] - 1]
    return nodes


def _lay_together(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Copies of the arrays in one block of memory.

    A walk reads in no order. NumPy asks the system for large pages for a block of 4 MB or more, so that fewer addresses
    must be translated; single arrays of most graphs are smaller.
    """
    ends = np.cumsum([-(-one.nbytes // _LINE) * _LINE for one in arrays]).tolist()
    block = np.zeros(ends[-1], np.uint8)
    copies = []
    for one, start in zip(arrays, [0, *ends[:-1]], strict=True):
        copy = block[start : start + one.nbytes].view(one.dtype).reshape(one.shape)
        copy[...] = one
        copies.append(copy)
    return tuple(copies)


@compiled_loop
def _join(  # type: ignore[no-untyped-def]  # pragma: no cover
    out_starts,
    out_target,
    out_type,
    out_weight,
    in_starts,
    in_target,
    in_type,
    in_weight,
    factors,
    starts,
    target,
    gain,
    degree,
    read,
) -> Any:
    at = 0
    for node in range(len(out_starts) - 1):
        total, seen = 0.0, 0
        for entry in range(out_starts[node], out_starts[node + 1]):
            seen += 1
            own = out_weight[entry] * factors[out_type[entry]]
            if own != 0.0:
                total += own
                target[at], gain[at], degree[at], read[at] = out_target[entry], own, total, seen
                at += 1
        for entry in range(in_starts[node], in_starts[node + 1]):
            seen += 1
            own = in_weight[entry] * factors[in_type[entry]]
            if own != 0.0 and in_target[entry] != node:
                total += own
                target[at], gain[at], degree[at], read[at] = in_target[entry], own, total, seen
                at += 1
        starts[node + 1] = at
    return at


@compiled_loop
def _push(  # type: ignore[no-untyped-def]  # pragma: no cover
    nodes,
    target,
    gain,
    degrees,
    read,
    entries,
    restart,
    weights,
    state,
    flags,
    queue,
    touched,
    numbers,
    scores,
    left,
    left_degrees,
    counts,
    epsilon,
    damping,
    max_work,
) -> Any:
    size, head, length, n_touched, work, spare = len(queue), 0, 0, len(restart), 0, 0
    for place in range(len(restart)):
        node = restart[place]
        state[node, _RESIDUAL] = weights[place]
        touched[place] = node
        queue[place] = node
        length += 1
        flags[node] = _TOUCHED | _QUEUED
    while length > 0 and work <= max_work:
        node = queue[head]
        head = head + 1 if head + 1 < size else 0
        length -= 1
        flags[node] &= _NOT_QUEUED
        held = state[node, _RESIDUAL]
        if held <= epsilon * nodes[node, _FIRST_DEGREE]:  # `push` knows the degree as far as the first entry
            state[node, _DEGREE], state[node, _READ] = nodes[node, _FIRST_DEGREE], nodes[node, _FIRST_READ]
            continue
        first, end, degree = int(nodes[node, _START]), int(nodes[node + 1, _START]), nodes[node, _WHOLE_DEGREE]
        if held <= epsilon * degree:  # it knows the degree as far as the first entry whose sum tells it that
            least, most = first + 1, end - 1
            while least < most:
                middle = (least + most) // 2
                if held > epsilon * degrees[middle]:
                    least = middle + 1
                else:
                    most = middle
            state[node, _DEGREE], state[node, _READ] = degrees[least], read[least]
            continue
        state[node, _DEGREE], state[node, _READ] = degree, -1.0
        state[node, _RESIDUAL] = 0.0
        if degree == 0.0:  # nowhere to go: the walk stays
            state[node, _ESTIMATE] += held
            spare = max(spare, entries[node])  # `push` asks whether the row may be read all the same
            continue
        state[node, _ESTIMATE] += (1.0 - damping) * held
        per_weight = damping * held / degree
        work += entries[node]
        for at in range(first, end):
            near = target[at]
            share = gain[at] * per_weight
            if share == 0.0:
                continue
            grown = state[near, _RESIDUAL] + share
            state[near, _RESIDUAL] = grown
            mark = flags[near]
            if mark & _QUEUED:
                continue
            if mark == 0:
                touched[n_touched] = near
                n_touched += 1
                flags[near] = _TOUCHED
            if grown > epsilon * state[near, _DEGREE]:
                place = head + length
                queue[place if place < size else place - size] = near
                length += 1
                flags[near] = _TOUCHED | _QUEUED
    n_scored, n_left = 0, 0
    for place in range(n_touched):
        node = touched[place]
        if state[node, _READ] != 0.0:  # what was read for a degree, once
            work += entries[node] if state[node, _READ] < 0.0 else int(state[node, _READ])
        if state[node, _ESTIMATE] > 0.0:
            numbers[n_scored], scores[n_scored] = node, state[node, _ESTIMATE]
            n_scored += 1
        if state[node, _RESIDUAL] > 0.0:
            left[n_left], left_degrees[n_left] = state[node, _RESIDUAL], state[node, _DEGREE]
            n_left += 1
        state[node, _ESTIMATE] = state[node, _RESIDUAL] = state[node, _DEGREE] = state[node, _READ] = 0.0
        flags[node] = 0
    counts[0], counts[1], counts[2] = n_scored, n_left, work
    return length == 0 and work + spare <= max_work
