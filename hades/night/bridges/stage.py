"""The stage `bridges`: label the edges that join topics, and compute paths between hot pairs of
topics ahead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.night.columns import at, column, flags, ids, numbers, place_ends, read
from hades.night.context import BuildContext, completed, deadline_in, read_columns
from hades.night.stage import EDGES, TOPICS, NightStage, Report, Rows
from hades.ports.services import ProgressReport
from hades.ports.store import RowStore, Term, scan_values
from hades.settings.tree import DEFAULT_BOOSTS, PathSettings
from hades.snapshot.files import integers, places_of
from models import bridges
from models.arrays import Flags, Floats, Longs
from models.bridges import Blocks, Heat, Region, TopicPath
from schemas.edges import NEVER_BRIDGES, ClusterEdgeType
from schemas.ids import content_key
from schemas.record import JsonObject, arrow_schema, canonical_json
from schemas.topics import Bridge

VERSION = 5  # raise it with any change of what is found: the next build searches again
NOWHERE = -1
_RELATION = (
    "_from",
    "_to",
    "type",
    "weight",
    "layer_bridge",
    "valid_until",
    "retracted_at",
    "provenance",
)


@dataclass(frozen=True)
class BridgeRules:
    """Everything that decides which bridges there are; a change of any rebuilds them.

    Every topic has bridges to its `topic_pairs` strongest neighbours. `pair_work` and `work` are
    budgets in edges looked at, for one pair of topics and for all.
    """

    threshold: float = 0.5
    max_hops: int = 5
    paths_per_pair: int = 3
    near_pairs: int = 512
    far_pairs: int = 256
    topic_pairs: int = 8
    seen_pairs: int = 256
    seen_days: int = 30
    middles: int = 8
    length_penalty: float = 0.3
    eps: float = 1e-6
    boosts: dict[str, float] = field(
        default_factory=lambda: {str(kind): boost for kind, boost in DEFAULT_BOOSTS.items()}
    )
    pair_work: int = 200_000
    work: int = 150_000_000
    # After which pairs that questions met are looked for again, though nothing else changed.
    refresh_days: int = 30


@dataclass(frozen=True)
class BridgeGraph:
    """Entities, L1 topics and relations, numbered in key order. -1 is no topic, NaN no weight.

    `tail_topic` and `head_topic` are the topics of an edge's ends, `super_topic` the L2 topic of
    each L1 topic.
    """

    entities: pa.Array
    topics: pa.Array
    topic: Longs
    super_topic: Longs
    edges: pa.Array
    types: pa.Array
    provenance: pa.Array
    tail: Longs
    head: Longs
    weight: Floats
    log: Floats
    labelled: Flags
    is_open: Flags

    @property
    def tail_topic(self) -> Longs:
        """L1 topic of each edge's tail."""
        return at(self.topic, self.tail, NOWHERE)

    @property
    def head_topic(self) -> Longs:
        """L1 topic of each edge's head."""
        return at(self.topic, self.head, NOWHERE)

    @property
    def never(self) -> Flags:
        """Which edges are of a type that is never a bridge."""
        types = pa.array(sorted(map(str, NEVER_BRIDGES)))
        return np.asarray(pc.is_in(self.types, value_set=types), np.bool_)

    def walkable(self) -> Flags:
        """Edges that a bridge may use: weighed, between topics, without an end in time.

        A fact that ended or was withdrawn is left to searches that stand at a moment. An edge that
        is never a bridge may lead about within a topic, not out of it.
        """
        tail = self.tail_topic
        head = self.head_topic
        placed = (tail >= 0) & (head >= 0) & (self.tail != self.head)
        leads_out = self.never & (tail != head)
        walkable: Flags = placed & self.is_open & ~np.isnan(self.weight) & ~leads_out
        return walkable

    def blocks(self) -> tuple[Blocks, Longs]:
        """The walkable edges by topics, and the number of each here."""
        numbers = np.flatnonzero(self.walkable())
        tail = self.tail[numbers]
        head = self.head[numbers]
        log = self.log[numbers]
        return bridges.block_edges(
            tail,
            head,
            log,
            self.topic,
            len(self.topics),
        ), numbers


