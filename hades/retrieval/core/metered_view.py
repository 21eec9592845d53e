"""Every read asked for first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import (
    Adjacency,
    BridgePath,
    Codes,
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
    ViewInfo,
    Weights,
)
from hades.ports.view import BatchView, GraphView
from hades.telemetry.turn import Turn
from hades.text.words import words
from schemas.ids import Mask
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.core.types import FoundPath


# What stays of an answer of the view: edges inside a domain, names that are a whole text.


def keep_targets(found: Expansion, is_kept: Flags, fanout: int | None) -> Expansion:
    """The edges whose target is kept, at most `fanout` of each asked node."""
    kept = np.flatnonzero(is_kept)
    if fanout is not None and len(kept):
        rows = found.row[kept]
        first = np.searchsorted(rows, rows, side="left")
        kept = kept[np.arange(len(kept)) - first < fanout]
    return Expansion(
        found.row[kept],
        found.target[kept],
        found.edge[kept],
        found.type[kept],
        found.weight[kept],
        found.outbound[kept],
        found.work,
        found.capped,
    )


def keep_whole(text: str, found: NameMatches) -> Numbers:
    """The entities whose name is the whole text, word for word."""
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    whole: Numbers = found.numbers[[words(text[start:end]) == words(text) for start, end in spans]]
    return whole


# The view through the meter: every read is asked for first, and what is denied is not read. A read is a document or
# an edge materialised; what is scanned or compared to find it is work. On a view over a network
# (`ViewInfo.is_local` says which it is) rows that travel to be compared are work too, and the questions of a turn
# are bounded: a search that comes too late finds nothing, and some questions are kept for what is handed over.
# Answers may be shorter than what was asked: always the first of it, so whoever asks puts the best first. What a
# turn has read once it keeps: asking again costs nothing.


ROUND_TRIPS = 12  # questions of one turn to a view over a network
_WIDER = 8  # how many more are looked at where a question is limited to a domain
SEARCH_DEPTH = 256  # hits that a search in memory looks for at once; a turn asks for fewer or more of the same later
KEPT_TRIPS = 4  # of these for nodes, edges, passages and bridges that are handed over
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
    """A `GraphView` that spends a turn's account; nothing in retrieval reads any other way."""

    def __init__(self, view: GraphView, turn: Turn, only: DocumentFilter | None = None) -> None:
        self.turn = turn
        self.only = only
        self._is_local = view.info.is_local
        self._timed = _TimedView(view, turn.clock)
        self._batch_view = cast(BatchView, self._timed) if self._is_local and isinstance(view, BatchView) else None
        self._view = cast(GraphView, self._timed)
        self._nodes: dict[int, NodeFacts] = {}
        self._edges: dict[int, EdgeFacts] = {}
        self._passages: dict[int, Passage] = {}
        self._sources: dict[str, SourceFacts | None] = {}
        self._searches: dict[tuple[str | bytes, Kind], tuple[int, Hits]] = {}

    @property
    def is_remote(self) -> bool:
        """Whether what is read travels over a network."""
        return not self._is_local

    @property
    def info(self) -> ViewInfo:
        """See `GraphView.info`; free."""
        return self._view.info

    @property
    def type_names(self) -> tuple[str, ...]:
        """See `GraphView.type_names`; free."""
        return self._view.type_names

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`; an id that may not be looked up has the number -1."""
        allowed = self._travels(len(ids))
        numbers = np.full(len(ids), -1, np.int64)
        if allowed:
            numbers[:allowed] = self._view.number(ids[:allowed])
        return numbers

    def ids(self, numbers: Numbers) -> list[str]:
        """See `GraphView.ids`; free."""
        return self._view.ids(numbers)

    def kinds(self, numbers: Numbers) -> Codes:
        """See `GraphView.kinds`; free."""
        return self._view.kinds(numbers)

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
        if not self._may_ask():
            allowed = 0  # asks nothing and says that it was capped
        wanted = fanout if fanout is None or self.only is None else fanout * _WIDER
        found = self._view.expand(
            numbers, direction=direction, types=types, fanout=wanted, mask=mask, max_work=max(0, allowed)
        )
        self.turn.worked(found.work, capped=found.capped)
        return found if self.only is None else keep_targets(found, self.is_inside(found.target), fanout)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`; a node that may not be looked at counts 0."""
        allowed = self._travels(len(numbers))
        degrees = np.zeros(len(numbers), np.int64)
        if allowed:
            degrees[:allowed] = self._view.degree(numbers[:allowed], direction=direction, types=types)
        return degrees

    def adjacency(self) -> Adjacency | None:
        """See `GraphView.adjacency`. Kernels that walk it ask `turn.work_left` first and report to `turn.worked`."""
        return self._view.adjacency()

    def file_chunks(self) -> Numbers:
        """See `GraphView.file_chunks`."""
        return self._view.file_chunks()

    def commit_chunks(self) -> Numbers:
        """See `GraphView.commit_chunks`."""
        return self._view.commit_chunks()

    def domains(self) -> tuple[str, ...]:
        """See `GraphView.domains`; free."""
        return self._view.domains()

    def is_inside(self, numbers: Numbers) -> Flags:
        """Whether each node belongs to what the question is limited to; one that may not be looked up does not."""
        if self.only is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        return self.selects(numbers, self.only)

    def selects(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """See `GraphView.selects`: of as many of the first as may be looked up; the others do not belong."""
        allowed = self._travels(len(numbers))
        inside = np.zeros(len(numbers), np.bool_)
        if allowed:
            inside[:allowed] = self._view.selects(np.asarray(numbers, np.int64)[:allowed], only)
        return inside

    def outside_documents(self, ids: Sequence[str]) -> frozenset[str]:
        """The documents among these that the question is not limited to; all of them where nobody may look."""
        if self.only is None or not ids:
            return frozenset()
        inside = self.selects_documents(ids, self.only)
        return frozenset(one for one, is_inside in zip(ids, inside, strict=True) if not is_inside)

    def selects_documents(self, ids: Sequence[str], only: DocumentFilter) -> list[bool]:
        """See `GraphView.selects_documents`: none belongs where nobody may look."""
        return self._view.selects_documents(ids, only) if self._may_ask() else [False] * len(ids)

    def count_outside(self, only: DocumentFilter) -> int | None:
        """See `GraphView.count_outside`; free."""
        return self._view.count_outside(only)

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """See `GraphView.nodes`: as many of the first as may be read."""
        return self._once(self._nodes, numbers, self._view.nodes)

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """See `GraphView.edges`: as many of the first as may be read."""
        return self._once(self._edges, handles, self._view.edges)

    def fetch_facts(self, paths: Sequence[FoundPath]) -> None:
        """Read what these paths will be told with at once, where the reads that are left suffice."""
        nodes = dict.fromkeys(node for path in paths for node in path.nodes if node not in self._nodes)
        edges = dict.fromkeys(edge for path in paths for edge in path.edges if edge not in self._edges)
        if not self._in_time():
            return
        if self._is_local and len(nodes) + len(edges) <= self.turn.reads_left:
            self.nodes(np.array(list(nodes), np.int64))
            self.edges(np.array(list(edges), np.int64))

    def passages(self, numbers: Numbers) -> list[Passage]:
        """See `GraphView.passages`: as many of the first as may be read."""
        return self._once(self._passages, numbers, self._view.passages)

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        """See `GraphView.sources`: as many of the first as may be read."""
        return self._keep(self._sources, document_ids, self._view.sources)

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`; a row that may not be fetched counts as one without a vector."""
        allowed = self._travels(len(numbers))
        found, have = self._view.vectors(numbers[:allowed], model=model)
        if allowed == len(numbers):
            return found, have
        values, there = np.zeros((len(numbers), found.shape[1]), np.float32), np.zeros(len(numbers), np.bool_)
        values[:allowed], there[:allowed] = found, have
        return values, there

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`; a node that may not be fetched counts as one without a vector."""
        allowed = self._travels(len(numbers))
        found = np.zeros(len(numbers), np.float32)
        if allowed:
            found[:allowed] = self._view.cosines(vector, numbers[:allowed], model=model)
        return found

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
        """See `GraphView.nearest`; over a network each hit is work."""
        allowed = self._may_find(limit)
        if not allowed:
            return _NO_HITS

        def find(most: int) -> Hits:
            return self._view.nearest(vector, kind=kind, model=model, limit=most, level=level, within=within)

        if level is None and within is None:
            key = vector.tobytes() + model.encode()
            return self._find_inside(lambda most: self._search(key, kind, most, find), limit, allowed)
        return self._find_inside(find, limit, allowed)

    def search_together(self, vectors: Sequence[NDArray[np.float32]], *, kind: Kind, model: str, limit: int) -> None:
        """Let one scan find what `nearest` will be asked for each of these vectors, where that saves scans."""
        if len(vectors) < 2 or self._batch_view is None or not self._in_time():
            return
        depth = max(limit, SEARCH_DEPTH) if kind is Kind.CHUNK else limit  # later steps ask for more passages only
        found = self._batch_view.nearest_each(vectors, kind=kind, model=model, limit=depth)
        for vector, hits in zip(vectors, found, strict=True):
            self.turn.approximate_searches += hits.is_approximate
            self._searches[vector.tobytes() + model.encode(), kind] = depth, hits

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`; over a network each hit is work."""
        allowed = self._may_find(limit)
        if not allowed:
            return _NO_HITS

        def find(most: int) -> Hits:
            return self._view.lexical(text, kind=kind, limit=most)

        return self._find_inside(lambda most: self._search(text, kind, most, find), limit, allowed)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`; a node that may not be looked up has none."""
        allowed = self._travels(len(numbers))
        clusters = np.full(len(numbers), -1, np.int64)
        if allowed:
            clusters[:allowed] = self._view.clusters_of(numbers[:allowed])
        return clusters

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        """See `GraphView.bridges`; each is a document, so each is a read."""
        allowed = min(limit, self.turn.reads_left) if self._in_time() and self._may_ask() else 0
        found = self._view.bridges(clusters_from, clusters_to, limit=allowed) if allowed > 0 else []
        self.turn.reads(len(found))
        if allowed < limit and len(found) >= allowed:
            self.turn.trimmed(Reason.BUDGET_DOCS)
        return [one for one in found if self.is_inside(np.array(one.nodes, np.int64)).all()]

    def fitted(self) -> RankerState | None:
        """See `GraphView.fitted`; arrays in memory, nothing is counted."""
        return self._view.fitted()

    def match_names(self, text: str, *, limit: int | None = None) -> NameMatches:
        """See `GraphView.match_names`; over a network each row that travels is work."""
        if self._is_local and self._in_time():
            return self._names_inside(self._view.match_names(text, limit=limit))
        left = self._may_find(self.turn.work_left if limit is None else limit)
        if not left:
            return _NO_NAMES
        found = self._view.match_names(text, limit=left)
        self.turn.worked(found.fetched, capped=limit is None and found.fetched == left)
        return self._names_inside(found)

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """What `match_names` finds in each text; in memory one look-up serves all of them."""
        if self._batch_view is not None and self._in_time():
            return [self._names_inside(found) for found in self._batch_view.match_each(texts)]
        return [self.match_names(text) for text in texts]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """For each text the entities whose name is the whole text, word for word."""
        if self._batch_view is not None and self._in_time():
            return [numbers[self.is_inside(numbers)] for numbers in self._batch_view.match_whole(texts)]
        return [keep_whole(text, found) for text, found in zip(texts, self.match_each(texts), strict=True)]

    def close(self) -> None:
        """See `GraphView.close`. The view belongs to whoever opened it."""

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
        may_read = not missing or self.turn.reads_left <= 0 or (self._in_time() and self._may_ask(kept=True))
        allowed = missing[: self.turn.reads(len(missing))] if may_read else []
        if allowed:
            known.update(zip(allowed, read(allowed), strict=True))
        denied = {key for key in missing if key not in known}
        end = next((place for place, key in enumerate(wanted) if key in denied), len(wanted))
        return [known[key] for key in wanted[:end]]

    def _search(self, key: str | bytes, kind: Kind, limit: int, search: Callable[[int], Hits]) -> Hits:
        """The first `limit` hits of a search; in memory one that this turn made already is cut, not made again."""
        if not self._is_local:
            return search(limit)
        depth, hits = self._searches.get((key, kind), (0, _NO_HITS))
        if depth < limit and (not depth or len(hits) == depth):
            depth = max(limit, SEARCH_DEPTH) if kind is Kind.CHUNK or isinstance(key, str) else limit
            hits = search(depth)
            self.turn.approximate_searches += hits.is_approximate
            self._searches[key, kind] = depth, hits
        return Hits(hits.numbers[:limit], hits.scores[:limit], hits.is_approximate)

    def _travels(self, wanted: int) -> int:
        """How many of these may be fetched: all of them where nothing travels."""
        if not wanted or not self._in_time():
            return 0
        if self._is_local:
            return wanted
        allowed = min(wanted, self.turn.work_left) if self._may_ask() else 0
        self.turn.worked(max(0, allowed), capped=allowed < wanted)
        return max(0, allowed)

    def _may_find(self, limit: int) -> int:
        """How many hits a search may bring back; the work is counted once it is known how many there are."""
        if not self._in_time():
            return 0
        if self._is_local:
            return limit
        if self.turn.work_left <= 0:
            self.turn.trimmed(Reason.CAP_EXCEEDED)
            return 0
        return min(limit, self.turn.work_left) if self._may_ask() else 0

    def _find_inside(self, find: Callable[[int], Hits], limit: int, allowed: int) -> Hits:
        """The best hits of a search; those of another domain are left out and further ones take their places."""
        if self.only is None:
            return self._count(find(allowed), limit, allowed)
        most = allowed * _WIDER
        while True:
            hits = self._count(find(most), most, most)
            inside = self.is_inside(hits.numbers)
            if inside.sum() >= limit or len(hits) < most or not self._is_local:
                return Hits(hits.numbers[inside][:limit], hits.scores[inside][:limit])
            most *= _WIDER

    def _names_inside(self, found: NameMatches) -> NameMatches:
        if self.only is None:
            return found
        kept = self.is_inside(found.numbers)
        return NameMatches(found.numbers[kept], found.starts[kept], found.ends[kept], found.fetched)

    def _count(self, hits: Hits, limit: int, allowed: int) -> Hits:
        if not self._is_local:
            self.turn.worked(len(hits), capped=allowed < limit and len(hits) == allowed)
        return hits

    def _in_time(self) -> bool:
        """Whether an answer of the view would come before the turn must end, were it as slow as the slowest one."""
        return self.turn.has_time(self._timed.slowest_ms)

    def _may_ask(self, *, kept: bool = False) -> bool:
        """Whether one more question may go over the network; it counts from now on."""
        if self._is_local:
            return True
        if self.turn.round_trips >= (ROUND_TRIPS if kept else ROUND_TRIPS - KEPT_TRIPS):
            self.turn.trimmed(Reason.CAP_EXCEEDED)
            return False
        self.turn.round_trips += 1
        return True


_NONE = np.empty(0, np.int64)
_NO_EDGES = Expansion(
    _NONE, _NONE, _NONE, np.empty(0, np.uint8), np.empty(0, np.float32), np.empty(0, np.bool_), 0, capped=True
)
_NO_NAMES = NameMatches(_NONE, _NONE, _NONE)
_NO_HITS = Hits(_NONE, np.empty(0, np.float32))
