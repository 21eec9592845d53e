"""Resource flow between seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from hades.ports.graph import Flags, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import CandidateGraph, FoundPath, Question, Seed, StepResult
from hades.retrieval.core.words import ANY, gains, moments
from hades.retrieval.walks.rows import SLICE, Floats, Rows
from schemas.plan import Reason

DECAY_RATE = 0.85
LEAST_FLOW = 0.005  # a walk that carries less ends
PRUNING_THRESHOLD = (
    0.01  # a path of less reliability is dropped; docs/paths.md says how it was chosen
)
Span = tuple[int, int]  # where a text spells a name
JOINED = "joins what the question names"
NO_PATH, NO_EDGES = 0.1, 0.3  # what an incomplete path scores: nothing is known; only its length is


def calculate_path_score(
    path: Mapping[str, Any] | None,
    source_node: Mapping[str, Any] | str | None,
    decay_rate: float = DECAY_RATE,
    *,
    scoring: Literal["flow", "v0"] = "flow",
) -> float:
    """The mean flow on the edges of a path, in [0, 1], when its source gives out one unit (A8 to
    A15).

    An edge passes on what its tail received times its share times the decay, once a hop. Its share
    is its `share` if it states one, else its weight over the `deg_out` of its tail where that
    document has it; a missing weight counts 1. A path without vertices scores 0.1, one without
    edges 0.3 / (vertices - 1): values of an incomplete path. `scoring` "v0" is the formula of
    specification 000: no split, and edge i decays by decay ** i once more (X-02).
    """
    vertices = list((path or {}).get("vertices") or ())
    if path is None or not vertices:
        return NO_PATH

    edges = list(path.get("edges") or ())
    if not edges:
        return NO_EDGES / max(1, len(vertices) - 1)

    degrees = {}
    for vertex in vertices:
        if isinstance(vertex, Mapping):
            degrees[_id(vertex)] = int(vertex.get("deg_out") or 1)

    steps = list(pairwise(map(_id, vertices)))
    resource = {_id(source_node if source_node is not None else vertices[0]): 1.0}

    total = 0.0
    for place, edge in enumerate(edges):
        tail, head = _ends(edge, steps[place] if place < len(steps) else None)
        if tail not in resource:
            continue

        if scoring == "v0":
            flow = resource[tail] * _weight(edge) * decay_rate**place
        else:
            flow = resource[tail] * _share(edge, degrees.get(tail, 1)) * decay_rate

        resource[head] = flow
        total += flow

    return total / len(edges)


def prune_paths(
    candidate_paths: Iterable[Mapping[str, Any]],
    pruning_threshold: float = PRUNING_THRESHOLD,
    *,
    decay_rate: float = DECAY_RATE,
) -> list[dict[str, Any]]:
    """The paths whose reliability reaches the threshold, most reliable first, each a copy that says
    so (A16, A17).
    """
    reliable = []
    for path in candidate_paths:
        vertices = path.get("vertices") or [None]
        reliability = calculate_path_score(path, vertices[0], decay_rate)
        if reliability >= pruning_threshold:
            reliable.append({**path, "reliability": reliability})

    return sorted(reliable, key=lambda path: -path["reliability"])


def _id(node: Mapping[str, Any] | str) -> str:
    if isinstance(node, str):
        return node
    return str(node.get("_id", node.get("id", "")))


def _ends(edge: Mapping[str, Any], step: tuple[str, str] | None) -> tuple[str, str]:
    """The end flow comes from and the end it goes to: those of the path's step, whichever way the
    edge points.
    """
    ends = str(edge.get("_from", edge.get("from", ""))), str(edge.get("_to", edge.get("to", "")))
    if step is not None and set(step) == set(ends):
        return step

    return ends


def _weight(edge: Mapping[str, Any]) -> float:
    weight = edge.get("weight")
    return 1.0 if weight is None else float(weight)


def _share(edge: Mapping[str, Any], deg_out: int) -> float:
    stated = edge.get("share")
    share = _weight(edge) if stated is None else float(stated)
    return min(max(share, 0.0), 1.0) / (max(1, deg_out) if stated is None else 1)


# Resource flow from seeds, pruned where it runs thin, and the paths it takes between them (PathRAG,
# arXiv 2502.14902). Each seed gives out its score: one unit where the question names it. A node
# passes on alpha times what it received, split by weight over its edges; a walk that carries less
# than theta of a unit ends. The reliability of a path is the mean flow on its edges. The paper
# prunes by what arrives at a node by all walks together; pruning here looks at each walk by itself,
# which is stricter.


@dataclass(frozen=True)
class FlowRules:
    """How flow spreads. `boosts` are factors by relation type, all 1 when absent.

    `fanout` bounds the paths that are chosen: the neighbours that one walk is continued to. Flow is
    split over all.
    """

    hops: int = 3
    theta: float = LEAST_FLOW
    max_paths: int = 6
    fanout: int | None = None
    boosts: Mapping[str, float] | None = None


def flow_paths(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: FlowRules = FlowRules(),
    *,
    candidate_graph: CandidateGraph | None = None,
) -> StepResult:
    """Spread flow from the seeds, strongest first, and return the most reliable paths that join two
    of them.

    `candidates` of the result is how many there were before `max_paths` cut them.

    Work is bounded by what is left of the turn's, and by about hops / theta a seed whatever the
    graph.
    """
    reached_paths = spread_flow(
        view,
        question,
        seeds,
        rules,
        candidate_graph=candidate_graph,
    )
    paths = within_fanout(view, reached_paths, rules.fanout)

    if len(paths) > rules.max_paths:
        view.turn.trimmed(Reason.CAP_EXCEEDED)

    return StepResult(
        tuple(paths[: rules.max_paths]),
        candidates=len(reached_paths),
    )


def spread_flow(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: FlowRules,
    targets: Numbers | None = None,
    *,
    candidate_graph: CandidateGraph | None = None,
) -> list[FoundPath]:
    """Spread flow from the seeds, each giving out its score, and return the paths that end in a
    target; best first.

    Without targets paths end in another seed, and both ends say what is given out.
    """
    scores = {seed.node: seed.score for seed in seeds}
    sources = np.array(sorted(scores, key=lambda node: (-scores[node], node)), np.int64)
    ends = np.unique(sources if targets is None else targets)

    if candidate_graph is None:
        allowed = None
    else:
        allowed = np.union1d(candidate_graph.nodes, ends)

    rows = Rows(
        view.adjacency(),
        gains(view.type_names, rules.boosts),
        moments(question.mask),
        shares=True,
    )
    walks, capped = spread(
        rows,
        sources,
        ends,
        allowed=allowed,
        theta=rules.theta,
        hops=rules.hops,
        max_work=max(0, view.turn.work_left),
        stop=view.turn.expired,
    )
    view.turn.count_work(rows.work, capped=capped)

    paths: list[FoundPath] = []
    for walks_of_length in walks:
        paths += _paths_of(
            walks_of_length,
            scores,
            joins_seeds=targets is None,
        )

    return distinct_paths(
        sorted(
            paths,
            key=lambda path: (-round(path.score, 12), len(path.edges), path.edges),
        )
    )


def join_named(
    view: MeteredView,
    question: Question,
    named_seeds: Sequence[Seed],
    rules: FlowRules,
    places: Mapping[int, Span],
) -> list[FoundPath]:
    """The best path between each two of the things that a question names: the shortest, then the
    most reliable.

    `places` say where the question spells each. A direct edge is found however thin the flow along
    it. It is looked for from all but the one with most edges: one end of each pair is enough, and a
    hub is not read whole.
    """
    if len({places[seed.node] for seed in named_seeds}) < 2 or view.turn.expired():
        return []

    nodes = np.array([seed.node for seed in named_seeds], np.int64)
    hub = int(nodes[np.argmax(view.degree(nodes, direction=ANY))])

    sources = []
    for seed in named_seeds:
        if seed.node != hub:
            sources.append(seed)

    at_once = replace(
        rules,
        hops=1,
        theta=0.0,
    )
    direct = spread_flow(
        view,
        question,
        sources,
        at_once,
        np.unique(nodes),
    )
    candidate_paths = (*spread_flow(view, question, named_seeds, rules), *direct)

    best: dict[tuple[Span, Span], FoundPath] = {}
    for path in sorted(
        candidate_paths,
        key=lambda path: (len(path.edges), -path.score, path.edges),
    ):
        ends = places[path.nodes[0]], places[path.nodes[-1]]
        pair = min(ends), max(ends)
        if _are_apart(question.text, *pair):
            best.setdefault(
                pair,
                replace(
                    path,
                    joins_named=True,
                    why=f"{JOINED}; {path.why}",
                ),
            )

    return list(best.values())


def _are_apart(text: str, first: Span, second: Span) -> bool:
    """Whether something stands between two names; else both are parts of one name, or one is."""
    return bool(text[first[1] : second[0]].strip())


class Walks(NamedTuple):
    """Loopless walks of one length, a row each: nodes, and the edges between them with what flows
    along each.
    """

    nodes: Numbers
    edges: Numbers
    outbound: Flags
    flows: Floats


def spread(
    rows: Rows,
    sources: Numbers,
    targets: Numbers,
    *,
    allowed: Numbers | None,
    theta: float,
    hops: int,
    max_work: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[list[Walks], bool]:
    """Let one unit of flow out of each source: the walks that end in a target, by length, and
    whether work ended it.

    The flows of all walks of one length from a source add up to at most decay ** length, so at most
    1 / theta of them carry theta or more: the search is bounded by the threshold and not by the
    graph. `targets` and `allowed` are sorted.
    """
    none = np.empty((len(sources), 0))
    walks = Walks(
        sources[:, None],
        none.astype(np.int64),
        none.astype(np.bool_),
        none,
    )
    carried = np.ones(len(sources))

    arrivals = []
    for _ in range(hops):
        ends = walks.nodes[:, -1]
        reach = carried * DECAY_RATE * rows.heaviest(ends) * rows.best_factor
        # Beyond this sum not even the heaviest edge carries theta.
        largest_sum = reach / max(theta, np.finfo(np.float64).tiny)
        nodes, place_of_end = np.unique(ends, return_inverse=True)
        largest_sums = np.zeros(len(nodes))
        np.maximum.at(
            largest_sums,
            place_of_end,
            largest_sum,
        )
        rows.sum_until(nodes, largest_sums, max_work)
        total = rows.total[ends]
        known = rows.are_read(ends)
        may_carry = total <= largest_sum
        capped = bool((~known & may_carry).any())
        open_walks = np.flatnonzero(known & (total > 0.0) & may_carry)
        entry_counts = np.cumsum(rows.count(ends[open_walks]))
        fits = open_walks[rows.work + entry_counts <= max_work]
        capped |= len(fits) < len(open_walks)
        slices = np.flatnonzero(np.diff(entry_counts[: len(fits)] // SLICE)) + 1

        longer = []
        for part in np.split(fits, slices):
            passed_on = carried[part] * DECAY_RATE / total[part]
            longer.append(
                _lengthen(
                    rows,
                    walks,
                    part,
                    passed_on,
                    theta=theta,
                    allowed=allowed,
                )
            )
            if stop():
                break

        walks = Walks(*map(np.concatenate, zip(*longer, strict=True)))
        carried = walks.flows[:, -1]
        arrived = np.isin(walks.nodes[:, -1], targets)
        ended: list[Any] = [column[arrived] for column in walks]
        arrivals.append(Walks(*ended))

        if capped or not len(carried) or stop():
            return arrivals, capped

    return arrivals, False


def _lengthen(
    rows: Rows,
    walks: Walks,
    part: Numbers,
    passed_on: Floats,
    *,
    theta: float,
    allowed: Numbers | None,
) -> Walks:
    """The walks at the places `part`, each with one more edge: those that carry theta or more to an
    allowed node that the walk has not been to.
    """
    entries = rows.read(walks.nodes[part, -1])
    flow = entries.weight * passed_on[entries.place]
    carrying = np.flatnonzero((flow >= theta) & (flow > 0.0))
    place = part[entries.place[carrying]]
    node = entries.target[carrying]
    goes_on = (walks.nodes[place] != node[:, None]).all(axis=1)

    if allowed is not None:
        goes_on &= np.isin(node, allowed)

    place = place[goes_on]
    carrying = carrying[goes_on]
    step = (node[goes_on], *rows.edges(entries, carrying), flow[carrying])
    columns = zip(walks, step, strict=True)
    return Walks(*(np.column_stack([column[place], last]) for column, last in columns))


class Continuations:
    """The neighbours that walks were continued to, at most `fanout` of each walk; None is no
    limit.
    """

    def __init__(self, fanout: int | None) -> None:
        self._fanout = fanout
        self._taken: dict[tuple[int, ...], set[int]] = defaultdict(set)

    def admit(self, path: FoundPath) -> bool:
        """Whether there is room for a path; from now on it takes that room."""
        steps = []
        for place in range(1, len(path.nodes)):
            steps.append((path.nodes[:place], path.nodes[place]))

        if self._fanout is not None and any(
            len(self._taken[walk]) >= self._fanout and node not in self._taken[walk]
            for walk, node in steps
        ):
            return False

        for walk, node in steps:
            self._taken[walk].add(node)

        return True


def within_fanout(
    view: MeteredView,
    paths: Iterable[FoundPath],
    fanout: int | None,
) -> list[FoundPath]:
    """The paths, best first, that continue no walk to more than `fanout` neighbours."""
    room = Continuations(fanout)
    offered = list(paths)

    admitted = []
    for path in offered:
        if room.admit(path):
            admitted.append(path)

    if len(admitted) < len(offered):
        view.turn.trimmed(Reason.CAP_EXCEEDED)

    return admitted


def distinct_paths(ordered: Iterable[FoundPath]) -> list[FoundPath]:
    """Each path once, whichever end it began at; of two with the same edges the first stays."""
    first: dict[frozenset[int], FoundPath] = {}
    for path in ordered:
        first.setdefault(frozenset(path.edges), path)

    return list(first.values())


def _paths_of(
    walks: Walks,
    scores: Mapping[int, float],
    *,
    joins_seeds: bool,
) -> list[FoundPath]:
    paths = []
    for nodes, edges, outbound, flows in zip(*(column.tolist() for column in walks), strict=True):
        source_flow = scores[nodes[0]]
        if joins_seeds:
            source_flow = (source_flow + scores[nodes[-1]]) / 2

        reliability = source_flow * sum(flows) / len(flows)
        shares = []
        for previous, flow in pairwise((1.0, *flows)):
            shares.append(flow / (previous * DECAY_RATE))

        shares[0] *= source_flow
        why = "flow " + " > ".join([f"{source_flow * flow:.4f}" for flow in flows])
        paths.append(
            FoundPath(
                tuple(nodes),
                tuple(edges),
                tuple(outbound),
                score=reliability,
                reliability=reliability,
                shares=tuple(shares),
                origin="flow",
                why=why,
            )
        )

    return paths
