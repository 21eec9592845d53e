"""Label edges, keep best paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from hades import build_state
from hades.build.bridges.rows import (
    VERSION,
    BridgeGraph,
    BridgePath,
    BridgeReport,
    BridgeRules,
    CachedBridge,
    bridge_rows,
    read_graph,
    read_rows,
    write_bridges,
)
from hades.build.bridges.search import BridgeSearchResult, Trust, choose_pairs, serve_pairs
from hades.errors import HadesError
from hades.ports.services import ProgressReport, silent
from hades.ports.store import GraphStore, RowStore
from models.bridges import Flags, bridge_labels, heat_of

# The bridges stage: label what joins topics, keep the best paths between the hottest pairs of them. A build after a
# change looks again at the pairs of the topics that moved most, at those that have no bridges and those of whose
# bridges an edge changed. Every other bridge is checked node by node and weight by weight and kept: nothing is ever
# stale, though a search might now find a better path. No bridge is kept so for longer than its time to live.


__all__ = ["BridgeReport", "BridgeRules", "EdgesNotWeighed", "build_bridges"]


class EdgesNotWeighed(HadesError):
    """Bridges were asked for before there were weights."""


def build_bridges(
    store: GraphStore,
    rules: BridgeRules,
    *,
    inputs: str,
    generation: str,
    as_of: datetime,
    moved: Sequence[str] = (),
    anew: bool = False,
    deadline: Callable[[], bool] | None = None,
    progress: ProgressReport = silent,
) -> BridgeReport:
    """Bring labels and bridges to what the graph says, in one transaction; skipped when `inputs` are as last time.

    `inputs` is a digest of weights and hierarchy, `generation` that of the weights. Bridges of the topics in `moved`,
    the most moved first, come first. `anew` looks at every pair again, as a build from nothing would. When `deadline`
    says that time is over, what was found so far is written, and the next build goes on from there.
    """
    if not generation:
        raise EdgesNotWeighed("no relation was weighed, and bridges are made of weights; run `hades run weigh_edges`")
    digest = build_state.digest_of(inputs, asdict(rules), VERSION)
    last = build_state.complete(store, build_state.BRIDGES)
    if last is not None and last.digest == digest and (last.as_of is None or as_of < last.as_of + rules.ttl):
        return _skip(last)

    return make_bridges(
        store,
        rules,
        digest=digest,
        generation=generation,
        as_of=as_of,
        moved=moved,
        anew=anew,
        deadline=deadline or _never,
        progress=progress,
    )


def _skip(last: build_state.StageCompletion) -> BridgeReport:
    """What the last build reported, marked as skipped."""
    return BridgeReport(**{**last.report, "notes": tuple(last.report["notes"]), "skipped": True})


def _never() -> bool:
    return False


# Labels: `layer_bridge` says of a relation that it joins two topics and is heavy enough to be crossed.


@dataclass(frozen=True)
class Labels:
    """Which relations are bridges, which of them are strong (between L2 topics), and which rows say otherwise."""

    bridge: Flags
    strong: Flags
    changed: Flags


def labels_of(graph: BridgeGraph, rules: BridgeRules) -> Labels:
    """The labels the graph should have."""
    tail, head = graph.tail_topic, graph.head_topic
    bridge = bridge_labels(graph.weight, tail, head, graph.never, rules.threshold)
    above = np.append(graph.super_topic, -1)
    strong = bridge_labels(graph.weight, above[tail], above[head], graph.never, rules.threshold)
    return Labels(bridge, bridge & strong, bridge != graph.labelled)


def label_bridges(store: RowStore, graph: BridgeGraph, labels: Labels) -> int:
    """Write the labels that changed; call it inside the stage's transaction, which names `relations`."""
    rows = np.flatnonzero(labels.changed)
    if len(rows):
        keys = graph.edges.take(pa.array(rows))
        store.patch("relations", pa.table({"_key": keys, "layer_bridge": pa.array(labels.bridge[rows])}))
    return len(rows)


# Bridges made: labels on the edges that join topics, and the best paths between the hottest pairs of topics.


def make_bridges(
    store: GraphStore,
    rules: BridgeRules,
    *,
    digest: str,
    generation: str,
    as_of: datetime,
    moved: Sequence[str],
    anew: bool,
    deadline: Callable[[], bool],
    progress: ProgressReport,
) -> BridgeReport:
    """Search the pairs that must be searched, keep the other bridges that still stand, and write both."""
    graph = read_graph(store, rules)
    labels = labels_of(graph, rules)
    crossed = labels.bridge
    heat = heat_of(graph.tail_topic[crossed], graph.head_topic[crossed], graph.weight[crossed], len(graph.topics))
    pairs = choose_pairs(store, heat, graph.topics.to_pylist(), rules, moved=moved, as_of=as_of)
    kept = read_rows(store, graph)
    restless = {one.removeprefix("clusters/") for one in moved[: rules.refreshed_topics]}
    trust = Trust(rules, as_of, None if anew else restless)
    served = serve_pairs(graph, heat, pairs, kept, trust, deadline, progress)
    notes = _keep_pinned(kept, served.found)
    pinned = {one.key for one in kept if one.pinned}
    rows = bridge_rows(graph, served.found, pinned, rules)
    stale = sorted({one.key for one in kept} - set(served.found))
    contents = [{name: row[name] for name in ("_key", "weight", "cost", "pinned")} for row in rows]
    report = replace(
        _report(labels, served, len(pairs)),
        pinned=len(pinned & set(served.found)),
        removed=len(stale),
        notes=notes,
        generation=build_state.digest_of(contents, generation),
    )
    with store.bulk(["relations", "bridge_cache", "build_stages"]) as inside:
        label_bridges(inside, graph, labels)
        inside.delete("bridge_cache", keys=stale)
        write_bridges(inside, rows, kept, rules, generation=generation, as_of=as_of)
        finished = digest if served.stopped != "time" else ""  # the next build must not skip what is left
        build_state.record(
            inside,
            build_state.StageCompletion(build_state.BRIDGES, finished, report.generation, as_of, report.as_dict()),
        )
    return report


def _keep_pinned(kept: Sequence[CachedBridge], found: dict[str, BridgePath]) -> tuple[str, ...]:
    """Add pinned bridges that still stand; say of the others why they go."""
    notes = []
    for one in kept:
        if one.pinned and one.path is None:
            notes.append(f"bridge_cache/{one.key} was pinned and is dropped: {one.problem}")
        elif one.pinned and one.path is not None:
            found.setdefault(
                one.key, BridgePath(one.path, one.region, one.of)
            )  # no rules: the pair's search left it out
    return tuple(notes)


def _report(labels: Labels, served: BridgeSearchResult, pairs: int) -> BridgeReport:
    lengths = Counter(len(one.path.edges) for one in served.found.values())
    return BridgeReport(
        labelled=int(labels.bridge.sum()),
        strong=int(labels.strong.sum()),
        labels_changed=int(labels.changed.sum()),
        pairs=pairs,
        pairs_searched=served.searched,
        pairs_reused=served.reused,
        pairs_left=pairs - served.searched - served.reused,
        bridges=len(served.found),
        by_length={str(length): lengths[length] for length in sorted(lengths)},
        work=served.work,
        stopped=served.stopped,
    )
