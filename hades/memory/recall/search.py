"""Search, strength, walk; memory as answers see it; accesses."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hades.errors import StoreError
from hades.files import append_line
from hades.memory.history.rows import AUDIT, STATES, MemoryRefused, aware, check_text, key_of, topic_of_key
from hades.memory.recall.index import Bond, MemoryQuery, Reader, SimilarState, Window, index_of
from hades.ports.services import MemoryHit, Vectors, utc_now
from hades.ports.store import GraphStore
from hades.telemetry.turn import Turn
from hades.text.sentences import day
from schemas.ids import Mask, node_id
from schemas.memory import MemoryState
from schemas.plan import Reason

_HALF_LIFE_SECONDS, _HALF_LINKS = 30 * 86_400.0, 8.0
BY_SIMILARITY = 0.0
FOR_SEARCH = 0.1  # of two that are as near, the fresh, the important and the linked one
FOR_CONTEXT = 0.2  # where room is short, the fresh and the important come first


def strength(state: MemoryState, as_of: datetime, *, links: int = 0) -> float:
    """The strength of a version at a moment, in [0, 1]; `links` counts the edges that join it to other topics.

    It falls with age towards the importance, which holds it up; what much is joined to is important. Being read changes
    nothing, so that what is shown often is not shown more often for it.
    """
    held_up = 1 - (1 - state.importance_score) * 2 ** (-links / _HALF_LINKS)
    age = max(0.0, (as_of - (state.valid_from or state.timestamp)).total_seconds())
    return min(1.0, held_up + (1 - held_up) * math.exp2(-age / _HALF_LIFE_SECONDS))


def rank(similarity: float, state_strength: float, priority: float = BY_SIMILARITY) -> float:
    """What results are sorted by: it ranks and never hides. With `priority` 0 similarity alone ranks."""
    return similarity * (1 - priority * (1 - state_strength))


FANOUT = 1_000  # edges of one topic, heaviest first


@dataclass(frozen=True)
class Step:
    """A version that was reached, how strongly, and the keys of the edges that lead there."""

    state: str
    strength: float
    way: tuple[str, ...]


class Walk:
    """What was read of the graph so far; widened hop by hop, inside the budget of a turn."""

    def __init__(
        self, reader: Reader, turn: Turn, *, per_hop: int | None = None, weakest: float = 0.0, newest: int | None = None
    ) -> None:
        self.weaker = 0
        self._reader, self._turn = reader, turn
        self._per_hop, self._weakest, self._newest = per_hop, weakest, newest
        self._bonds: dict[str, list[Bond]] = {}  # by topic key

    def widen(self, topics: Iterable[str], depth: int) -> None:
        """Read the edges of these topics and of what they lead to."""
        frontier = list(dict.fromkeys(topics))
        for _ in range(depth):
            for topic in frontier:
                self._read(topic)
            ends = (topic_of_key(bond.state) for topic in frontier for bond in self._bonds.get(topic, ()))
            frontier = [topic for topic in dict.fromkeys(ends) if topic not in self._bonds]

    def reached(self, start: str, depth: int) -> list[Step]:
        """The versions within reach of a topic, each by its strongest way; strongest first, then by key."""
        best: dict[str, Step] = {}
        frontier: list[tuple[str, float, tuple[str, ...]]] = [(start, 1.0, ())]
        for _ in range(depth):
            met: dict[str, Step] = {}
            for topic, strength, way in frontier:
                for bond in self._bonds.get(topic, ()):
                    step = Step(bond.state, strength * bond.strength, (*way, bond.edge))
                    if topic_of_key(bond.state) != start and _better(step, met.get(bond.state)):
                        met[bond.state] = step
            fresh = [step for step in met.values() if _better(step, best.get(step.state))]
            fresh = sorted(fresh, key=lambda step: (-step.strength, step.state))[: self._per_hop]
            best |= {step.state: step for step in fresh}
            strongest: dict[str, Step] = {}
            for step in fresh:
                strongest.setdefault(topic_of_key(step.state), step)
            frontier = [(topic, step.strength, step.way) for topic, step in strongest.items()]
        return sorted(best.values(), key=lambda step: (-step.strength, step.state))

    def _read(self, topic: str) -> None:
        """The edges of a topic, as many as the work that is left allows: strong ones, of each relation the last few."""
        most = min(FANOUT, self._turn.work_left)
        if most < 1:
            self._turn.trimmed(Reason.CAP_EXCEEDED)
        if topic in self._bonds or most < 1:
            return
        found = self._reader.bonds(topic)
        self._turn.worked(min(most, len(found)), capped=len(found) > most)
        strong = [bond for bond in found[:most] if bond.strength >= self._weakest]
        self.weaker += min(most, len(found)) - len(strong)
        if self._newest is not None and len(strong) > self._newest:
            kinds: dict[tuple[str, bool], list[str]] = {}
            for bond in sorted(strong, key=lambda bond: (bond.began, bond.edge), reverse=True):
                kinds.setdefault(bond.kind, []).append(bond.edge)
            last = {edge for edges in kinds.values() for edge in edges[: self._newest]}
            strong = [bond for bond in strong if bond.edge in last]
        self._bonds[topic] = strong


def _better(step: Step, other: Step | None) -> bool:
    if other is None:
        return True
    return (-step.strength, len(step.way), step.way) < (-other.strength, len(other.way), other.way)


CANDIDATES = 100


@dataclass(frozen=True)
class MemoryMatch:
    """A topic that a question is about: the version that holds, and the one that led there."""

    state: MemoryState
    similarity: float
    strength: float
    matched: str  # id of the version that is nearest to the question
    semantic: float | None
    lexical: float


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
    priority: float = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """Topics by the similarity of their nearest version, shown as they are now; nothing is hidden for being weak.

    `limit` versions are taken by meaning and as many by words. The window asks when the nearest version began to hold.
    Which version of a topic holds is looked up, never guessed from the candidates. Equal ranks are ordered by strength,
    then by topic. `levels` 1 to 3 search summaries.
    """
    index = reader.index
    seen = index.visible(reader.mask, levels, _check_window(time_window))
    best: dict[str, SimilarState] = {}
    for near in index.nearest(asked, seen, limit):
        if reader.holds(topic_of_key(near.key)):
            best.setdefault(topic_of_key(near.key), near)
    if most is not None and len(best) > most > 0:  # a rank lies between this share of the similarity and all of it
        floor = (1 - priority) * list(best.values())[most - 1].similarity
        best = {topic: near for topic, near in best.items() if near.similarity >= floor}
    found = []
    for state in reader.current(best):
        topic = topic_of_key(state.key)
        near, links = best[topic], len(reader.bonds(topic))
        power = strength(state, reader.moment, links=links)
        found.append(MemoryMatch(state, near.similarity, power, near.key, near.semantic, near.lexical))
    found.sort(key=lambda one: (-rank(one.similarity, one.strength, priority), -one.strength, one.state.topic))
    return found[:most]


def _check_window(window: Window | None) -> Window:
    start, end = window or (None, None)
    if start is not None and end is not None and aware("until", end) <= aware("from", start):
        raise MemoryRefused(f"the window ends at {end}, which is not after {start}; swap the two")
    return start, end


NOTHING_REMEMBERED = "0"


class StoredMemorySearch:
    """Searches the memory of a store. A home without a store, or without memory, has nothing to say."""

    def __init__(self, open_store: Callable[[], GraphStore], home: Path | None = None) -> None:
        self._open_store, self._home = open_store, home
        self._store: GraphStore | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read what is remembered, so that a turn need not."""
        if self._count(STATES) and self._store is not None:
            index_of(self._store)

    def search(self, text: str, vector: Vectors | None, model: str, mask: Mask, limit: int) -> Sequence[MemoryHit]:
        if not text.strip() or not self._count(STATES) or self._store is None:
            return []
        reader = Reader(self._store, None, utc_now(), mask)
        return [
            MemoryHit(
                node_id(STATES, one.state.key),
                one.state.topic,
                one.state.content,
                day(one.state.valid_from),
                one.similarity,
                one.semantic,
            )
            for one in search_asked(reader, MemoryQuery(text, vector, model), most=limit)
        ]

    def note_shown(self, ids: Sequence[str]) -> None:
        log_accesses(self._home, ids, utc_now())

    def version(self) -> str:
        """See `MemorySearch.version`: every act on memory leaves a record."""
        return str(self._count(AUDIT))

    def _count(self, collection: str) -> int:
        """Rows of a collection of the store, which is opened first; 0 where nothing was ever written here."""
        with self._lock:
            try:
                self._store = self._store or self._open_store()
                return self._store.count(collection)
            except StoreError:
                self._store = None
                return 0


