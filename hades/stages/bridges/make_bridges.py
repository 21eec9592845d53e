"""Bridges made: labels on the edges that join topics, and the best paths between the hottest pairs of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from hades.build_state import ledger
from hades.ports.progress import Progress
from hades.ports.store import GraphStore
from hades.stages.bridges.bridge_graph import read_graph
from hades.stages.bridges.bridge_pairs import choose_pairs
from hades.stages.bridges.bridge_rows import BridgePath, CachedBridge, bridge_rows, read_rows, write_bridges
from hades.stages.bridges.bridge_rules import BridgeReport, BridgeRules
from hades.stages.bridges.bridge_search import BridgeSearchResult, Trust, serve_pairs
from hades.stages.bridges.label_bridges import Labels, label_bridges, labels_of
from hades.stages.contracts.last_result import Written, keep_results
from models.bridges.pairs import heat_of

WRITTEN: Written = {"relations": ("layer_bridge",), "bridge_cache": None}


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
    progress: Progress,
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
        generation=ledger.digest_of(contents, generation),
    )
    with store.bulk(["relations", "bridge_cache", "build_stages"]) as inside, keep_results(inside, WRITTEN):
        label_bridges(inside, graph, labels)
        inside.delete("bridge_cache", keys=stale)
        write_bridges(inside, rows, kept, rules, generation=generation, as_of=as_of)
        finished = digest if served.stopped != "time" else ""  # the next build must not skip what is left
        ledger.record(
            inside, ledger.StageCompletion(ledger.BRIDGES, finished, report.generation, as_of, report.as_dict())
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
