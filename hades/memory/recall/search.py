"""Search, strength, walk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from typing import Any

import pyarrow as pa

from hades.memory.history import rows as records
from hades.memory.history.rows import EDGES, LATEST, MemoryRefused, aware, check_text, key_of, state_id, topic_of_key
from hades.memory.history.states import Reader
from hades.memory.recall.index import IndexHit, StateIndex, index_of, model_of
from hades.memory.recall.index_arrays import ALWAYS, Bond, MemoryQuery, SimilarState, Standing, nearest, to_micros
from hades.ports.store import Direction, Predicate, Term
from hades.telemetry.turn import Caps, Turn
from schemas.memory import LatestState, MemoryState
from schemas.plan import Reason

# How strongly a memory comes to mind: the one formula of decay, importance and use. It ranks and never hides.
# importance' = 1 - (1 - importance) * 2^(-links / 8) freshness = max(2^(-age / 30 days), reinforcement *
# 2^(-since_access / 30 days)) strength = importance' + (1 - importance') * freshness in [0, 1] rank = similarity *
# (1 - priority * (1 - strength)) Strength falls with age towards the importance, which holds it up; what much is
# joined to is important. With `reinforcement` 0, the default, being read changes nothing, so that what is shown
# often is not shown more often for it. With `priority` 0 similarity alone ranks; no value of either brings a
# similarity to nothing.


_DAY = 86_400.0
_MOST = 0.5  # the largest share that a lack of strength may take of a similarity


@dataclass(frozen=True)
class StrengthRules:
    """The constants of the formula."""

    half_life_days: float = 30.0
    half_links: float = 8.0
    reinforcement: float = 0.0
    priority: float = 0.0

    def __post_init__(self) -> None:
        if self.half_life_days <= 0 or self.half_links <= 0:
            raise MemoryRefused("half_life_days and half_links must be above 0; the defaults are 30 and 8")
        if not 0 <= self.reinforcement <= 1 or not 0 <= self.priority <= _MOST:
            raise MemoryRefused(f"reinforcement lies between 0 and 1 and priority between 0 and {_MOST}")


BY_SIMILARITY = StrengthRules()
FOR_SEARCH = StrengthRules(priority=0.1)  # of two that are as near, the fresh, the important and the linked one
FOR_CONTEXT = StrengthRules(priority=0.2)  # where room is short, the fresh and the important come first


def strength(state: MemoryState, as_of: datetime, *, links: int = 0, rules: StrengthRules = BY_SIMILARITY) -> float:
    """The strength of a version at a moment; `links` counts the edges that join it to other topics."""
    since = state.valid_from or state.timestamp
    return strength_of(state.importance_score, since, state.last_accessed, as_of, links=links, rules=rules)


def strength_of(
    importance: float,
    since: datetime,
    accessed: datetime | None,
    as_of: datetime,
    *,
    links: int = 0,
    rules: StrengthRules = BY_SIMILARITY,
) -> float:
    """The formula itself, of the facts that it depends on."""
    held_up = 1 - (1 - importance) * 2 ** (-links / rules.half_links)
    freshness = _halve(since, as_of, rules)
    if rules.reinforcement and accessed is not None:
        freshness = max(freshness, rules.reinforcement * _halve(accessed, as_of, rules))
    return min(1.0, held_up + (1 - held_up) * freshness)


def rank(similarity: float, state_strength: float, rules: StrengthRules = BY_SIMILARITY) -> float:
    """What results are sorted by; above nothing whenever the similarity is."""
    return similarity * (1 - rules.priority * (1 - state_strength))


def _halve(since: datetime, as_of: datetime, rules: StrengthRules) -> float:
    days = max(0.0, (as_of - since).total_seconds() / _DAY)
    return math.exp2(-days / rules.half_life_days)


# Walking memory from topic to topic along the edges that are true for a reader. The index of this process knows
# them all; where there is none, the store is asked once a hop.


FANOUT = 1_000  # edges of one version, heaviest first
VERSIONS = 1_000  # of one topic, newest first
_DIGITS = 8
_LINK_WORK = 20_000  # versions and edges looked at to count links; topics beyond it count as joined to nothing


@dataclass(frozen=True)
class Step:
    """A version that was reached, how strongly, and the keys of the edges that lead there."""

    state: str
    strength: float
    way: tuple[str, ...]


def count_links(reader: Reader, topics: Sequence[str]) -> dict[str, int]:
    """How many edges that are true for a reader join each of these topics, by its key, to others."""
    turn = Turn(Caps(docs_max=0, work_max=_LINK_WORK, latency_ms=float("inf")))
    with turn.stage("links"):
        walk = Walk(reader, None, turn)
        walk.widen(topics, 1)
        return {topic: walk.degree(topic) for topic in topics}


class Walk:
    """What was read of the graph so far; widened hop by hop, inside the budget of a turn."""

    def __init__(
        self,
        reader: Reader,
        types: Sequence[str] | None,
        turn: Turn,
        *,
        per_hop: int | None = None,
        weakest: float = 0.0,
        newest: int | None = None,
    ) -> None:
        self.weaker = 0
        self._reader, self._types, self._turn = reader, types, turn
        self._per_hop, self._weakest, self._newest = per_hop, weakest, newest
        self._bonds: dict[str, list[Bond]] = {}  # by topic key

    def widen(self, topics: Iterable[str], depth: int) -> None:
        """Read the edges of these topics and of what they lead to."""
        frontier = list(dict.fromkeys(topics))
        for _ in range(depth):
            self._read([topic for topic in frontier if topic not in self._bonds])
            ends = (topic_of_key(bond.state) for topic in frontier for bond in self._best(topic))
            frontier = [topic for topic in dict.fromkeys(ends) if topic not in self._bonds]
            if not frontier:
                return

    def reached(self, start: str, depth: int) -> list[Step]:
        """The versions within reach of a topic, each by its strongest way; strongest first, then by key."""
        best: dict[str, Step] = {}
        frontier: list[tuple[str, float, tuple[str, ...]]] = [(start, 1.0, ())]
        for _ in range(depth):
            met: dict[str, Step] = {}
            for topic, strength, way in frontier:
                for bond in self._best(topic):
                    step = Step(bond.state, strength * bond.strength, (*way, bond.edge))
                    if topic_of_key(bond.state) != start and _better(step, met.get(bond.state)):
                        met[bond.state] = step
            fresh = [step for step in met.values() if _better(step, best.get(step.state))]
            fresh = sorted(fresh, key=lambda step: (-step.strength, step.state))[: self._per_hop]
            best |= {step.state: step for step in fresh}
            frontier = _topics(fresh)
        return sorted(best.values(), key=lambda step: (-step.strength, step.state))

    def degree(self, topic: str) -> int:
        """How many edges of a topic were read."""
        return len(self._best(topic))

    def _best(self, topic: str) -> list[Bond]:
        return self._bonds.get(topic, [])

    def _read(self, topics: Sequence[str]) -> None:
        """The edges of some topics; as many topics as the work that is left allows."""
        with index_of(self._reader.rows, model_of(self._reader)) as index:
            if index is not None:
                self._look_up(index, topics)
                return
        pointers = records.fetch(self._reader.rows, LATEST, sorted(topics), LatestState)
        nodes: list[str] = []
        for topic in topics:
            newest = pointers[topic].version if topic in pointers else 0
            first = max(1, newest - VERSIONS + 1)
            if 2 * (newest - first + 1) + len(nodes) > self._turn.work_left:  # each version, and an edge of each
                self._turn.trimmed(Reason.CAP_EXCEEDED)
                break
            self._turn.worked(newest - first + 1, capped=first > 1)
            self._bonds[topic] = []
            nodes += [state_id(f"{topic}_{version:0{_DIGITS}d}") for version in range(first, newest + 1)]
        if nodes:
            self._ask(nodes)

    def _look_up(self, index: StateIndex, topics: Sequence[str]) -> None:
        """The edges of some topics from the index of this process."""
        standing = Standing.of(self._reader.mask, self._reader.now)
        for topic in topics:
            most = min(FANOUT, self._turn.work_left)
            if most < 1:
                self._turn.trimmed(Reason.CAP_EXCEEDED)
                return
            bonds = index.edges.bonds(topic, standing, self._types)
            self._turn.worked(min(most, len(bonds)), capped=len(bonds) > most)
            self._keep(topic, bonds[:most])

    def _ask(self, nodes: Sequence[str]) -> None:
        """The edges of some versions from the store, one question."""
        fanout = min(FANOUT, max(1, self._turn.work_left // len(nodes)))
        table = self._reader.rows.neighbours(
            nodes, edges=EDGES, direction=Direction.ANY, types=self._types, fanout=fanout, mask=self._reader.edges
        )
        self._turn.worked(table.num_rows)
        found: dict[str, list[Bond]] = {topic_of_key(key_of(node)): [] for node in nodes}
        began = self._began(table) if self._newest is not None else {}
        for row in table.to_pylist():
            topic, other = topic_of_key(key_of(row["node"])), key_of(row["neighbour"])
            if topic_of_key(other) != topic:  # the trace tells of those between its versions
                strength = 1.0 if row["weight"] is None else float(row["weight"])
                kind = row["type"], row["outbound"]
                found[topic].append(Bond(other, row["edge"], strength, kind, began.get(row["edge"], ALWAYS)))
        for topic, bonds in found.items():
            self._keep(topic, sorted(bonds, key=lambda bond: (-bond.strength, bond.edge)))

    def _keep(self, topic: str, bonds: Sequence[Bond]) -> None:
        """Those that are strong enough; where asked, of each relation only the last few."""
        strong = [bond for bond in bonds if bond.strength >= self._weakest]
        self.weaker += len(bonds) - len(strong)
        if self._newest is not None and len(strong) > self._newest:
            last = self._latest_of_each_kind(strong)
            strong = [bond for bond in strong if bond.edge in last]
        self._bonds[topic] = strong

    def _began(self, edges: pa.Table) -> dict[str, int]:
        """When edges became true, in microseconds since 1970; one read for all."""
        wanted = sorted(set(edges.column("edge").to_pylist()))
        table = self._reader.rows.get(EDGES, wanted, columns=["valid_from"])
        pairs = zip(table.column("_key").to_pylist(), table.column("valid_from").to_pylist(), strict=True)
        return {key: to_micros(moment) for key, moment in pairs if moment is not None}

    def _latest_of_each_kind(self, bonds: Sequence[Bond]) -> set[str]:
        """Of each relation, each way, the edges that became true last."""
        kinds: dict[tuple[str, bool], list[Bond]] = {}
        for bond in sorted(bonds, key=lambda bond: (bond.began, bond.edge), reverse=True):
            kinds.setdefault(bond.kind, []).append(bond)
        return {bond.edge for some in kinds.values() for bond in some[: self._newest]}


def _better(step: Step, other: Step | None) -> bool:
    if other is None:
        return True
    return (-step.strength, len(step.way), step.way) < (-other.strength, len(other.way), other.way)


def _topics(steps: Sequence[Step]) -> list[tuple[str, float, tuple[str, ...]]]:
    """The topics that were reached, each by its strongest step."""
    first: dict[str, tuple[str, float, tuple[str, ...]]] = {}
    for step in steps:
        topic = topic_of_key(step.state)
        first.setdefault(topic, (topic, step.strength, step.way))
    return list(first.values())


# Searching memory: what is near to a question, each topic once, as it is now or as it was then.


CANDIDATES = 100
Window = tuple[datetime | None, datetime | None]  # [from, until), an absent side is open


@dataclass(frozen=True)
class MemoryMatch:
    """A topic that a question is about: the version that holds, and the one that led there."""

    state: MemoryState
    similarity: float
    strength: float
    matched: str  # id of the version that is nearest to the question
    semantic: float | None
    lexical: float

    def as_dict(self) -> dict[str, Any]:
        """The find as JSON, without vectors."""
        return {
            "state": plain_state(self.state),
            "similarity": round(self.similarity, 6),
            "strength": round(self.strength, 6),
            "matched": self.matched,
        }


def search_memories(
    reader: Reader,
    query: str,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    rules: StrengthRules = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """Topics by the similarity of their nearest version, shown as they are now; nothing is hidden for being weak.

    `limit` versions are taken by meaning and as many by words. The window asks when the nearest version began to hold.
    Which version of a topic holds is looked up, never guessed from the candidates. Equal ranks are ordered by strength,
    then by topic. `levels` 1 to 3 search summaries.
    """
    asked = embed_question(reader, query)
    return search_asked(reader, asked, time_window, limit=limit, rules=rules, levels=levels, most=most)


def embed_question(reader: Reader, query: str) -> MemoryQuery:
    """The question with its vector; an empty one is refused."""
    if not query.strip():
        raise MemoryRefused("the question is empty; say what to look for")
    check_text("the question", query)
    return MemoryQuery.of(query, reader.embedder)


def search_asked(
    reader: Reader,
    asked: MemoryQuery,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    rules: StrengthRules = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """The same for a question whose vector is known; at most `most` topics are read."""
    with index_of(reader.rows, asked.model) as index:
        if index is not None:
            ranked = _rank_in_index(index, reader, asked, time_window, limit, rules, levels, most)
            return _read(index, ranked)
    where = (*_in_window(time_window), *_visible(reader), Term("consolidation_level", "in", list(levels)))
    best: dict[str, SimilarState] = {}
    for near in nearest(reader.rows, asked, limit=limit, where=where):
        best.setdefault(topic_of_key(near.key), near)
    found = []
    links = count_links(reader, list(best))
    for state in reader.current(best):
        topic = topic_of_key(state.key)
        near = best[topic]
        power = strength(state, reader.moment, links=links.get(topic, 0), rules=rules)
        found.append(MemoryMatch(state, near.similarity, power, near.key, near.semantic, near.lexical))
    return sorted(found, key=lambda one: (-rank(one.similarity, one.strength, rules), -one.strength, one.state.topic))[
        :most
    ]


@dataclass(frozen=True)
class _Ranked:
    """A topic in the index: the version that holds, the one that matched, and what ranks it."""

    key: str
    topic: str
    hit: IndexHit
    matched: str
    strength: float
    rank: float


def _rank_in_index(
    index: StateIndex,
    reader: Reader,
    asked: MemoryQuery,
    window: Window | None,
    limit: int,
    rules: StrengthRules,
    levels: Sequence[int],
    most: int | None,
) -> list[_Ranked]:
    """The best topics by rank, without reading a row. A rank is never above its similarity, so the rest is skipped."""
    _in_window(window)  # a window that ends before it begins is refused
    standing = Standing.of(reader.mask, reader.now)
    seen = index.seen(reader.mask, levels, window or (None, None))
    ranked: dict[str, _Ranked] = {}
    ranks: list[float] = []  # a heap of the best `most`
    for hit in index.nearest(asked, seen, limit):
        matched = index.keys[hit.place]
        topic = topic_of_key(matched)
        if topic in ranked:
            continue
        if most is not None and len(ranks) >= most and hit.similarity < ranks[0]:
            break
        place = index.current(topic, standing)
        if place is not None:
            links = index.edges.links(topic, standing)
            power = strength_of(*index.strength_facts(place), reader.moment, links=links, rules=rules)
            value = rank(hit.similarity, power, rules)
            ranked[topic] = _Ranked(index.keys[place], index.topics[place], hit, matched, power, value)
            heappush(ranks, value)
            if most is not None and len(ranks) > most:
                heappop(ranks)
    return sorted(ranked.values(), key=lambda one: (-one.rank, -one.strength, one.topic))[:most]


def _read(index: StateIndex, ranked: Sequence[_Ranked]) -> list[MemoryMatch]:
    held = {state.key: state for state in index.states([one.key for one in ranked])}
    return [
        MemoryMatch(held[one.key], one.hit.similarity, one.strength, one.matched, one.hit.semantic, one.hit.lexical)
        for one in ranked
        if one.key in held
    ]


def plain_state(state: MemoryState) -> dict[str, Any]:
    """A version as JSON, without its vector and how it is stored."""
    return {
        "id": state.id,
        **state.model_dump(mode="json", exclude={"key", "embedding", "diff_from_parent", "is_delta"}),
    }


def _in_window(window: Window | None) -> Predicate:
    if window is None:
        return ()
    start, end = window
    if start is not None and end is not None and aware("until", end) <= aware("from", start):
        raise MemoryRefused(f"the window ends at {end}, which is not after {start}; swap the two")
    terms = [Term("valid_from", ">=", aware("from", start))] if start is not None else []
    return [*terms, Term("valid_from", "<", aware("until", end))] if end is not None else terms


def _visible(reader: Reader) -> Predicate:
    """Versions that may lead a reader to a topic: said and begun by then, not retracted since."""
    as_of, known_at = reader.mask.as_of, reader.mask.known_at
    if known_at is None:
        return [Term("retracted_at", "is_null"), *([Term("valid_from", "<=", as_of)] if as_of is not None else [])]
    return [Term("timestamp", "<=", known_at), Term("valid_from", "<=", as_of or known_at)]
