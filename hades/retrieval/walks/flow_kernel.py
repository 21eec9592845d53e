"""Flow along loopless walks over compressed rows, compiled: it touches what it expands and nothing else.

A walk that carries `s` into a node passes `s * alpha * w / W` along each edge, where W is the sum of the node's edge
weights. The flows of all walks of one length add up to at most alpha ** length, so at most 1 / theta of them carry
theta or more: the search is bounded by the threshold and not by the graph. Rows stand heaviest first, which ends a
row at the first edge that carries too little, and ends the summing of W as soon as even the heaviest edge would."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, Adjacency, Csr, Numbers, Validity
from hades.retrieval.walks.pagerank import Floats, arrays_of, bounds_of, personalized_pagerank
from models.kernels import compile_loop

_FIRST_ROOM = 256
_TARGET, _INSIDE = 1, 2  # roles of a node
_DEPTH, _N_KEYS, _N_FOUND, _WORK, _STATUS = range(5)  # what a walk remembers between two calls
_FOLLOWING, _ENTERING, _CAPPED = range(3)
_SPREADER = 0x9E3779B1  # spreads neighbouring numbers over the table


@dataclass(frozen=True)
class Spread:
    """What one run found: walks that ended in a target.

    `nodes` is (n, max_hops + 1), `edges`, `outbound` and `flows` (n, max_hops); row i is filled for `length[i]` edges.
    `done` is how many sources were finished.
    """

    nodes: Numbers
    edges: Numbers
    outbound: NDArray[np.bool_]
    flows: Floats
    length: Numbers
    done: int
    work: int
    capped: bool


def spread(
    adjacency: Adjacency,
    sources: Numbers,
    targets: Numbers,
    *,
    gains: Floats,
    within: Numbers | None,
    moments: tuple[int, int],
    alpha: float,
    theta: float,
    max_hops: int,
    max_work: int,
    slice_work: int,
) -> Spread:
    """Let one unit of flow out of each source in turn; stops before a source once `slice_work` entries were read.

    `targets` and `within` are sorted.
    """
    roles = targets if within is None else np.concatenate([targets, within])
    marks = np.repeat(np.array([_TARGET, _INSIDE], np.int64), (len(targets), len(roles) - len(targets)))
    kernel: Any = _spread  # its signature is that of the arrays, which numba keeps to itself
    found = kernel(
        *arrays_of(adjacency.out), *arrays_of(adjacency.into), *bounds_of(adjacency.validity, moments), gains,
        sources, roles, marks, within is not None, alpha, theta, max_hops, max_work, slice_work,
    )  # fmt: skip
    nodes, edges, outbound, flows, length, done, work, capped = found
    return Spread(nodes, edges, outbound, flows, length, int(done), int(work), bool(capped))


@compile_loop
def _double(rows):  # type: ignore[no-untyped-def]  # pragma: no cover
    grown = np.zeros((2 * rows.shape[0], rows.shape[1]), rows.dtype)
    grown[: rows.shape[0]] = rows
    return grown


@compile_loop
def _place_of(keys, node):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Where a node stands in an open-addressed table, or where it would."""
    last = len(keys) - 1
    place = (node * _SPREADER) & last
    while keys[place] != -1 and keys[place] != node:
        place = (place + 1) & last
    return place


