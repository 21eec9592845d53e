"""Every read asked for first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import (
    BridgePath,
    DocumentFilter,
    EdgeFacts,
    Expansion,
    Flags,
    Hits,
    Kind,
    NameMatches,
    NodeFacts,
    Numbers,
    Passage,
    RankerState,
    SourceFacts,
    Weights,
)
from hades.ports.store import Direction
from hades.snapshot.remote import PartView
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Turn
from schemas.ids import Mask
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.core.types import FoundPath


def keep_targets(found: Expansion, is_kept: Flags, fanout: int | None) -> Expansion:
    """The edges whose target is kept, at most `fanout` of each asked node."""
    kept = np.flatnonzero(is_kept)
    if fanout is not None and len(kept):
        rows = found.row[kept]
        first = np.searchsorted(rows, rows, side="left")
        kept = kept[np.arange(len(kept)) - first < fanout]
    arrays = {name: getattr(found, name)[kept] for name in ("row", "target", "edge", "type", "weight", "outbound")}
    return Expansion(**arrays, work=found.work, capped=found.capped)


# The view through the meter: every read is asked for first, and what is denied is not read. A read is a document or
# an edge materialised; what is scanned or compared to find it is work. A search that comes too late finds nothing.
# Answers may be shorter than what was asked: always the first of it, so whoever asks puts the best first. What a
# turn has read once it keeps: asking again costs nothing.
_WIDER = 8  # how many more are looked at where a question is limited to a domain
SEARCH_DEPTH = 256  # hits that a search in memory looks for at once; a turn asks for fewer or more of the same later
Key = TypeVar("Key")
Document = TypeVar("Document")


class _TimedView:
    """Passes every question on to a view, and remembers how long the slowest answer took."""

    def __init__(self, view: GraphView, clock: Callable[[], float]) -> None:
        self._view, self._clock = view, clock
        self.slowest_ms = 0.0

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._view, name)
        if not callable(answer):
            return answer

        def timed(*asked: Any, **options: Any) -> Any:
            began = self._clock()
            found = answer(*asked, **options)
            self.slowest_ms = max(self.slowest_ms, (self._clock() - began) * 1000)
            return found

        return timed


class MeteredView:
    """What of a `GraphView` a turn reads, against its account; nothing in retrieval reads any other way."""

    def __init__(self, view: GraphView, turn: Turn, only: DocumentFilter | None = None) -> None:
        self.turn = turn
        self.only = only
        self._timed = _TimedView(view, turn.clock)
        self._view = cast(GraphView, self._timed)
        # These are free. Kernels that walk the adjacency ask `turn.work_left` first and report to `turn.worked`.
        self.info, self.type_names = self._view.info, self._view.type_names
        self.ids, self.kinds, self.adjacency = self._view.ids, self._view.kinds, self._view.adjacency
        self._nodes: dict[int, NodeFacts] = {}
        self._edges: dict[int, EdgeFacts] = {}
        self._passages: dict[int, Passage] = {}
        self._sources: dict[str, SourceFacts | None] = {}
        self._searches: dict[tuple[str | bytes, Kind], tuple[int, Hits]] = {}

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`; an id that may not be looked up has the number -1."""
        return self._view.number(ids) if self._in_time() else np.full(len(ids), -1, np.int64)

    def expand(
        self,
        numbers: Numbers,
        *,
        direction: Direction,
        types: Sequence[str] | None = None,
        fanout: int | None = None,
        mask: Mask = Mask(),
        max_work: int | None = None,
    ) -> Expansion:
        """See `GraphView.expand`; the work is counted."""
        allowed = self.turn.work_left if max_work is None else min(max_work, self.turn.work_left)
        if not self._in_time():
            return _NO_EDGES
        wanted = fanout if fanout is None or self.only is None else fanout * _WIDER
        found = self._view.expand(
            numbers, direction=direction, types=types, fanout=wanted, mask=mask, max_work=max(0, allowed)
        )
        self.turn.worked(found.work, capped=found.capped)
        return found if self.only is None else keep_targets(found, self.is_inside(found.target), fanout)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`; a node that may not be looked at counts 0."""
        if not self._in_time():
            return np.zeros(len(numbers), np.int64)
        return self._view.degree(numbers, direction=direction, types=types)

    def is_inside(self, numbers: Numbers) -> Flags:
        """Whether each node belongs to what the question is limited to; one that may not be looked up does not."""
        if self.only is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        asked = np.asarray(numbers, np.int64)
        return self._view.selects(asked, self.only) if self._in_time() else np.zeros(len(asked), np.bool_)

    def may_show(self, numbers: Numbers) -> Flags:
        """Whether each node may stand in a path: it belongs, and nothing that the caller may not see tells of it."""
        inside = self.is_inside(numbers)
        if self.only is not None and self.only.within is not None and inside.any():
            inside &= self._view.selects_wholes(np.asarray(numbers, np.int64), self.only.within)
        return inside

    def outside_documents(self, ids: Sequence[str]) -> frozenset[str]:
        """The documents among these that the question is not limited to."""
        if self.only is None or not ids:
            return frozenset()
        inside = self._view.selects_documents(ids, self.only)
        return frozenset(one for one, is_inside in zip(ids, inside, strict=True) if not is_inside)

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """See `GraphView.nodes`: as many of the first as may be read."""
        return self._once(self._nodes, numbers, self._view.nodes)

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """See `GraphView.edges`: as many of the first as may be read."""
        return self._once(self._edges, handles, self._view.edges)

    def path_facts(self, paths: Sequence[FoundPath]) -> Iterator[tuple[FoundPath, list[NodeFacts], list[EdgeFacts]]]:
        """Each path with the facts of its nodes and edges; the first that may not be read whole ends it.

        Where the reads that are left suffice, all are read at once.
        """
        missing = dict.fromkeys(node for path in paths for node in path.nodes if node not in self._nodes)
        edges = dict.fromkeys(edge for path in paths for edge in path.edges if edge not in self._edges)
        if self._in_time() and len(missing) + len(edges) <= self.turn.reads_left:
            self.nodes(np.array(list(missing), np.int64))
            self.edges(np.array(list(edges), np.int64))
        for path in paths:
            if self.turn.expired():
                return
            found = self.nodes(np.array(path.nodes, np.int64)), self.edges(np.array(path.edges, np.int64))
            if len(found[0]) < len(path.nodes) or len(found[1]) < len(path.edges):
                return
            yield path, *found

    def passages(self, numbers: Numbers) -> list[Passage]:
        """See `GraphView.passages`: as many of the first as may be read."""
        return self._once(self._passages, numbers, self._view.passages)

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        """See `GraphView.sources`: as many of the first as may be read."""
        return self._keep(self._sources, document_ids, self._view.sources)

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`; a row that may not be read counts as one without a vector."""
        if self._in_time():
            return self._view.vectors(numbers, model=model)
        none, _ = self._view.vectors(numbers[:0], model=model)
        return np.zeros((len(numbers), none.shape[1]), np.float32), np.zeros(len(numbers), np.bool_)

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`; a node that may not be read counts as one without a vector."""
        if not len(numbers) or not self._in_time():
            return np.zeros(len(numbers), np.float32)
        return self._view.cosines(vector, numbers, model=model)

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        kind: Kind,
        model: str,
        limit: int,
        level: int | None = None,
        within: Numbers | None = None,
    ) -> Hits:
        """See `GraphView.nearest`; nothing where no time is left."""
        if not self._in_time():
            return _NO_HITS

        def find(most: int) -> Hits:
            return self._view.nearest(vector, kind=kind, model=model, limit=most, level=level, within=within)

        if level is None and within is None:
            key = vector.tobytes() + model.encode()
            return self._find_inside(lambda most: self._search(key, kind, most, find), limit)
        return self._find_inside(find, limit)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`; nothing where no time is left."""
        if not self._in_time():
            return _NO_HITS

        def find(most: int) -> Hits:
            return self._view.lexical(text, kind=kind, limit=most)

        return self._find_inside(lambda most: self._search(text, kind, most, find), limit)

    def holds_word(self, word: str) -> bool:
        """Whether a passage holds a word; of a graph that is in memory in part, as its build counted them."""
        if isinstance(self._view, PartView):
            return self._view.holds_word(word)
        return bool(len(self.lexical(word, kind=Kind.CHUNK, limit=1)))

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`; a node that may not be looked up has none."""
        return self._view.clusters_of(numbers) if self._in_time() else np.full(len(numbers), -1, np.int64)

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        """See `GraphView.bridges`; each is a document, so each is a read."""
        allowed = min(limit, self.turn.reads_left) if self._in_time() else 0
        found = self._view.bridges(clusters_from, clusters_to, limit=allowed) if allowed > 0 else []
        self.turn.reads(len(found))
        if allowed < limit and len(found) >= allowed:
            self.turn.trimmed(Reason.BUDGET_DOCS)
        return [one for one in found if self.is_inside(np.array(one.nodes, np.int64)).all()]

    def fitted(self) -> RankerState | None:
        """See `GraphView.fitted`; arrays in memory, nothing is counted."""
        return self._view.fitted()

    def match_names(self, text: str) -> NameMatches:
        """See `GraphView.match_names`; none where no time is left."""
        return self._names_inside(self._view.match_names(text)) if self._in_time() else _NO_NAMES

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """See `GraphView.match_each`; none where no time is left."""
        if not self._in_time():
            return [_NO_NAMES] * len(texts)
        return [self._names_inside(found) for found in self._view.match_each(texts)]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """See `GraphView.match_whole`; none where no time is left."""
        if not self._in_time():
            return [_NONE] * len(texts)
        return [numbers[self.is_inside(numbers)] for numbers in self._view.match_whole(texts)]

    def _once(
        self, known: dict[int, Document], asked: Numbers, read: Callable[[Numbers], list[Document]]
    ) -> list[Document]:
        """`_keep` for what goes by number."""
        wanted: list[int] = np.asarray(asked, np.int64).tolist()
        return self._keep(known, wanted, lambda missing: read(np.array(missing, np.int64)))

    def _keep(
        self, known: dict[Key, Document], wanted: Sequence[Key], read: Callable[[list[Key]], list[Document]]
    ) -> list[Document]:
        """As many of the first as the budget allows; only what this turn has not read yet is read."""
        missing = [key for key in dict.fromkeys(wanted) if key not in known]
        may_read = not missing or self.turn.reads_left <= 0 or self._in_time()
        allowed = missing[: self.turn.reads(len(missing))] if may_read else []
        if allowed:
            known.update(zip(allowed, read(allowed), strict=True))
        denied = {key for key in missing if key not in known}
        end = next((place for place, key in enumerate(wanted) if key in denied), len(wanted))
        return [known[key] for key in wanted[:end]]

    def _search(self, key: str | bytes, kind: Kind, limit: int, search: Callable[[int], Hits]) -> Hits:
        """The first `limit` hits of a search; one that this turn made already is cut, not made again."""
        depth, hits = self._searches.get((key, kind), (0, _NO_HITS))
        if depth < limit and (not depth or len(hits) == depth):
            depth = max(limit, SEARCH_DEPTH) if kind is Kind.CHUNK or isinstance(key, str) else limit
            hits = search(depth)
            self.turn.approximate_searches += hits.is_approximate
            self._searches[key, kind] = depth, hits
        return Hits(hits.numbers[:limit], hits.scores[:limit], hits.is_approximate)

    def _find_inside(self, find: Callable[[int], Hits], limit: int) -> Hits:
        """The best hits of a search; those of another domain are left out and further ones take their places."""
        if self.only is None:
            return find(limit)
        most = limit * _WIDER
        while True:
            hits = find(most)
            inside = self.is_inside(hits.numbers)
            if inside.sum() >= limit or len(hits) < most:
                return Hits(hits.numbers[inside][:limit], hits.scores[inside][:limit])
            most *= _WIDER

    def _names_inside(self, found: NameMatches) -> NameMatches:
        if self.only is None:
            return found
        kept = self.is_inside(found.numbers)
        return NameMatches(found.numbers[kept], found.starts[kept], found.ends[kept])

    def _in_time(self) -> bool:
        """Whether an answer of the view would come before the turn must end, were it as slow as the slowest one."""
        return self.turn.has_time(self._timed.slowest_ms)


_NONE = np.empty(0, np.int64)
_NO_EDGES = Expansion(
    _NONE, _NONE, _NONE, np.empty(0, np.uint8), np.empty(0, np.float32), np.empty(0, np.bool_), 0, capped=True
)
_NO_NAMES = NameMatches(_NONE, _NONE, _NONE)
_NO_HITS = Hits(_NONE, np.empty(0, np.float32))