def read_graph(store: RowStore, rules: BridgeRules) -> BridgeGraph:
    """Read what bridges are made of: one scan of entities, topics and relations each."""
    topics = column(
        read_columns(
            store,
            "clusters",
            ["_key"],
            [Term("level", "==", 1)],
        ),
        "_key",
    )
    entities = read(store, "entities", "cluster_id")
    nodes = ids("entities", column(entities, "_key"))
    edges = read(store, "relations", *_RELATION)
    weight = numbers(column(edges, "weight"))
    boosts = np.array(list(rules.boosts.values()))
    boost = boosts[places_of(column(edges, "type"), pa.array(list(rules.boosts)))]
    tail, head = place_ends(edges, nodes)
    ended = pc.is_valid(pc.coalesce(column(edges, "valid_until"), column(edges, "retracted_at")))
    return BridgeGraph(
        entities=nodes,
        topics=topics,
        topic=places_of(column(entities, "cluster_id"), topics),
        super_topic=_super_topics(store, topics),
        edges=column(edges, "_key"),
        types=column(edges, "type"),
        provenance=column(edges, "provenance"),
        tail=tail,
        head=head,
        weight=weight,
        log=bridges.edge_logs(weight, boost, rules.eps),
        labelled=flags(column(edges, "layer_bridge")),
        is_open=~flags(ended),
    )


def _super_topics(store: RowStore, topics: pa.Array) -> Longs:
    """The L2 topic of each L1 topic, by a number of its own; -1 where it has none."""
    subtopics = [Term("type", "==", str(ClusterEdgeType.SUBTOPIC_OF))]
    joined = read_columns(
        store,
        "cluster_edges",
        ["_key", "_from", "_to"],
        subtopics,
    )
    parents = integers(pc.dictionary_encode(column(joined, "_to")).indices, 0)
    return at(
        parents,
        places_of(ids("clusters", topics), column(joined, "_from")),
        NOWHERE,
    )


@dataclass(frozen=True)
class CachedBridge:
    """A row of `bridge_cache`: the path it stands for now, or why there is none."""

    key: str
    pair: tuple[str, str]
    pinned: bool
    path: TopicPath | None
    problem: str = ""


def read_rows(store: RowStore, graph: BridgeGraph) -> list[CachedBridge]:
    """Every cached bridge against the graph: its edges stand and join its nodes, its ends are in
    the topics it says.
    """
    columns = ["_key", "from_cluster", "to_cluster", "nodes", "edges", "pinned"]
    rows = read_columns(store, "bridge_cache", columns).to_pylist()
    nodes = _numbers(chain.from_iterable(row["nodes"] for row in rows), graph.entities)
    edge_ids = chain.from_iterable(row["edges"] for row in rows)
    edges = _numbers(edge_ids, ids("relations", graph.edges))
    walkable = graph.walkable()
    topics = [*graph.topics.to_pylist(), None]  # an entity of no topic has -1

    cached = []
    for row in rows:
        walk = [nodes[node] for node in row["nodes"]]
        steps = [edges[edge] for edge in row["edges"]]
        pair = (row["from_cluster"], row["to_cluster"])

        gone = []
        for name in row["edges"]:
            if edges[name] < 0 or not walkable[edges[name]]:
                gone.append(name)

        problem = ""
        if gone:
            problem = f"{gone[0]} no longer stands"
        elif min(walk, default=NOWHERE) < 0 or not _joins(graph, walk, steps):
            problem = "its edges do not join its nodes"
        elif (topics[graph.topic[walk[0]]], topics[graph.topic[walk[-1]]]) != pair:
            problem = "an end of it moved to another topic"

        if problem:
            path = None
        else:
            path = TopicPath(tuple(walk), tuple(steps))

        cached.append(
            CachedBridge(
                row["_key"],
                pair,
                row["pinned"],
                path,
                problem,
            )
        )

    return cached


def path_key(graph: BridgeGraph, path: TopicPath) -> str:
    """The key of a bridge: what it starts from and which edges it follows."""
    edges = graph.edges.take(pa.array(path.edges)).to_pylist()
    return content_key(
        "bridge",
        graph.entities[path.nodes[0]].as_py(),
        *edges,
    )