@compile_loop
def _spread(  # type: ignore[no-untyped-def]  # pragma: no cover
    out_starts, out_target, out_edge, out_type, out_weight, in_starts, in_target, in_edge, in_type, in_weight,
    valid_from, valid_until, recorded_at, retracted_at, masked, as_of, known_at, gains,
    sources, roles, marks, has_within, alpha, theta, max_hops, max_work, slice_work,
):  # fmt: skip
    """Source after source; whenever the walk runs out of room it is given twice as much and goes on."""
    room = _FIRST_ROOM
    nodes, edges = np.zeros((room, max_hops + 1), np.int64), np.zeros((room, max_hops), np.int64)
    outbound, flows = np.zeros((room, max_hops), np.bool_), np.zeros((room, max_hops), np.float64)
    length = np.zeros((room, 1), np.int64)
    while room < 4 * (len(roles) + 1):
        room *= 2
    keys, role, sums = np.full(room, -1, np.int64), np.zeros(room, np.int64), np.full(room, -1.0)
    state, best_gain = np.zeros(5, np.int64), gains.max()
    for turn in range(len(roles)):
        place = _place_of(keys, roles[turn])
        state[_N_KEYS] += keys[place] == -1
        keys[place] = roles[turn]
        role[place] |= marks[turn]
    walk, cursor, edge_of = np.zeros(max_hops + 1, np.int64), np.zeros(max_hops, np.int64), np.zeros(max_hops, np.int64)
    out_of, flow_of, scale = np.zeros(max_hops, np.bool_), np.zeros(max_hops + 1), np.zeros(max_hops)
    done = 0
    for turn in range(len(sources)):
        if state[_WORK] >= slice_work:
            break
        walk[0], flow_of[0] = sources[turn], 1.0
        state[_DEPTH], state[_STATUS] = 0, _ENTERING
        while True:
            _walk(
                out_starts, out_target, out_edge, out_type, out_weight,
                in_starts, in_target, in_edge, in_type, in_weight,
                valid_from, valid_until, recorded_at, retracted_at, masked, as_of, known_at, gains, best_gain,
                has_within, alpha, theta, max_hops, max_work,
                nodes, edges, outbound, flows, length, keys, role, sums,
                walk, cursor, edge_of, out_of, flow_of, scale, state,
            )  # fmt: skip
            if state[_DEPTH] < 0 or state[_STATUS] == _CAPPED:
                break
            if state[_N_FOUND] == len(nodes):
                nodes, edges, outbound = _double(nodes), _double(edges), _double(outbound)
                flows, length = _double(flows), _double(length)
            else:
                old_keys, old_role, old_sums = keys, role, sums
                room = 2 * len(old_keys)
                keys, role = np.full(room, -1, np.int64), np.zeros(room, np.int64)
                sums = np.full(room, -1.0)
                for old in np.flatnonzero(old_keys != -1):
                    place = _place_of(keys, old_keys[old])
                    keys[place], role[place] = old_keys[old], old_role[old]
                    sums[place] = old_sums[old]
        if state[_STATUS] == _CAPPED:
            break
        done += 1
    n_found = state[_N_FOUND]
    return (
        nodes[:n_found], edges[:n_found], outbound[:n_found], flows[:n_found], length[:n_found, 0],
        done, state[_WORK], state[_STATUS] == _CAPPED,
    )  # fmt: skip


