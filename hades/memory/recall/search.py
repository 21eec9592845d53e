"""Search, strength, walk; memory as answers see it; accesses."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

from hades.budget import Turn
from hades.errors import StoreError, StoreUnavailable
from hades.files import append_line
from hades.memory.history.rows import (
    AUDIT,
    STATES,
    MemoryRefused,
    aware,
    check_text,
    key_of,
    topic_of_key,
)
from hades.memory.recall.index import Bond, MemoryQuery, Reader, SimilarState, Window, index_of
from hades.ports.services import MemoryHit, Vectors, utc_now
from hades.ports.store import GraphStore
from hades.text.sentences import day
from schemas.ids import Mask, node_id
from schemas.memory import MemoryState
from schemas.plan import Reason

_HALF_LIFE_SECONDS, _HALF_LINKS = 30 * 86_400.0, 8.0
BY_SIMILARITY = 0.0
FOR_SEARCH = 0.1  # of two that are as near, the fresh, the important and the linked one
FOR_CONTEXT = 0.2  # where room is short, the fresh and the important come first


def strength(
    state: MemoryState,
    as_of: datetime,
    *,
    links: int = 0,
) -> float:
    """The strength of a version at a moment, in [0, 1]; `links` counts the edges that join it to
    other topics.

    It falls with age towards the importance, which holds it up; what much is joined to is
    important. Being read changes nothing, so that what is shown often is not shown more often for
    it.
    """
    held_up = 1 - (1 - state.importance_score) * 2 ** (-links / _HALF_LINKS)
    age = max(0.0, (as_of - (state.valid_from or state.timestamp)).total_seconds())
    return min(1.0, held_up + (1 - held_up) * math.exp2(-age / _HALF_LIFE_SECONDS))


def rank(
    similarity: float,
    state_strength: float,
    priority: float = BY_SIMILARITY,
) -> float:
    """What results are sorted by: it ranks and never hides. With `priority` 0 similarity alone
    ranks.
    """
    return similarity * (1 - priority * (1 - state_strength))


FANOUT = 1_000  # edges of one topic, heaviest first


@dataclass(frozen=True)
class Step:
    """A version that was reached, how strongly, and the keys of the edges that lead there."""

    state: str
    strength: float
    path: tuple[str, ...]


class Walk:
    """What was read of the graph so far; widened hop by hop, inside the budget of a turn."""

    def __init__(
        self,
        reader: Reader,
        turn: Turn,
        *,
        per_hop: int | None = None,
        weakest: float = 0.0,
        newest: int | None = None,
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
                self._read_bonds(topic)

            bonds = chain.from_iterable(self._bonds.get(topic, ()) for topic in frontier)
            neighbours = dict.fromkeys(topic_of_key(bond.state) for bond in bonds)
            frontier = [topic for topic in neighbours if topic not in self._bonds]

    def reached(self, start: str, depth: int) -> list[Step]:
        """The versions within reach of a topic, each by its strongest way; strongest first, then by
        key.
        """
        best: dict[str, Step] = {}
        frontier = {start: Step("", 1.0, ())}  # the step to each topic

        for _ in range(depth):
            hop = self._next_steps(start, frontier)
            fresh = [step for step in hop if _is_better(step, best.get(step.state))]
            fresh = sorted(fresh, key=_by_strength)[: self._per_hop]
            best |= {step.state: step for step in fresh}

            frontier = {}
            for step in fresh:
                frontier.setdefault(topic_of_key(step.state), step)

        return sorted(best.values(), key=_by_strength)

    def _next_steps(self, start: str, frontier: Mapping[str, Step]) -> Iterable[Step]:
        """The best step to each version one edge beyond the frontier."""
        best: dict[str, Step] = {}
        for topic, last in frontier.items():
            for bond in self._bonds.get(topic, ()):
                step = Step(
                    bond.state,
                    last.strength * bond.strength,
                    (*last.path, bond.edge),
                )
                is_back = topic_of_key(bond.state) == start
                if not is_back and _is_better(step, best.get(bond.state)):
                    best[bond.state] = step

        return best.values()

    def _read_bonds(self, topic: str) -> None:
        """The edges of a topic, as many as the work that is left allows: strong ones, of each
        relation the last few.
        """
        most = min(FANOUT, self._turn.work_left)
        if most < 1:
            self._turn.trimmed(Reason.CAP_EXCEEDED)
        if topic in self._bonds or most < 1:
            return

        bonds = self._reader.bonds(topic)
        scanned = bonds[:most]
        self._turn.count_work(len(scanned), capped=len(bonds) > most)

        strong = []
        for bond in scanned:
            if bond.strength >= self._weakest:
                strong.append(bond)

        self.weaker += len(scanned) - len(strong)
        if self._newest is not None and len(strong) > self._newest:
            strong = _newest_of_each_kind(strong, self._newest)

        self._bonds[topic] = strong


def _newest_of_each_kind(bonds: Sequence[Bond], most: int) -> list[Bond]:
    """The last few of each relation and direction, in the order in which they stand."""
    counts: Counter[tuple[str, bool]] = Counter()

    newest: set[str] = set()
    for bond in sorted(
        bonds,
        key=lambda bond: (bond.began, bond.edge),
        reverse=True,
    ):
        counts[bond.kind] += 1
        if counts[bond.kind] <= most:
            newest.add(bond.edge)

    return [bond for bond in bonds if bond.edge in newest]


def _by_strength(step: Step) -> tuple[float, str]:
    return -step.strength, step.state


def _is_better(step: Step, rival: Step | None) -> bool:
    """Whether a step is stronger than another to the same version, else shorter, else first by its
    keys.
    """
    if rival is None:
        return True

    order = (-step.strength, len(step.path), step.path)
    return order < (-rival.strength, len(rival.path), rival.path)


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
    question: MemoryQuery,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    priority: float = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """Topics by the similarity of their nearest version, shown as they are now; nothing is hidden
    for being weak.

    `limit` versions are taken by meaning and as many by words. The window asks when the nearest
    version began to hold. Which version of a topic holds is looked up, never guessed from the
    candidates. Equal ranks are ordered by strength, then by topic. `levels` 1 to 3 search
    summaries.
    """
    index = reader.index
    visible = index.visible(
        reader.mask,
        levels,
        _check_window(time_window),
    )

    best: dict[str, SimilarState] = {}
    for near in index.nearest(question, visible, limit):
        topic = topic_of_key(near.key)
        if reader.holds(topic):
            best.setdefault(topic, near)

    if most is not None and len(best) > most > 0:
        # A rank lies between this share of the similarity and all of it.
        floor = (1 - priority) * list(best.values())[most - 1].similarity
        best = {topic: near for topic, near in best.items() if near.similarity >= floor}

    matches = []
    for state in reader.current(best):
        topic = topic_of_key(state.key)
        near = best[topic]
        match = MemoryMatch(
            state=state,
            similarity=near.similarity,
            strength=strength(
                state,
                reader.moment,
                links=len(reader.bonds(topic)),
            ),
            matched=near.key,
            semantic=near.semantic,
            lexical=near.lexical,
        )
        matches.append(match)

    def order(match: MemoryMatch) -> tuple[float, float, str]:
        match_rank = rank(match.similarity, match.strength, priority)
        return -match_rank, -match.strength, match.state.topic

    return sorted(matches, key=order)[:most]


def _check_window(window: Window | None) -> Window:
    start, end = window or (None, None)
    if start is not None and end is not None and aware("until", end) <= aware("from", start):
        raise MemoryRefused(f"the window ends at {end}, which is not after {start}; swap the two")
    return start, end


NOTHING_REMEMBERED = "0"


class StoredMemorySearch:
    """Searches the memory of a store. A home without a store, or without memory, has nothing to
    say. `check` raises where the rows of a collection cannot be read at once.
    """

    def __init__(
        self,
        open_store: Callable[[], GraphStore],
        home: Path | None = None,
        check: Callable[[str], None] = lambda collection: None,
    ) -> None:
        self._open_store, self._home, self._check = open_store, home, check
        self._store: GraphStore | None = None
        self._is_away = False
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read what is remembered, so that a turn need not."""
        if self._count_rows(STATES) and self._store is not None:
            index_of(self._store)

    def search(
        self,
        text: str,
        vector: Vectors | None,
        model: str,
        mask: Mask,
        limit: int,
    ) -> Sequence[MemoryHit]:
        if not text.strip() or not self._count_rows(STATES) or self._store is None:
            return []

        reader = Reader(self._store, None, utc_now(), mask)
        matches = search_asked(
            reader,
            MemoryQuery(text, vector, model),
            most=limit,
        )
        return list(map(_to_hit, matches))

    def is_away(self) -> bool:
        return self._is_away

    def note_shown(self, ids: Sequence[str]) -> None:
        log_accesses(self._home, ids, utc_now())

    def version(self) -> str:
        """See `MemorySearch.version`: every act on memory leaves a record."""
        return str(self._count_rows(AUDIT))

    def _count_rows(self, collection: str) -> int:
        """Rows of a collection of the store, which is opened first; 0 where nothing was ever
        written here.
        """
        with self._lock:
            try:
                self._check(collection)
                self._store = self._store or self._open_store()
                count = self._store.count(collection)
                self._is_away = False
            except StoreError as error:
                self._store = None
                self._is_away = isinstance(error, StoreUnavailable)
                return 0

            return count