def bridge_rows(
    graph: BridgeGraph,
    paths: Mapping[str, TopicPath],
    pinned: Collection[str],
    rules: BridgeRules,
) -> Rows:
    """Each bridge by key, with where each edge was read."""
    steps = _steps(
        graph,
        sorted(set(chain.from_iterable(path.edges for path in paths.values()))),
    )
    topics = graph.topics.to_pylist()

    rows = []
    for key, path in sorted(paths.items()):
        logs = graph.log[list(path.edges)].tolist()
        path_steps = [steps[edge] for edge in path.edges]
        first, *_, last = graph.topic[list(path.nodes)].tolist()
        row = {
            "_key": key,
            "from_cluster": topics[first],
            "to_cluster": topics[last],
            "nodes": graph.entities.take(pa.array(path.nodes)).to_pylist(),
            "edges": [step["id"] for step in path_steps],
            "weight": bridges.path_weight(logs, rules.length_penalty),
            "cost": bridges.path_cost(logs),
            "provenance": canonical_json({"edges": path_steps}),
            "pinned": key in pinned,
        }
        rows.append(row)

    return rows


def _contents(row: Mapping[str, Any]) -> JsonObject:
    """The part of a row that makes a generation another one."""
    contents = {}
    for name in ("_key", "weight", "cost", "pinned"):
        contents[name] = row[name]

    return contents


def _steps(graph: BridgeGraph, edges: Sequence[int]) -> dict[int, JsonObject]:
    """What each edge says and where it was read."""
    steps = {}
    for edge in edges:
        source = graph.provenance[edge].as_py() or {"doc": "", "span": None}
        steps[edge] = {
            "id": f"relations/{graph.edges[edge]}",
            "type": graph.types[edge].as_py(),
            "weight": float(graph.weight[edge]),
            **source,
        }

    return steps


def _joins(
    graph: BridgeGraph,
    walk: Sequence[int],
    edges: Sequence[int],
) -> bool:
    """Whether a walk is a loopless path along these edges."""
    if len(walk) != len(edges) + 1 or len(set(walk)) != len(walk) or not edges:
        return False

    for edge, pair in zip(edges, pairwise(walk), strict=True):
        if {int(graph.tail[edge]), int(graph.head[edge])} != set(pair):
            return False

    return True


def _numbers(names: Iterable[str], among: pa.Array) -> dict[str, int]:
    distinct = list(dict.fromkeys(names))
    places = places_of(pa.array(distinct, pa.string()), among)
    return dict(zip(distinct, places.tolist(), strict=True))


Pair = tuple[int, int]
_SHOWN_EVERY = 64


@dataclass
class BridgeSearchResult:
    """Bridges by key, and what it took. `stopped` says what ended the searching early: `time`,
    `work` or nothing.
    """

    paths: dict[str, TopicPath] = field(default_factory=dict)
    searched: int = 0
    work: int = 0
    stopped: str = ""