FILE = Path("logs") / "memory_accesses.jsonl"
_LARGEST_BYTES = 64 << 20  # beyond it nothing is added until upkeep has counted what is there


def log_accesses(home: Path | None, state_ids: Sequence[str], at: datetime) -> None:
    """Note that these versions were shown: a line of keys, which tell nothing of what was read, counted by upkeep.

    Looking something up never writes to the store. A home that cannot be written costs the note, never the answer.
    """
    if home is None or not state_ids:
        return
    path = home / FILE
    with suppress(OSError):
        if not path.exists() or path.stat().st_size <= _LARGEST_BYTES:
            append_line(path, {"at": at.isoformat(), "keys": [key_of(one) for one in state_ids]})


@contextmanager
def take_accesses(home: Path | None) -> Iterator[dict[str, list[datetime]]]:
    """When states were shown since the last time, by key; it is forgotten at the end, unless counting it failed."""
    taken: dict[str, list[datetime]] = {}
    if home is None:
        yield taken
        return
    noted_file = home / FILE
    counted = sorted(noted_file.parent.glob(f"{FILE.stem}.*.counted"))  # by an attempt that failed
    if noted_file.exists():
        counted.append(noted_file.rename(noted_file.with_suffix(f".{len(counted)}.counted")))
    for line in (line for one in counted for line in one.read_text(encoding="utf-8").splitlines()):
        try:
            noted = json.loads(line)
            at, keys = datetime.fromisoformat(noted["at"]), [str(key) for key in noted["keys"]]
        except (ValueError, KeyError, TypeError):
            continue  # a line that was cut off
        for key in keys:
            taken.setdefault(key, []).append(at)
    yield taken
    for one in counted:
        one.unlink(missing_ok=True)