def _to_hit(match: MemoryMatch) -> MemoryHit:
    state = match.state
    since = day(state.valid_from)
    identifier = node_id(STATES, state.key)
    return MemoryHit(
        identifier,
        state.topic,
        state.content,
        since,
        match.similarity,
        match.semantic,
    )


FILE = Path("logs") / "memory_accesses.jsonl"
_LARGEST_BYTES = 64 << 20  # beyond it nothing is added until upkeep has counted what is there


def log_accesses(
    home: Path | None,
    state_ids: Sequence[str],
    at: datetime,
) -> None:
    """Note that these versions were shown: a line of keys, which tell nothing of what was read,
    counted by upkeep.

    Looking something up never writes to the store. A home that cannot be written costs the note,
    never the answer.
    """
    if home is None or not state_ids:
        return

    path = home / FILE
    with suppress(OSError):
        if not path.exists() or path.stat().st_size <= _LARGEST_BYTES:
            append_line(
                path,
                {
                    "at": at.isoformat(),
                    "keys": list(map(key_of, state_ids)),
                },
            )


@contextmanager
def take_accesses(home: Path | None) -> Iterator[dict[str, list[datetime]]]:
    """When states were shown since the last time, by key; forgotten at the end unless the caller
    failed.
    """
    accesses: dict[str, list[datetime]] = {}
    if home is None:
        yield accesses
        return

    log = home / FILE
    files = sorted(log.parent.glob(f"{FILE.stem}.*.counted"))  # of an attempt that failed
    if log.exists():
        files.append(log.rename(log.with_suffix(f".{len(files)}.counted")))

    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                note = json.loads(line)
                at = datetime.fromisoformat(note["at"])
                keys = [str(key) for key in note["keys"]]
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut off

            for key in keys:
                accesses.setdefault(key, []).append(at)

    yield accesses
    for file in files:
        file.unlink(missing_ok=True)
