"""Rules, pairs, their search."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import combinations

import numpy as np
import orjson

from hades.build.bridges.rows import VERSION, BridgeGraph, BridgePath, BridgeRules, CachedBridge, path_key
from hades.ports.services import ProgressReport
from hades.ports.store import RowStore, Term
from models.bridges import (
    Blocks,
    Heat,
    Longs,
    Region,
    TopicPath,
    best_paths,
    hot_pairs,
    pairs_of,
    region_of,
    region_topics,
)
from schemas.ids import iso
from schemas.record import canonical_json

# Which pairs of topics get bridges: topics with their strongest neighbours, pairs of questions, pairs joined most.


Pair = tuple[int, int]


def choose_pairs(
    store: RowStore, heat: Heat, topics: Sequence[str], rules: BridgeRules, *, moved: Sequence[str], as_of: datetime
) -> list[Pair]:
    """Pairs of topic numbers, lower first, each once, in the order in which they are to be served.

    Topics that moved come first; which pairs there are does not depend on what moved.
    """
    number = {key: place for place, key in enumerate(topics)}
    shifted = [number[key] for key in (one.removeprefix("clusters/") for one in moved) if key in number]
    ordered = dict.fromkeys([*shifted, *range(len(topics))])
    of_topics = [pair for topic in ordered for pair in pairs_of(heat, topic, rules.topic_pairs)]
    chosen = dict.fromkeys([*_pairs_of_questions(store, number, rules, as_of), *of_topics])
    chosen |= dict.fromkeys(hot_pairs(heat, rules.near_pairs, rules.far_pairs))
    restless = set(shifted)
    return sorted(chosen, key=restless.isdisjoint)  # stable: the order above within both halves


def _pairs_of_questions(store: RowStore, number: dict[str, int], rules: BridgeRules, as_of: datetime) -> list[Pair]:
    """Pairs that questions of the last days narrowed to at once (`results.hierarchy`), the most frequent first."""
    since = Term("at", ">=", as_of - timedelta(days=rules.seen_days))
    counts: Counter[Pair] = Counter()
    for batch in store.scan("query_logs", where=[since], columns=["_key", "results"]):
        for text in batch.column("results").to_pylist():
            met = orjson.loads(text).get("hierarchy", ()) if text else ()
            found = {number.get(str(one.get("id", "")).removeprefix("clusters/"), -1) for one in met} - {-1}
            counts.update(combinations(sorted(found), 2))
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    return ranked[: rules.seen_pairs]


# Serving pairs of topics: what was found before and still holds is taken over, the rest is searched.


_SHOWN_EVERY = 64
_FEW_ENTRIES = 1_000_000  # edges in all regions to search; below it, loading the compiled search takes longer


@dataclass
class BridgeSearchResult:
    """Bridges by key, and what it took. `stopped` says what ended the searching early: `time`, `work` or nothing."""

    found: dict[str, BridgePath] = field(default_factory=dict)
    searched: int = 0
    reused: int = 0
    work: int = 0
    stopped: str = ""


@dataclass(frozen=True)
class Trust:
    """How far earlier searches count: made by these rules, not too old, of no restless topic (None: none counts)."""

    rules: BridgeRules
    as_of: datetime
    restless: Set[str] | None

    @cached_property
    def told(self) -> str:
        """The rules as bridges carry them."""
        return hashlib.blake2b(canonical_json([VERSION, asdict(self.rules)]).encode(), digest_size=8).hexdigest()

    def counts(self, rows: Sequence[CachedBridge]) -> bool:
        """Whether these are all the paths that one search found, each edge as it was then."""
        if self.restless is None or not self.restless.isdisjoint(rows[0].pair):
            return False
        is_whole = len(rows) == rows[0].of and all(one.is_same and one.rules == self.told for one in rows)
        return is_whole and self.as_of < datetime.fromisoformat(rows[0].at) + self.rules.ttl


@dataclass(frozen=True)
class _Due:
    pair: Pair
    region: Region
    digest: str


def serve_pairs(
    graph: BridgeGraph,
    heat: Heat,
    pairs: Sequence[Pair],
    kept: Sequence[CachedBridge],
    trust: Trust,
    deadline: Callable[[], bool],
    progress: ProgressReport,
) -> BridgeSearchResult:
    """The best paths of each pair, in the order given, until the work or the time is spent.

    What an earlier search found counts where it is trusted, or where the region of the pair is what it was. Pairs that
    are not reached keep the paths that still stand, and the next build searches them.
    """
    served = BridgeSearchResult()
    held = _by_pair(graph.topics.to_pylist(), kept)
    open_pairs = [pair for pair in pairs if not _keep(served, _latest(held[pair]), trust)]
    if not open_pairs:
        progress("bridges", 0, 0)
        return served
    blocks, numbers = graph.blocks()
    due = _find_changed(served, graph, blocks, heat, open_pairs, held, trust)
    compiled = sum(int((one.region.last - one.region.first).sum()) for one in due) > _FEW_ENTRIES
    for place, one in enumerate(due):
        if place % _SHOWN_EVERY == 0:
            progress("bridges", place, len(due))
        served.stopped = "time" if deadline() else "work" if served.work >= trust.rules.work else ""
        if served.stopped:
            break
        _search(served, graph, blocks, numbers, one, trust, compiled)
    for one in due[served.searched :]:
        left = ((row.key, row.path, row.region, row.of) for row in held[one.pair])
        served.found.update((key, BridgePath(path, region, of)) for key, path, region, of in left if path)
    progress("bridges", served.searched, len(due))
    return served


def _keep(served: BridgeSearchResult, rows: Sequence[CachedBridge], trust: Trust) -> bool:
    """Take over what is trusted of a pair; whether it was."""
    if not rows or not trust.counts(rows):
        return False
    served.found.update((one.key, found) for one in rows if (found := one.found()))
    served.reused += 1
    return True


def _find_changed(
    served: BridgeSearchResult,
    graph: BridgeGraph,
    blocks: Blocks,
    heat: Heat,
    pairs: Sequence[Pair],
    held: Mapping[Pair, Sequence[CachedBridge]],
    trust: Trust,
) -> list[_Due]:
    """The pairs whose region is not what it was; of the others the paths are what a search would find."""
    names = graph.topics.to_pylist()
    due = []
    for pair in pairs:
        region = _region(blocks, heat, pair, trust.rules)
        digest = _digest(trust.told, [names[number] for number in region.topics.tolist()], region)
        same = [one for one in held[pair] if one.region == digest]
        if same and len(same) == same[0].of:
            found = ((one.key, one.path, one.of) for one in same)
            at = iso(trust.as_of)
            served.found.update((key, BridgePath(path, digest, of, trust.told, at)) for key, path, of in found if path)
            served.reused += 1
        else:
            due.append(_Due(pair, region, digest))
    return due


def _latest(rows: Sequence[CachedBridge]) -> list[CachedBridge]:
    """The paths of one pair that its last search found; a pinned one may be left of an earlier search."""
    last = max(((one.at, one.region) for one in rows if one.rules), default=None)
    return [one for one in rows if one.rules and (one.at, one.region) == last]


def _search(
    served: BridgeSearchResult,
    graph: BridgeGraph,
    blocks: Blocks,
    numbers: Longs,
    one: _Due,
    trust: Trust,
    compiled: bool,
) -> None:
    rules = trust.rules
    search = best_paths(
        blocks,
        one.region,
        n_paths=rules.paths_per_pair,
        max_hops=rules.max_hops,
        penalty=rules.length_penalty,
        max_work=rules.pair_work,
        compiled=compiled,
    )
    for path in search.paths:
        mine = TopicPath(path.nodes, tuple(numbers[list(path.edges)].tolist()))
        served.found[path_key(graph, mine)] = BridgePath(
            mine, one.digest, len(search.paths), trust.told, iso(trust.as_of)
        )
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


def _by_pair(topics: Sequence[str], kept: Sequence[CachedBridge]) -> defaultdict[Pair, list[CachedBridge]]:
    number = {key: place for place, key in enumerate(topics)}
    held: defaultdict[Pair, list[CachedBridge]] = defaultdict(list)
    for one in kept:
        if one.path is not None:
            held[number[one.pair[0]], number[one.pair[1]]].append(one)
    return held