def bridge(
    context: BuildContext,
    as_of: datetime,
    deadline: Callable[[], bool] = lambda: False,
    rules: BridgeRules | None = None,
) -> JsonObject:
    """Mark the edges between topics and find the hot paths along them, in one transaction.

    Skipped when weights and topics are as last time. Bridges of the topics that moved most come
    first. When `deadline` says that time is over, what was found so far is written beside older
    paths that still stand, and the next build searches again. In the report `pairs_left` were not
    searched for want of work or time; see `stopped`.
    """
    store = context.store
    rules = rules or _rules_of(context.path)
    hierarchy = completed(context, stage_ledger.HIERARCHY)
    generation = completed(context, stage_ledger.WEIGHTS).generation
    inputs = stage_ledger.digest_of(hierarchy.generation, generation)
    digest = stage_ledger.digest_of(
        inputs,
        asdict(rules),
        VERSION,
    )
    last = stage_ledger.last_completion(store, stage_ledger.BRIDGES)
    refresh = timedelta(days=rules.refresh_days)
    is_fresh = last is not None and (last.as_of is None or as_of < last.as_of + refresh)

    if last is not None and last.digest == digest and is_fresh:
        idle = dict.fromkeys(("labels_changed", "pairs_searched", "removed", "work"), 0)
        return {
            **last.report,
            "skipped": True,
            **idle,
        }

    graph = read_graph(store, rules)
    labelled, strong_count = _label(graph, rules)
    relabelled = np.flatnonzero(labelled != graph.labelled)
    heat = bridges.heat_of(
        graph.tail_topic[labelled],
        graph.head_topic[labelled],
        graph.weight[labelled],
        len(graph.topics),
    )
    topics = graph.topics.to_pylist()
    moving = hierarchy.report["moving"]
    pairs = choose_pairs(
        store,
        heat,
        topics,
        rules,
        moving=moving,
        as_of=as_of,
    )
    cached = read_rows(store, graph)
    result = search_pairs(
        graph,
        heat,
        pairs,
        rules,
        deadline=deadline,
        progress=context.progress,
    )
    _keep_cached(graph, result, pairs, cached)
    pinned = {former.key: former for former in cached if former.pinned}
    rows = bridge_rows(graph, result.paths, pinned, rules)
    stale = sorted({former.key for former in cached}.difference(result.paths))
    lengths = Counter(len(path.edges) for path in result.paths.values())
    contents = list(map(_contents, rows))

    notes = []
    for key, former in pinned.items():
        if former.path is None:
            notes.append(f"bridge_cache/{key} was pinned and is dropped: {former.problem}")

    report: JsonObject = {
        "skipped": False,
        "labelled": int(labelled.sum()),
        "strong": strong_count,
        "labels_changed": len(relabelled),
        "pairs": len(pairs),
        "pairs_searched": result.searched,
        "pairs_left": len(pairs) - result.searched,
        "bridges": len(result.paths),
        "by_length": {str(length): lengths[length] for length in sorted(lengths)},
        "pinned": len(pinned.keys() & result.paths),
        "removed": len(stale),
        "work": result.work,
        "stopped": result.stopped,
        "notes": notes,
        "generation": stage_ledger.digest_of(contents, generation),
    }
    stamped = []
    for row in rows:
        stamped.append(
            {
                **row,
                "generation": generation,
                "created": as_of,
            }
        )

    # the next build must not skip what is left
    finished = "" if result.stopped == "time" else digest
    with store.bulk(["relations", "bridge_cache", "build_stages"]) as inside:
        if len(relabelled):
            inside.patch("relations", _label_rows(graph, relabelled, labelled))

        inside.delete("bridge_cache", keys=stale)
        inside.upsert(
            "bridge_cache",
            pa.Table.from_pylist(stamped, schema=arrow_schema(Bridge)),
        )
        stage_ledger.record(
            inside,
            stage_ledger.BRIDGES,
            finished,
            report["generation"],
            as_of,
            report,
        )

    return report


def _label(graph: BridgeGraph, rules: BridgeRules) -> tuple[Flags, int]:
    """Which edges join topics, and how many of these join super-topics too."""
    tail = graph.tail_topic
    head = graph.head_topic
    above = np.append(graph.super_topic, NOWHERE)
    never = graph.never
    threshold = rules.threshold
    labelled = bridges.bridge_labels(
        graph.weight,
        tail,
        head,
        never,
        threshold,
    )
    strong = bridges.bridge_labels(
        graph.weight,
        above[tail],
        above[head],
        never,
        threshold,
    )
    return labelled, int((labelled & strong).sum())


def _label_rows(
    graph: BridgeGraph,
    relabelled: Longs,
    labelled: Flags,
) -> pa.Table:
    keys = graph.edges.take(pa.array(relabelled))
    return pa.table(
        {
            "_key": keys,
            "layer_bridge": pa.array(labelled[relabelled]),
        }
    )


def choose_pairs(
    store: RowStore,
    heat: Heat,
    topics: Sequence[str],
    rules: BridgeRules,
    moving: Sequence[Report],
    as_of: datetime,
) -> list[Pair]:
    """Pairs of topic numbers, lower first, each once, in the order in which they are to be
    searched.

    Topics that moved come first; which pairs there are does not depend on what moved.
    """
    number = {key: place for place, key in enumerate(topics)}
    shifted = [number[topic["cluster"]] for topic in moving if topic["cluster"] in number]
    chosen = dict.fromkeys(_pairs_of_questions(store, number, rules, as_of))

    for topic in dict.fromkeys([*shifted, *range(len(topics))]):
        chosen |= dict.fromkeys(bridges.pairs_of(heat, topic, rules.topic_pairs))

    chosen |= dict.fromkeys(
        bridges.hot_pairs(
            heat,
            rules.near_pairs,
            rules.far_pairs,
        )
    )
    return sorted(chosen, key=set(shifted).isdisjoint)  # stable: the order above within both halves


