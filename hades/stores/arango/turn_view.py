"""What one turn fetched and prefetches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aql import load
from hades.ports import graph as port
from hades.ports.graph import KINDS, Expansion, Flags, Hits, Kind, NameMatches, Numbers, Weights
from hades.ports.store import Direction
from hades.ports.view import GraphView, WriteUnderWay
from hades.snapshot.facts import normalise, outermost, runs_of_words
from hades.snapshot.vectors import unit_vector
from hades.stores.arango import view as facts
from hades.stores.arango.read import names_in, place_names
from hades.stores.arango.view import ROW_EDGES, LiveGraph, NodeRow, join_rows, split_rows
from hades.text.words import with_identifiers
from schemas.catalogue import ANALYZER, NAME_ANALYZER, collection_named
from schemas.ids import Mask

# Questions of a turn that bring more than is asked for now, so that fewer are asked.


LONGEST_SOURCE = 8_000  # characters of a document that travels with its passages
MENTIONS = 64  # entities of a passage whose names travel with it
_SEARCHED = {"entities": Kind.ENTITY, "funcs": Kind.FUNC, "chunks": Kind.CHUNK}


@dataclass(frozen=True)
class TextHits:
    """Entities that a text names with what is known of them, and nodes that share words with it."""

    names: NameMatches
    facts: dict[int, port.NodeFacts]
    words: dict[Kind, Hits]
    writing: bool


@dataclass(frozen=True)
class FetchedPassage:
    """A passage with its vector, its document where that is short, and the names of the entities it mentions."""

    passage: port.Passage
    vector: list[float] | None
    source: port.SourceFacts | None
    named: list[tuple[int, list[str]]]
    writing: bool


def find_text(live: LiveGraph, text: str, limit: int) -> TextHits:
    """Search names and words of a text in one question."""
    binds = {
        "names": names_in(text),
        "name_analyzer": NAME_ANALYZER,
        "columns": facts.NODE_COLUMNS,
        "text": with_identifiers(text),
        "analyzer": ANALYZER,
        "wait": live.store.wait_for_view,
        "limit": limit,
    }
    found = live.ask(load("view/find_text"), binds, "searching names and words")[0]
    places = place_names(text, [(one, spelled) for one, spelled, _ in found["named"]])
    numbers = live.node_ids.add([one for _, _, one in places])
    spans = outermost([start for start, _, _ in places], [end for _, end, _ in places], range(len(places)))
    held = {int(live.node_ids.add([one])[0]): facts.node(one, fields) for one, _, fields in found["named"]}
    names = NameMatches(numbers[spans.numbers], spans.starts, spans.ends, fetched=len(found["named"]))
    words = {kind: _hits(live, kind, found[name]) for name, kind in _SEARCHED.items()}
    return TextHits(names, held, words, found["writing"])


def read_passages(live: LiveGraph, numbers: Numbers, model: str) -> list[FetchedPassage]:
    """Read passages with what is asked of them next."""
    ids = live.ids(numbers)
    live.check_readable(ids)
    binds = {
        "ids": ids,
        "columns": facts.PASSAGE_COLUMNS,
        "model": model,
        "fields": vector_fields(),
        "longest": LONGEST_SOURCE,
        "mentions": MENTIONS,
    }
    found = live.ask(load("view/read_passages"), binds, "reading passages")
    return [
        FetchedPassage(
            facts.passage(one, row),
            row["vector"],
            None if row["source"] is None else facts.source(row["source"]),
            _named(live, row["named"]),
            row["writing"],
        )
        for one, row in zip(ids, found, strict=True)
    ]


def read_facts(
    live: LiveGraph, nodes: Sequence[int], edges: Sequence[int]
) -> tuple[list[port.NodeFacts], list[port.EdgeFacts], bool]:
    """Read nodes and edges in one question; with whether a write of several units was under way."""
    node_ids = live.node_ids.names(np.array(nodes, np.int64))
    edge_ids = live.edge_ids.names(np.array(edges, np.int64))
    binds = {
        "nodes": node_ids,
        "node_columns": facts.NODE_COLUMNS,
        "edges": edge_ids,
        "edge_columns": facts.EDGE_COLUMNS,
    }
    found = live.ask(load("view/list_facts"), binds, "reading paths")[0]
    return (
        [facts.node(one, row) for one, row in zip(node_ids, found["nodes"], strict=True)],
        [facts.edge(one, row) for one, row in zip(edge_ids, found["edges"], strict=True)],
        found["writing"],
    )


def vector_fields() -> dict[str, str]:
    """The column of the vector in each collection of nodes that has one."""
    declared = {kind.value: collection_named(kind.value) for kind in KINDS}
    return {name: one.vector_field for name, one in declared.items() if one is not None and one.vector_field}


def _named(live: LiveGraph, rows: Sequence[Any]) -> list[tuple[int, list[str]]]:
    numbers = live.node_ids.add([one for one, _ in rows]).tolist()
    return [(number, [name for name in names if name]) for number, (_, names) in zip(numbers, rows, strict=True)]


def _hits(live: LiveGraph, kind: Kind, rows: Sequence[Any]) -> Hits:
    numbers = live.node_ids.add([f"{kind}/{key}" for key, _ in rows])
    return Hits(numbers, np.array([score for _, score in rows], np.float32))


# The live graph for one turn: what was fetched is kept, and what is likely asked next comes along. A turn of a
# snapshot makes hundreds of small reads; over a network each would be a question to the server. Here names and
# words of a text are searched in one question, edges are fetched for many nodes at once together with those of the
# best hits, and passages bring their vectors, their short sources and the names they mention. Every question is
# asked for first: `may_ask` counts it, and where it refuses, less is found.


MayAsk = Callable[[bool], bool]
_HITS = 256  # of one search; what a turn asks of it later it then has
_HINTS = 96  # nodes whose edges come along with those of others
_NEAR_HINTS, _WORD_HINTS = 50, 16
_EDGES = 30_000  # of one question


@dataclass(frozen=True)
class _TextHits:
    names: NameMatches
    words: dict[Kind, Hits]


class ArangoTurnView(LiveGraph):
    """A `GraphView` that asks the server as rarely as it can; it lasts one turn."""

    def __init__(self, live: LiveGraph, may_ask: MayAsk) -> None:
        super().__init__(live.store, live.open_whole)
        self.node_ids, self.edge_ids, self.slow_until = live.node_ids, live.edge_ids, live.slow_until
        self._may_ask = may_ask
        self._texts: dict[str, _TextHits] = {}
        self._near: dict[tuple[bytes, Kind], tuple[int, Hits]] = {}
        self._rows: dict[int, NodeRow] = {}
        self._hints: dict[int, None] = {}
        self._names: dict[str, set[int]] = {}
        self._nodes: dict[int, port.NodeFacts] = {}
        self._edges: dict[int, port.EdgeFacts] = {}
        self._passages: dict[int, port.Passage] = {}
        self._sources: dict[str, port.SourceFacts | None] = {}
        self._vectors: dict[int, list[float]] = {}
        self._domains: dict[tuple[int, str], bool] = {}
        self._model = ""
        self.saw_write = False
        self.info = live.info

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`."""
        known = self.node_ids.find(ids)
        if (known >= 0).all() or not self._may_ask(False):
            return known
        return super().number(ids)

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
        """See `GraphView.expand`: of a node its `ROW_EDGES` heaviest edges. A past moment is asked of the server."""
        if not mask.is_open:
            allowed = max_work if self._may_ask(False) else 0
            return super().expand(numbers, direction=direction, types=types, fanout=fanout, mask=mask, max_work=allowed)
        nodes = np.asarray(numbers, np.int64).tolist()
        wanted = self.check_types(types)
        codes = None if wanted is None else np.array([self.codes[name] for name in wanted], np.uint8)
        refused = not self._fetch_rows(nodes)
        places = [place for place, node in enumerate(nodes) if node in self._rows]
        rows = [self._rows[nodes[place]].select(nodes[place], direction, codes, fanout) for place in places]
        found = join_rows(rows, places, max_work)
        return replace(found, capped=found.capped or refused)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`; counted to `ROW_EDGES`."""
        found = self.expand(numbers, direction=direction, types=types)
        return np.bincount(found.row, minlength=len(numbers)).astype(np.int64)

    def in_domain(self, numbers: Numbers, domain: str) -> Flags:
        """See `GraphView.in_domain`; a node that may not be looked up does not belong."""
        nodes = np.asarray(numbers, np.int64).tolist()
        missing = [node for node in dict.fromkeys(nodes) if (node, domain) not in self._domains]
        if missing and self._may_ask(False):
            inside = super().in_domain(np.array(missing, np.int64), domain).tolist()
            self._domains.update(zip(((node, domain) for node in missing), inside, strict=True))
        return np.array([self._domains.get((node, domain), False) for node in nodes], np.bool_)

    def nodes(self, numbers: Numbers) -> list[port.NodeFacts]:
        """See `GraphView.nodes`: as many of the first as may be fetched."""
        return _first(self._nodes, numbers, lambda missing: self._fetch_facts(missing, []))

    def edges(self, handles: Numbers) -> list[port.EdgeFacts]:
        """See `GraphView.edges`: as many of the first as may be fetched."""
        return _first(self._edges, handles, lambda missing: self._fetch_facts([], missing))

    def fetch_facts(self, nodes: Iterable[int], edges: Iterable[int]) -> None:
        """Fetch what paths will be told with in one question; reading it later asks nothing."""
        wanted = [node for node in dict.fromkeys(nodes) if node not in self._nodes]
        handles = [edge for edge in dict.fromkeys(edges) if edge not in self._edges]
        if wanted or handles:
            self._fetch_facts(wanted, handles)

    def passages(self, numbers: Numbers) -> list[port.Passage]:
        """See `GraphView.passages`: as many of the first as may be fetched."""
        return _first(self._passages, numbers, self._fetch_passages)

    def sources(self, document_ids: Sequence[str]) -> list[port.SourceFacts | None]:
        """See `GraphView.sources`: as many of the first as may be fetched."""
        missing = [one for one in dict.fromkeys(document_ids) if one not in self._sources]
        if missing and self._may_ask(True):
            self._sources.update(zip(missing, super().sources(missing), strict=True))
        known = [one in self._sources for one in document_ids]
        return [self._sources[one] for one in document_ids[: known.index(False) if False in known else None]]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`; only of passages that were read, others count as without."""
        nodes = np.asarray(numbers, np.int64).tolist()
        held = [self._vectors.get(node) if model == self._model else None for node in nodes]
        there = np.array([one is not None for one in held], np.bool_)
        dimension = next((len(one) for one in held if one is not None), 1)
        values = np.zeros((len(nodes), dimension), np.float32)
        for place in np.flatnonzero(there).tolist():
            values[place] = held[place]
        return values, there

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`; of passages by the search that was made, its last hit standing for the others."""
        near = self._near.get((_bytes(vector), Kind.CHUNK))
        codes = self.kinds(numbers) if len(numbers) else np.empty(0, np.uint8)
        if near is not None and (codes == port.KINDS.index(Kind.CHUNK)).all():
            scores = dict(zip(near[1].numbers.tolist(), near[1].scores.tolist(), strict=True))
            least = min(scores.values(), default=0.0) if len(scores) >= near[0] else 0.0
            return np.array([scores.get(node, least) for node in np.asarray(numbers).tolist()], np.float32)
        if not len(numbers) or not self._may_ask(False):
            return np.zeros(len(numbers), np.float32)
        return super().cosines(vector, numbers, model=model)

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
        """See `GraphView.nearest`."""
        self._model = model
        if kind is Kind.ENTITY and self._names_enough and level is None and within is None:
            return _NO_HITS
        if level is not None or within is not None:
            if not self._may_ask(False):
                return _NO_HITS
            return super().nearest(vector, kind=kind, model=model, limit=limit, level=level, within=within)
        held = self._near.get((_bytes(vector), kind))
        if held is None or (held[0] < limit and len(held[1]) >= held[0]):
            if not self._may_ask(False):
                return _NO_HITS if held is None else held[1]
            most = max(limit, _HITS if kind is Kind.CHUNK else 0)
            held = most, super().nearest(vector, kind=kind, model=model, limit=most)
            self._near[_bytes(vector), kind] = held
            self._hint(held[1].numbers[:_NEAR_HINTS])
        return Hits(held[1].numbers[:limit], held[1].scores[:limit])

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`."""
        found = self._find_text(text)
        if found is None:
            return _NO_HITS
        if kind not in found.words:
            return super().lexical(text, kind=kind, limit=limit) if self._may_ask(False) else _NO_HITS
        hits = found.words[kind]
        return Hits(hits.numbers[:limit], hits.scores[:limit])

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`."""
        if not len(numbers) or not self._may_ask(False):
            return np.full(len(numbers), -1, np.int64)
        return super().clusters_of(numbers)

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[port.BridgePath]:
        """See `GraphView.bridges`."""
        return super().bridges(clusters_from, clusters_to, limit=limit) if self._may_ask(False) else []

    def match_names(self, text: str, *, limit: int | None = None) -> NameMatches:
        """See `GraphView.match_names`; once passages were read, a new text is compared with the names they mention."""
        if text not in self._texts and self._names:
            return self._match_held(text)
        found = self._find_text(text)
        return _NO_NAMES if found is None else found.names

    @property
    def _names_enough(self) -> bool:
        """Whether entities by vector can be left out: without an index every vector would be compared for them."""
        return not self.store.scope.approximate and any(len(found.names) for found in self._texts.values())

    def _note_write(self, writing: bool) -> None:
        """Rows may be of two states: end the turn for a view of one state, or remember it where there is none."""
        if not writing:
            return
        self.saw_write = True
        whole = self.open_whole()
        if whole is not None:
            raise WriteUnderWay(whole)

    def _hint(self, numbers: Numbers) -> None:
        self._hints.update(dict.fromkeys(np.asarray(numbers, np.int64).tolist()))

    def _fetch_rows(self, nodes: Sequence[int]) -> bool:
        """Fetch edges of nodes that are not known and of some that will be asked for; False where that is refused."""
        missing = [node for node in dict.fromkeys(nodes) if node not in self._rows]
        if not missing:
            return True
        if not self._may_ask(False):
            return False
        taken = set(missing)
        also = [node for node in self._hints if node not in self._rows and node not in taken][:_HINTS]
        asked = [*missing, *also]
        found = super().expand(np.array(asked, np.int64), direction=Direction.ANY, fanout=ROW_EDGES, max_work=_EDGES)
        self._rows.update(zip(asked, split_rows(found, len(asked)), strict=False))
        return all(node in self._rows for node in missing)

    def _find_text(self, text: str) -> _TextHits | None:
        if text not in self._texts and text.strip():
            if not self._may_ask(False):
                return None
            found = find_text(self, text, _HITS)
            self._note_write(found.writing)
            self._nodes.update(found.facts)
            self._texts[text] = _TextHits(found.names, found.words)
            self._hint(found.names.numbers)
            self._hint(found.words[Kind.CHUNK].numbers[:_WORD_HINTS])
        return self._texts.get(text)

    def _match_held(self, text: str) -> NameMatches:
        found = [
            (start, end, node) for start, end, form in runs_of_words(text) for node in sorted(self._names.get(form, ()))
        ]
        return outermost(*([one[place] for one in found] for place in range(3)))

    def _fetch_facts(self, nodes: Sequence[int], edges: Sequence[int]) -> None:
        if self._may_ask(True):
            found_nodes, found_edges, writing = read_facts(self, nodes, edges)
            self._note_write(writing)
            self._nodes.update(zip(nodes, found_nodes, strict=True))
            self._edges.update(zip(edges, found_edges, strict=True))

    def _fetch_passages(self, numbers: Sequence[int]) -> None:
        if not self._may_ask(True):
            return
        found = read_passages(self, np.array(numbers, np.int64), self._model)
        for number, one in zip(numbers, found, strict=True):
            self._passages[number] = one.passage
            self._note_write(one.writing)
            if one.vector is not None:
                self._vectors[number] = one.vector
            if one.source is not None:
                self._sources[one.source.id] = one.source
            for node, names in one.named:
                for form in {normalise(name) for name in names} - {""}:
                    self._names.setdefault(form, set()).add(node)
            self._hint(np.array([node for node, _ in one.named], np.int64))


class ArangoView(LiveGraph):
    """The live graph, which opens a view for each turn."""

    def for_turn(self, may_ask: MayAsk) -> GraphView:
        """See `RemoteView.for_turn`."""
        return ArangoTurnView(self, may_ask)


def _first(known: dict[int, Any], numbers: Numbers, fetch: Callable[[list[int]], None]) -> list[Any]:
    """What is known of the first numbers, after an attempt to fetch the rest."""
    wanted = np.asarray(numbers, np.int64).tolist()
    missing = [one for one in dict.fromkeys(wanted) if one not in known]
    if missing:
        fetch(missing)
    end = next((place for place, one in enumerate(wanted) if one not in known), len(wanted))
    return [known[one] for one in wanted[:end]]


def _bytes(vector: NDArray[np.float32]) -> bytes:
    return unit_vector(vector).astype(np.float32).tobytes()


_NO_HITS = Hits(np.empty(0, np.int64), np.empty(0, np.float32))
_NO_NAMES = NameMatches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
