"""Serving pairs of topics: what was found in the same region before is taken over, the rest is searched."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from hades.builds.bridge_graph import BridgeGraph
from hades.builds.bridge_pairs import Pair
from hades.builds.bridge_rows import Found, Kept, path_key
from hades.builds.bridge_rules import BridgeRules
from hades.ports.progress import Progress
from models.bridges.blocks import Blocks, Region, region_of
from models.bridges.pairs import Heat, region_topics
from models.bridges.score import Longs
from models.bridges.search import TopicPath, best_paths
from schemas.record import canonical_json

VERSION = 1  # raise it with any change of what is found: the next build searches anew
_SHOWN_EVERY = 64


@dataclass
class Served:
    """Bridges by key, and what it took. `stopped` says what ended the searching early: `time`, `work` or nothing."""

    found: dict[str, Found] = field(default_factory=dict)
    searched: int = 0
    reused: int = 0
    work: int = 0
    stopped: str = ""


@dataclass(frozen=True)
class _Due:
    pair: Pair
    region: Region
    digest: str


def serve_pairs(
    graph: BridgeGraph,
    heat: Heat,
    pairs: Sequence[Pair],
    kept: Sequence[Kept],
    rules: BridgeRules,
    deadline: Callable[[], bool],
    progress: Progress,
) -> Served:
    """The best paths of each pair, in the order given, until the work or the time is spent.

    Pairs that are not reached keep the paths that still stand; being of another region, the next build searches them.
    """
    served = Served()
    blocks, numbers = graph.blocks()
    names = graph.topics.to_pylist()
    held = _by_pair(names, kept)
    told = canonical_json([VERSION, asdict(rules)])
    due = []
    for pair in pairs:
        region = _region(blocks, heat, pair, rules)
        digest = _digest(told, [names[number] for number in region.topics.tolist()], region)
        same = [one for one in held[pair] if one.region == digest]
        if same and len(same) == same[0].of:
            served.found.update((one.key, Found(one.path, digest, one.of)) for one in same if one.path)
            served.reused += 1
        else:
            due.append(_Due(pair, region, digest))
    for place, one in enumerate(due):
        if place % _SHOWN_EVERY == 0:
            progress("bridges", place, len(due))
        served.stopped = "time" if deadline() else "work" if served.work >= rules.work else ""
        if served.stopped:
            break
        _search(served, graph, blocks, numbers, one, rules)
    for one in due[served.searched :]:
        served.found.update((row.key, Found(row.path, row.region, row.of)) for row in held[one.pair] if row.path)
    progress("bridges", served.searched, len(due))
    return served


def _search(served: Served, graph: BridgeGraph, blocks: Blocks, numbers: Longs, one: _Due, rules: BridgeRules) -> None:
    search = best_paths(
        blocks,
        one.region,
        n_paths=rules.paths_per_pair,
        max_hops=rules.max_hops,
        penalty=rules.length_penalty,
        max_work=rules.pair_work,
    )
    for path in search.paths:
        mine = TopicPath(path.nodes, tuple(numbers[list(path.edges)].tolist()))
        served.found[path_key(graph, mine)] = Found(mine, one.digest, len(search.paths))
    served.searched += 1
    served.work += search.work


def _region(blocks: Blocks, heat: Heat, pair: Pair, rules: BridgeRules) -> Region:
    """The two topics and as many between them as one look at every length affords."""
    region = region_of(blocks, region_topics(heat, *pair, rules.middles))
    entries = np.diagonal(np.cumsum(np.cumsum(region.last - region.first, axis=0), axis=1))  # of the first 1, 2, ...
    affordable = int(np.count_nonzero(entries <= rules.pair_work // (rules.max_hops + 2)))
    return region.within(max(2, affordable))


def _digest(rules: str, topics: Sequence[str], region: Region) -> str:
    """Everything a search of the region depends on."""
    hashed = hashlib.blake2b(canonical_json([rules, topics]).encode(), digest_size=16)
    hashed.update(region.digests.astype("<u8").tobytes())
    return hashed.hexdigest()


def _by_pair(topics: Sequence[str], kept: Sequence[Kept]) -> defaultdict[Pair, list[Kept]]:
    number = {key: place for place, key in enumerate(topics)}
    held: defaultdict[Pair, list[Kept]] = defaultdict(list)
    for one in kept:
        if one.path is not None:
            held[number[one.pair[0]], number[one.pair[1]]].append(one)
    return held