def _pairs_of_questions(
    store: RowStore,
    number: Mapping[str, int],
    rules: BridgeRules,
    as_of: datetime,
) -> list[Pair]:
    """Pairs that questions of the last days narrowed to at once (`results.hierarchy`), the most
    frequent first.
    """
    since = Term(
        "at",
        ">=",
        as_of - timedelta(days=rules.seen_days),
    )

    counts: Counter[Pair] = Counter()
    for text in scan_values(
        store,
        "query_logs",
        "results",
        where=[since],
    ):
        if text:
            hierarchy = orjson.loads(text).get("hierarchy", ())
        else:
            hierarchy = ()

        keys = []
        for topic in hierarchy:
            keys.append(str(topic.get("id", "")).removeprefix("clusters/"))

        topics = {number[key] for key in keys if key in number}
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

    for number, pair in enumerate(pairs):
        if number % _SHOWN_EVERY == 0:
            progress("bridges", number, len(pairs))

        if deadline():
            result.stopped = "time"
            break

        if result.work >= rules.work:
            result.stopped = "work"
            break

        paths, work = bridges.best_paths(
            blocks,
            _region(blocks, heat, pair, rules),
            n_paths=rules.paths_per_pair,
            max_hops=rules.max_hops,
            penalty=rules.length_penalty,
            max_work=rules.pair_work,
        )
        for path in paths:
            numbered = TopicPath(path.nodes, tuple(numbers[list(path.edges)].tolist()))
            result.paths[path_key(graph, numbered)] = numbered

        result.searched += 1
        result.work += work

    progress("bridges", result.searched, len(pairs))
    return result


def _region(
    blocks: Blocks,
    heat: Heat,
    pair: Pair,
    rules: BridgeRules,
) -> Region:
    """The two topics and as many between them as one look at every length affords."""
    region = bridges.region_of(blocks, bridges.region_topics(heat, *pair, rules.middles))
    # Of the first 1, 2, ...
    entries = np.diagonal(np.cumsum(np.cumsum(region.last - region.first, axis=0), axis=1))
    affordable = int(np.count_nonzero(entries <= rules.pair_work // (rules.max_hops + 2)))
    return region.within(max(2, affordable))


def _keep_cached(
    graph: BridgeGraph,
    result: BridgeSearchResult,
    pairs: Sequence[Pair],
    cached: Sequence[CachedBridge],
) -> None:
    """Pinned bridges and those of pairs that were not reached stay while they still stand."""
    topics = graph.topics.to_pylist()

    unsearched = set()
    for first, second in pairs[result.searched :]:
        unsearched.add((topics[first], topics[second]))

    for cached_bridge in cached:
        if cached_bridge.path is not None and (
            cached_bridge.pinned or cached_bridge.pair in unsearched
        ):
            result.paths.setdefault(cached_bridge.key, cached_bridge.path)


def _rules_of(path: PathSettings) -> BridgeRules:
    boosts = {}
    for kind, boost in path.relation_boost.items():
        boosts[str(kind)] = boost

    return BridgeRules(
        max_hops=path.max_hops,
        length_penalty=path.length_penalty,
        eps=path.eps,
        boosts=boosts,
    )


STAGE = NightStage(
    "bridges",
    "build bridges",
    lambda context, ingest, night: bridge(
        context,
        night.as_of,
        deadline_in(night.seconds_left()),
    ),
    lambda report: f"{report['bridges']:,} bridges, {report['pairs_searched']:,} pairs searched",
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
    figures=(
        "bridges",
        "by_length",
        "labelled",
        "labels_changed",
        "pairs",
        "pairs_searched",
        "pairs_left",
        "pinned",
        "removed",
        "strong",
        "work",
    ),
    ledger=stage_ledger.BRIDGES,
)