@compile_loop
def _walk(  # type: ignore[no-untyped-def]  # pragma: no cover  # no array is made or renamed here: it would be counted at every step
    out_starts, out_target, out_edge, out_type, out_weight, in_starts, in_target, in_edge, in_type, in_weight,
    valid_from, valid_until, recorded_at, retracted_at, masked, as_of, known_at, gains, best_gain,
    has_within, alpha, theta, max_hops, max_work,
    nodes, edges, outbound, flows, length, keys, role, sums,
    walk, cursor, edge_of, out_of, flow_of, scale, state,
):  # fmt: skip
    """Depth first from where `state` says, until the source is done, the work is, or there is no room for more."""
    last, room = len(keys) - 1, len(nodes)
    depth, n_keys, n_found, work = state[_DEPTH], state[_N_KEYS], state[_N_FOUND], state[_WORK]
    status = state[_STATUS]
    while depth >= 0 and n_found < room and 2 * (n_keys + 1) <= last:
        node = walk[depth]
        first_out, first_in = out_starts[node], in_starts[node]
        n_out = out_starts[node + 1] - first_out
        n_in = in_starts[node + 1] - first_in
        if status == _ENTERING:  # the walk stands on a new node: find what one unit of weight carries away
            status = _FOLLOWING
            carried = flow_of[depth]
            heaviest = max(out_weight[first_out] if n_out else 0.0, in_weight[first_in] if n_in else 0.0)
            heaviest = min(max(heaviest, 0.0), 1.0) * best_gain
            opens = heaviest > 0.0
            if opens:
                place = (node * _SPREADER) & last
                while keys[place] != -1 and keys[place] != node:
                    place = (place + 1) & last
                enough = carried * alpha * heaviest / theta if theta > 0.0 else np.inf
                total = sums[place] if keys[place] == node else -1.0
                if total < 0.0:
                    total, step = 0.0, 0
                    stop = min(n_out + n_in, max_work - work)
                    while step < stop and total <= enough:
                        if step < n_out:
                            at = first_out + step
                            near, edge, kind, weight = out_target[at], out_edge[at], out_type[at], out_weight[at]
                        else:
                            at = first_in + step - n_out
                            near, edge, kind, weight = in_target[at], in_edge[at], in_type[at], in_weight[at]
                        step += 1
                        hidden = masked and (
                            (as_of != ALWAYS and (as_of < valid_from[edge] or as_of >= valid_until[edge]))
                            or (known_at != ALWAYS and (known_at < recorded_at[edge] or known_at >= retracted_at[edge]))
                        )
                        if near != node and not hidden:
                            total += min(max(weight, 0.0), 1.0) * gains[kind]
                    work += step
                    if step < n_out + n_in and total <= enough:
                        status = _CAPPED
                        break
                    if step == n_out + n_in and keys[place] == node:
                        sums[place] = total
                opens = 0.0 < total <= enough
                scale[depth] = carried * alpha / total if opens else 0.0
            cursor[depth] = 0 if opens else n_out + n_in
        step = cursor[depth]
        if step >= n_out + n_in:
            depth -= 1
            continue
        if work >= max_work:
            status = _CAPPED
            break
        work += 1
        cursor[depth] = step + 1
        outward = step < n_out
        if step < n_out:
            at = first_out + step
            near, edge, kind, weight = out_target[at], out_edge[at], out_type[at], out_weight[at]
        else:
            at = first_in + step - n_out
            near, edge, kind, weight = in_target[at], in_edge[at], in_type[at], in_weight[at]
        unit = scale[depth] * min(max(weight, 0.0), 1.0)
        if unit * best_gain < theta:  # heaviest first: nothing after it in this direction carries enough
            cursor[depth] = n_out if outward else n_out + n_in
            continue
        flow = unit * gains[kind]
        closed = flow < theta or flow <= 0.0
        if masked and not closed:
            closed = (as_of != ALWAYS and not valid_from[edge] <= as_of < valid_until[edge]) or (
                known_at != ALWAYS and not recorded_at[edge] <= known_at < retracted_at[edge]
            )
        for earlier in range(depth + 1):
            closed = closed or walk[earlier] == near
        if closed:
            continue
        place = (near * _SPREADER) & last
        while keys[place] != -1 and keys[place] != near:
            place = (place + 1) & last
        if has_within and (keys[place] == -1 or role[place] == 0):
            continue
        if keys[place] == -1:
            keys[place] = near
            n_keys += 1
        walk[depth + 1], edge_of[depth], out_of[depth], flow_of[depth + 1] = near, edge, outward, flow
        if role[place] & _TARGET:
            for earlier in range(depth + 1):
                nodes[n_found, earlier], edges[n_found, earlier] = walk[earlier], edge_of[earlier]
                outbound[n_found, earlier], flows[n_found, earlier] = out_of[earlier], flow_of[earlier + 1]
            nodes[n_found, depth + 1] = near
            length[n_found, 0] = depth + 1
            n_found += 1
        if depth + 1 < max_hops:
            depth += 1
            status = _ENTERING
    state[_DEPTH], state[_N_KEYS], state[_N_FOUND], state[_WORK], state[_STATUS] = depth, n_keys, n_found, work, status


@cache
def load_kernels() -> None:
    """Compile and load the walks before a turn begins, so that no turn pays for the compiler.

    Each runs once on two nodes and an edge, without and with valid times, in read-only arrays as a snapshot has them:
    numba compiles by type, and caches the machine code beside its module.
    """
    one, always = np.zeros(1, np.int64), int(ALWAYS)
    target, edge, kind, weight = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8), np.ones(1, "f4")
    starts, bound = np.array([0, 1, 1], np.int64), np.array([ALWAYS], np.int64)
    for array in (target, edge, kind, weight, starts, bound):
        array.setflags(write=False)
    rows = Csr(starts, target, edge, kind, weight)
    for validity in (None, Validity(bound, bound, bound, bound)):
        adjacency = Adjacency(rows, rows, validity)
        personalized_pagerank(adjacency, one, np.ones(1), max_work=1)
        spread(
            adjacency, one, one, gains=np.ones(256), within=None, moments=(always, always),
            alpha=0.5, theta=0.5, max_hops=1, max_work=1, slice_work=1,
        )  # fmt: skip
