"""The stage `bridges`: label the edges that join topics, and compute paths between hot pairs of topics ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from hades import build_state
from hades.build.bridges.rows import (
    VERSION,
    BridgeGraph,
    BridgeReport,
    BridgeRules,
    CachedBridge,
    bridge_rows,
    bridge_rules_of,
    path_key,
    read_graph,
    read_rows,
    write_bridges,
)
from hades.build.context import BuildContext, deadline_in, generation_of
from hades.build.stage import EDGES, TOPICS, Report, Stage, Table
from hades.errors import HadesError
from hades.ports.services import ProgressReport, silent
from hades.ports.store import GraphStore, RowStore, Term, scan_values
from models.bridges import (
    Blocks,
    Flags,
    Heat,
    Region,
    TopicPath,
    best_paths,
    bridge_labels,
    heat_of,
    hot_pairs,
    pairs_of,
    region_of,
    region_topics,
)

Pair = tuple[int, int]
_SHOWN_EVERY = 64


class EdgesNotWeighed(HadesError):
    """Bridges were asked for before there were weights."""


@dataclass(frozen=True)
class Labels:
    """Which relations are bridges, which of them are strong (between L2 topics), and which rows say otherwise."""

    bridge: Flags
    strong: Flags
    changed: Flags


@dataclass
class BridgeSearchResult:
    """Bridges by key, and what it took. `stopped` says what ended the searching early: `time`, `work` or nothing."""

    found: dict[str, TopicPath] = field(default_factory=dict)
    searched: int = 0
    work: int = 0
    stopped: str = ""


def build_bridges(
    store: GraphStore,
    rules: BridgeRules,
    *,
    inputs: str,
    generation: str,
    as_of: datetime,
    moved: Sequence[str] = (),
    deadline: Callable[[], bool] = lambda: False,
    progress: ProgressReport = silent,
) -> BridgeReport:
    """Bring labels and bridges to what the graph says, in one transaction; skipped when `inputs` are as last time.

    `inputs` is a digest of weights and hierarchy, `generation` that of the weights. Bridges of the topics in `moved`,
    the most moved first, come first. When `deadline` says that time is over, what was found so far is written beside
    older paths that still stand, and the next build searches again.
    """
    if not generation:
        raise EdgesNotWeighed("no relation was weighed, and bridges are made of weights; run `hades run weigh_edges`")
    digest = build_state.digest_of(inputs, asdict(rules), VERSION)
    last = build_state.complete(store, build_state.BRIDGES)
    if last is not None and last.digest == digest and _is_fresh(last, as_of, rules):
        nothing = {"skipped": True, "labels_changed": 0, "pairs_searched": 0, "removed": 0, "work": 0}
        return BridgeReport(**{**last.report, "notes": tuple(last.report["notes"]), **nothing})

    graph = read_graph(store, rules)
    labels = labels_of(graph, rules)
    crossed = labels.bridge
    heat = heat_of(graph.tail_topic[crossed], graph.head_topic[crossed], graph.weight[crossed], len(graph.topics))
    pairs = choose_pairs(store, heat, graph.topics.to_pylist(), rules, moved=moved, as_of=as_of)
    cached = read_rows(store, graph)
    result = search_pairs(graph, heat, pairs, rules, deadline, progress)
    _keep_unsearched(graph, result, pairs, cached)
    notes = _keep_pinned(cached, result.found)
    pinned = {one.key for one in cached if one.pinned}
    rows = bridge_rows(graph, result.found, pinned, rules)
    stale = sorted({one.key for one in cached} - set(result.found))
    lengths = Counter(len(path.edges) for path in result.found.values())
    contents = [{name: row[name] for name in ("_key", "weight", "cost", "pinned")} for row in rows]
    report = BridgeReport(
        labelled=int(labels.bridge.sum()),
        strong=int(labels.strong.sum()),
        labels_changed=int(labels.changed.sum()),
        pairs=len(pairs),
        pairs_searched=result.searched,
        pairs_left=len(pairs) - result.searched,
        bridges=len(result.found),
        by_length={str(length): lengths[length] for length in sorted(lengths)},
        pinned=len(pinned & set(result.found)),
        removed=len(stale),
        work=result.work,
        stopped=result.stopped,
        notes=notes,
        generation=build_state.digest_of(contents, generation),
    )
    with store.bulk(["relations", "bridge_cache", "build_stages"]) as inside:
        _write_labels(inside, graph, labels)
        inside.delete("bridge_cache", keys=stale)
        write_bridges(inside, rows, generation=generation, as_of=as_of)
        finished = digest if result.stopped != "time" else ""  # the next build must not skip what is left
        done = build_state.StageCompletion(build_state.BRIDGES, finished, report.generation, as_of, asdict(report))
        build_state.record(inside, done)
    return report


def _is_fresh(last: build_state.StageCompletion, as_of: datetime, rules: BridgeRules) -> bool:
    return last.as_of is None or as_of < last.as_of + timedelta(days=rules.refresh_days)


def labels_of(graph: BridgeGraph, rules: BridgeRules) -> Labels:
    """The labels the graph should have: a relation that joins two topics and is heavy enough is a bridge."""
    tail, head = graph.tail_topic, graph.head_topic
    bridge = bridge_labels(graph.weight, tail, head, graph.never, rules.threshold)
    above = np.append(graph.super_topic, -1)
    strong = bridge_labels(graph.weight, above[tail], above[head], graph.never, rules.threshold)
    return Labels(bridge, bridge & strong, bridge != graph.labelled)


def _write_labels(store: RowStore, graph: BridgeGraph, labels: Labels) -> None:
    rows = np.flatnonzero(labels.changed)
    if len(rows):
        keys = graph.edges.take(pa.array(rows))
        store.patch("relations", pa.table({"_key": keys, "layer_bridge": pa.array(labels.bridge[rows])}))


def choose_pairs(
    store: RowStore, heat: Heat, topics: Sequence[str], rules: BridgeRules, *, moved: Sequence[str], as_of: datetime
) -> list[Pair]:
    """Pairs of topic numbers, lower first, each once, in the order in which they are to be searched.

    Topics that moved come first; which pairs there are does not depend on what moved.
    """
    number = {key: place for place, key in enumerate(topics)}
    shifted = [number[key] for key in (one.removeprefix("clusters/") for one in moved) if key in number]
    ordered = dict.fromkeys([*shifted, *range(len(topics))])
    of_topics = [pair for topic in ordered for pair in pairs_of(heat, topic, rules.topic_pairs)]
    chosen = dict.fromkeys([*_pairs_of_questions(store, number, rules, as_of), *of_topics])
    chosen |= dict.fromkeys(hot_pairs(heat, rules.near_pairs, rules.far_pairs))
    return sorted(chosen, key=set(shifted).isdisjoint)  # stable: the order above within both halves


def _pairs_of_questions(store: RowStore, number: Mapping[str, int], rules: BridgeRules, as_of: datetime) -> list[Pair]:
    """Pairs that questions of the last days narrowed to at once (`results.hierarchy`), the most frequent first."""
    since = Term("at", ">=", as_of - timedelta(days=rules.seen_days))
    counts: Counter[Pair] = Counter()
    for text in scan_values(store, "query_logs", "results", where=[since]):
        met = orjson.loads(text).get("hierarchy", ()) if text else ()
        topics = {number.get(str(one.get("id", "")).removeprefix("clusters/"), -1) for one in met} - {-1}
        counts.update(combinations(sorted(topics), 2))
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[: rules.seen_pairs]


def search_pairs(
    graph: BridgeGraph,
    heat: Heat,
    pairs: Sequence[Pair],
    rules: BridgeRules,
    deadline: Callable[[], bool],
    progress: ProgressReport,
) -> BridgeSearchResult:
    """The best paths of each pair, in the order given, until the work or the time is spent."""
    result = BridgeSearchResult()
    blocks, numbers = graph.blocks()
    for place, pair in enumerate(pairs):
        if place % _SHOWN_EVERY == 0:
            progress("bridges", place, len(pairs))
        result.stopped = "time" if deadline() else "work" if result.work >= rules.work else ""
        if result.stopped:
            break
        paths, work = best_paths(
            blocks,
            _region(blocks, heat, pair, rules),
            n_paths=rules.paths_per_pair,
            max_hops=rules.max_hops,
            penalty=rules.length_penalty,
            max_work=rules.pair_work,
        )
        for path in paths:
            found = TopicPath(path.nodes, tuple(numbers[list(path.edges)].tolist()))
            result.found[path_key(graph, found)] = found
        result.searched += 1
        result.work += work
    progress("bridges", result.searched, len(pairs))
    return result


def _region(blocks: Blocks, heat: Heat, pair: Pair, rules: BridgeRules) -> Region:
    """The two topics and as many between them as one look at every length affords."""
    region = region_of(blocks, region_topics(heat, *pair, rules.middles))
    entries = np.diagonal(np.cumsum(np.cumsum(region.last - region.first, axis=0), axis=1))  # of the first 1, 2, ...
    affordable = int(np.count_nonzero(entries <= rules.pair_work // (rules.max_hops + 2)))
    return region.within(max(2, affordable))


def _keep_unsearched(
    graph: BridgeGraph, result: BridgeSearchResult, pairs: Sequence[Pair], cached: Sequence[CachedBridge]
) -> None:
    """Pairs that were not reached keep the paths that still stand."""
    topics = graph.topics.to_pylist()
    left = {(topics[first], topics[second]) for first, second in pairs[result.searched :]}
    result.found.update((one.key, one.path) for one in cached if one.path is not None and one.pair in left)


def _keep_pinned(cached: Sequence[CachedBridge], found: dict[str, TopicPath]) -> tuple[str, ...]:
    """Add pinned bridges that still stand; say of the others why they go."""
    notes = []
    for one in cached:
        if one.pinned and one.path is None:
            notes.append(f"bridge_cache/{one.key} was pinned and is dropped: {one.problem}")
        elif one.pinned and one.path is not None:
            found.setdefault(one.key, one.path)
    return tuple(notes)


def bridge(
    context: BuildContext,
    as_of: datetime,
    deadline: Callable[[], bool] = lambda: False,
    rules: BridgeRules | None = None,
) -> dict[str, Any]:
    """Edges between topics marked, and the hot paths between them computed ahead."""
    hierarchy = build_state.complete(context.store, build_state.HIERARCHY)
    weights = generation_of(context, build_state.WEIGHTS) if hierarchy else ""
    report = build_bridges(
        context.store,
        rules or bridge_rules_of(context.path),
        inputs=build_state.digest_of(generation_of(context, build_state.HIERARCHY), weights),
        generation=weights,
        as_of=as_of,
        moved=[one["cluster"] for one in (hierarchy.report["moving"] if hierarchy else ())],
        deadline=deadline,
        progress=context.progress,
    )
    return asdict(report)


def _list_figures(report: Report) -> Table:
    names = ("labelled", "pairs", "pairs_searched", "bridges", "work")
    return [{name: report[name] for name in names}], report["stopped"] or "paths between topics, computed ahead"


STAGE = Stage(
    "bridges",
    "build bridges",
    lambda context, ingest, night: bridge(context, night.as_of, deadline_in(night.seconds_left())),
    lambda report: f"{report['bridges']:,} bridges, {report['pairs_searched']:,} pairs searched",
    _list_figures,
    reads=(*TOPICS, *EDGES),
    writes=("bridge_cache",),
    needs=("topics", "weights"),
    contracts=("bridges",),
    made_of={
        "bridge_cache.from_cluster": ("entities.cluster_id",),
        "bridge_cache.to_cluster": ("entities.cluster_id",),
        "bridge_cache.edges": ("relations._from", "relations._to", "relations.weight"),
        "bridge_cache.weight": ("relations.weight",),
    },
    ledger=build_state.BRIDGES,
)
