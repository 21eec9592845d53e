"""The graph as one turn reads it: inside its budget of reads, work and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hades.budget import Turn
from hades.ports.graph import (
    ALWAYS,
    KINDS,
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
from schemas.ids import Mask
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.core.types import FoundPath


def keep_targets(
    expansion: Expansion,
    is_kept: Flags,
    fanout: int | None,
) -> Expansion:
    """The edges whose target is kept, at most `fanout` of each node."""
    edge_rows = np.flatnonzero(is_kept)
    if fanout is not None and len(edge_rows):
        rows = expansion.row[edge_rows]
        first = np.searchsorted(rows, rows, side="left")
        edge_rows = edge_rows[np.arange(len(edge_rows)) - first < fanout]

    arrays = {}
    for name in ("row", "target", "edge", "type", "weight", "outbound"):
        arrays[name] = getattr(expansion, name)[edge_rows]

    return Expansion(
        **arrays,
        work=expansion.work,
        capped=expansion.capped,
    )


# Every read is requested from the turn first, and what the turn denies is not read. A read is a
# document or an edge materialised; what is scanned or compared to find it is work. A search that
# comes too late finds nothing. Answers may be shorter than requested: always the first part, so
# callers put the best first. A turn keeps what it has read: reading it again costs nothing.
_WIDER = 8  # how many times more are fetched where a question is limited to a domain
# Hits that a search in memory fetches at once; a turn needs fewer or more of the same later.
SEARCH_DEPTH = 256
Key = TypeVar("Key")
Document = TypeVar("Document")


class _TimedView:
    """Passes every call on to a view, and remembers how long the slowest one took."""

    def __init__(self, view: GraphView, clock: Callable[[], float]) -> None:
        self._view, self._clock = view, clock
        self.slowest_ms = 0.0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._view, name)
        if not callable(attribute):
            return attribute

        def timed(*arguments: Any, **options: Any) -> Any:
            began = self._clock()
            result = attribute(*arguments, **options)
            self.slowest_ms = max(self.slowest_ms, (self._clock() - began) * 1000)
            return result

        return timed


class MeteredView:
    """What of a `GraphView` a turn reads, against its account; nothing in retrieval reads any other
    way.
    """

    def __init__(
        self,
        view: GraphView,
        turn: Turn,
        only: DocumentFilter | None = None,
        mask: Mask = Mask(),
    ) -> None:
        """`only` and `mask` say what the question is limited to; nothing else is ever shown."""
        self.turn = turn
        self.only = _limit_to_past(view, only, mask)
        self._timed = _TimedView(view, turn.clock)
        self._view = cast(GraphView, self._timed)
        # These are free. Kernels that walk the adjacency read `turn.work_left` first and report to
        # `turn.worked`.
        self.info = self._view.info
        self.type_names = self._view.type_names
        self.ids = self._view.ids
        self.kinds = self._view.kinds
        self.adjacency = self._view.adjacency
        self._hidden_edges: Flags | None = None
        within = None if self.only is None else self.only.within

        if within is not None and not self.info.is_part:
            self.adjacency = partial(self._view.adjacency_within, within)
            self._hidden_edges = self._view.hidden_edges(within)

        self._nodes: dict[int, NodeFacts] = {}
        self._edges: dict[int, EdgeFacts] = {}
        self._passages: dict[int, Passage] = {}
        self._sources: dict[str, SourceFacts | None] = {}
        self._searches: dict[tuple[str | bytes, Kind], tuple[int, Hits]] = {}

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`; an id that may not be looked up has the number -1."""
        if self._in_time():
            return self._view.number(ids)
        return np.full(len(ids), -1, np.int64)

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
        if max_work is None:
            allowed = self.turn.work_left
        else:
            allowed = min(max_work, self.turn.work_left)

        if not self._in_time():
            return _NO_EDGES

        widened = fanout
        if fanout is not None and self.only is not None:
            widened = fanout * _WIDER

        expansion = self._view.expand(
            numbers,
            direction=direction,
            types=types,
            fanout=widened,
            mask=mask,
            max_work=max(0, allowed),
        )
        self.turn.count_work(expansion.work, capped=expansion.capped)
        if self.only is None:
            return expansion

        is_kept = self.is_inside(expansion.target)
        if self._hidden_edges is not None:
            is_kept &= ~self._hidden_edges[expansion.edge]

        return keep_targets(expansion, is_kept, fanout)

    def degree(
        self,
        numbers: Numbers,
        *,
        direction: Direction,
        types: Sequence[str] | None = None,
    ) -> Numbers:
        """See `GraphView.degree`; a node that may not be looked at counts 0."""
        if not self._in_time():
            return np.zeros(len(numbers), np.int64)
        return self._view.degree(
            numbers,
            direction=direction,
            types=types,
        )

    def is_inside(self, numbers: Numbers) -> Flags:
        """Whether each node belongs to what the question is limited to; one that may not be looked
        up does not.
        """
        if self.only is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        if not self._in_time():
            return np.zeros(len(numbers), np.bool_)

        return self._view.selects(np.asarray(numbers, np.int64), self.only)

    def may_show(self, numbers: Numbers) -> Flags:
        """Whether each node may stand in a path: it belongs, and no text that the caller may not
        see mentions it.
        """
        inside = self.is_inside(numbers)
        if self.hides_later:  # topics are named and summarised by what came later, too
            inside &= self.kinds(numbers) != KINDS.index(Kind.CLUSTER)
        if self.only is not None and self.only.within is not None and inside.any():
            inside &= self._view.selects_wholes(np.asarray(numbers, np.int64), self.only.within)

        return inside

    @property
    def hides_later(self) -> bool:
        """Whether the question stands at a moment after which texts of the graph were written."""
        return self.only is not None and self.only.as_of is not None

    def shows_undated(self, numbers: Numbers) -> bool:
        """Whether some of these texts have no date, so that they may be later than any moment."""
        return bool((self._view.dates(numbers) == ALWAYS).any())

    def outside_documents(self, ids: Sequence[str]) -> frozenset[str]:
        """The documents among these that the question is not limited to."""
        if self.only is None or not ids:
            return frozenset()

        inside = self._view.selects_documents(ids, self.only)
        pairs = zip(ids, inside, strict=True)
        return frozenset(document_id for document_id, is_inside in pairs if not is_inside)

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """See `GraphView.nodes`: as many of the first as may be read."""
        return self._read_numbers(
            self._nodes,
            numbers,
            self._view.nodes,
        )

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """See `GraphView.edges`: as many of the first as may be read."""
        return self._read_numbers(
            self._edges,
            handles,
            self._view.edges,
        )

    def path_facts(
        self, paths: Sequence[FoundPath]
    ) -> Iterator[tuple[FoundPath, list[NodeFacts], list[EdgeFacts]]]:
        """Each path with the facts of its nodes and edges; the first that may not be read whole
        ends it.

        Where the reads that are left suffice, all are read at once.
        """
        path_nodes = chain.from_iterable(path.nodes for path in paths)
        path_edges = chain.from_iterable(path.edges for path in paths)

        nodes = []
        for node in dict.fromkeys(path_nodes):
            if node not in self._nodes:
                nodes.append(node)

        edges = []
        for edge in dict.fromkeys(path_edges):
            if edge not in self._edges:
                edges.append(edge)

        if self._in_time() and len(nodes) + len(edges) <= self.turn.reads_left:
            self.nodes(np.array(nodes, np.int64))
            self.edges(np.array(edges, np.int64))

        for path in paths:
            if self.turn.expired():
                return

            node_facts = self.nodes(np.array(path.nodes, np.int64))
            edge_facts = self.edges(np.array(path.edges, np.int64))
            if len(node_facts) < len(path.nodes) or len(edge_facts) < len(path.edges):
                return

            yield path, node_facts, edge_facts

    def passages(self, numbers: Numbers) -> list[Passage]:
        """See `GraphView.passages`: as many of the first as may be read."""
        return self._read_numbers(
            self._passages,
            numbers,
            self._view.passages,
        )

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        """See `GraphView.sources`: as many of the first as may be read."""
        return self._read_keys(
            self._sources,
            document_ids,
            self._view.sources,
        )

    def vectors(
        self,
        numbers: Numbers,
        *,
        model: str,
    ) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`; a row that may not be read counts as one without a vector."""
        if self._in_time():
            return self._view.vectors(numbers, model=model)

        empty, _ = self._view.vectors(numbers[:0], model=model)
        vectors = np.zeros((len(numbers), empty.shape[1]), np.float32)
        return vectors, np.zeros(len(numbers), np.bool_)

    def cosines(
        self,
        vector: NDArray[np.float32],
        numbers: Numbers,
        *,
        model: str,
    ) -> Weights:
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

        def find(depth: int) -> Hits:
            return self._view.nearest(
                vector,
                kind=kind,
                model=model,
                limit=depth,
                level=level,
                within=within,
            )

        if level is None and within is None:
            key = vector.tobytes() + model.encode()
            return self._find_inside(lambda depth: self._search(key, kind, depth, find), limit)

        return self._find_inside(find, limit)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`; nothing where no time is left."""
        if not self._in_time():
            return _NO_HITS

        def find(depth: int) -> Hits:
            return self._view.lexical(
                text,
                kind=kind,
                limit=depth,
            )

        return self._find_inside(lambda depth: self._search(text, kind, depth, find), limit)

    def holds_word(self, word: str) -> bool:
        """Whether a passage holds a word; of a graph that is in memory in part, as its build
        counted them.
        """
        if self.info.is_part:
            return cast(PartView, self._view).holds_word(word)
        return bool(
            len(
                self.lexical(
                    word,
                    kind=Kind.CHUNK,
                    limit=1,
                )
            )
        )

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`; a node that may not be looked up has none."""
        if not self._in_time():
            return np.full(len(numbers), -1, np.int64)
        return self._view.clusters_of(numbers)

    def bridges(
        self,
        clusters_from: Numbers,
        clusters_to: Numbers | None = None,
        *,
        limit: int,
    ) -> list[BridgePath]:
        """See `GraphView.bridges`; each is a document, so each is a read."""
        if self._in_time():
            allowed = min(limit, self.turn.reads_left)
        else:
            allowed = 0

        bridges: list[BridgePath] = []
        if allowed > 0:
            bridges = self._view.bridges(
                clusters_from,
                clusters_to,
                limit=allowed,
            )

        self.turn.grant_reads(len(bridges))
        if allowed < limit and len(bridges) >= allowed:
            self.turn.trimmed(Reason.BUDGET_DOCS)

        return [
            bridge for bridge in bridges if self.is_inside(np.array(bridge.nodes, np.int64)).all()
        ]

    def fitted(self) -> RankerState | None:
        """See `GraphView.fitted`; arrays in memory, nothing is counted."""
        return self._view.fitted()

    def match_names(self, text: str) -> NameMatches:
        """See `GraphView.match_names`; none where no time is left."""
        if self._in_time():
            return self._names_inside(self._view.match_names(text))
        return _NO_NAMES

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """See `GraphView.match_each`; none where no time is left."""
        if not self._in_time():
            return [_NO_NAMES] * len(texts)
        return [self._names_inside(matches) for matches in self._view.match_each(texts)]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """See `GraphView.match_whole`; none where no time is left."""
        if not self._in_time():
            return [_NONE] * len(texts)
        return [numbers[self.is_inside(numbers)] for numbers in self._view.match_whole(texts)]

    def _read_numbers(
        self,
        known: dict[int, Document],
        numbers: Numbers,
        read: Callable[[Numbers], list[Document]],
    ) -> list[Document]:
        """`_read_keys` for what goes by number."""
        keys: list[int] = np.asarray(numbers, np.int64).tolist()
        return self._read_keys(
            known,
            keys,
            lambda missing: read(np.array(missing, np.int64)),
        )

    def _read_keys(
        self,
        known: dict[Key, Document],
        keys: Sequence[Key],
        read: Callable[[list[Key]], list[Document]],
    ) -> list[Document]:
        """As many of the first as the budget allows; only what this turn has not read yet is
        read.
        """
        missing = []
        for key in dict.fromkeys(keys):
            if key not in known:
                missing.append(key)

        may_read = not missing or self.turn.reads_left <= 0 or self._in_time()
        if may_read:
            allowed = missing[: self.turn.grant_reads(len(missing))]
        else:
            allowed = []

        if allowed:
            known.update(zip(allowed, read(allowed), strict=True))

        return [known[key] for key in takewhile(known.__contains__, keys)]

    def _search(
        self,
        key: str | bytes,
        kind: Kind,
        limit: int,
        search: Callable[[int], Hits],
    ) -> Hits:
        """The first `limit` hits of a search; one that this turn made already is cut, not made
        again.
        """
        depth, hits = self._searches.get((key, kind), (0, _NO_HITS))
        is_exhausted = depth > 0 and len(hits) < depth

        if depth < limit and not is_exhausted:
            goes_deeper = kind is Kind.CHUNK or isinstance(key, str)
            depth = max(limit, SEARCH_DEPTH) if goes_deeper else limit
            hits = search(depth)
            self.turn.approximate_searches += hits.is_approximate
            self._searches[key, kind] = depth, hits

        return Hits(
            hits.numbers[:limit],
            hits.scores[:limit],
            hits.is_approximate,
        )

    def _find_inside(self, find: Callable[[int], Hits], limit: int) -> Hits:
        """The best hits of a search; those of another domain are left out and further ones take
        their places.
        """
        if self.only is None:
            return find(limit)

        depth = limit * _WIDER
        while True:
            hits = find(depth)
            inside = self.is_inside(hits.numbers)
            if inside.sum() >= limit or len(hits) < depth:
                return Hits(hits.numbers[inside][:limit], hits.scores[inside][:limit])

            depth *= _WIDER

    def _names_inside(self, matches: NameMatches) -> NameMatches:
        if self.only is None:
            return matches

        inside = self.is_inside(matches.numbers)
        return NameMatches(
            matches.numbers[inside],
            matches.starts[inside],
            matches.ends[inside],
        )

    def _in_time(self) -> bool:
        """Whether an answer of the view would come before the turn must end, were it as slow as the
        slowest one.
        """
        return self.turn.has_time(self._timed.slowest_ms)


def _limit_to_past(
    view: GraphView,
    only: DocumentFilter | None,
    mask: Mask,
) -> DocumentFilter | None:
    """The filter of a question that stands at a moment: what is later does not fit. Unchanged where
    nothing is later.
    """
    if mask.moment is None or not view.has_later(mask.moment):
        return only
    return replace(only or DocumentFilter(), as_of=mask.moment)


_NONE = np.empty(0, np.int64)
_NO_EDGES = Expansion(
    row=_NONE,
    target=_NONE,
    edge=_NONE,
    type=np.empty(0, np.uint8),
    weight=np.empty(0, np.float32),
    outbound=np.empty(0, np.bool_),
    work=0,
    capped=True,
)
_NO_NAMES = NameMatches(_NONE, _NONE, _NONE)
_NO_HITS = Hits(_NONE, np.empty(0, np.float32))
