"""Nodes, edges, passages as records; names, domains, bridges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import (
    ALWAYS,
    EDGES,
    FOREVER,
    KINDS,
    BridgePath,
    EdgeFacts,
    Kind,
    NameMatches,
    NodeFacts,
    Numbers,
    Passage,
    SourceFacts,
)
from hades.snapshot.adjacency import instant
from hades.snapshot.files import ArrayReader, Heap, best, find, hash_texts
from hades.snapshot.manifest import Manifest
from hades.text.words import fold, spans, words

# Nodes, edges and passages as records: what is materialised, and nothing else, is read.


_BOUNDS = ("valid_from", "valid_until", "recorded_at", "retracted_at")
HEADING_SEPARATOR = "\x1f"
_PASSAGE = "passage"  # `ChunkKind.PASSAGE`, without the record that would load pyarrow and pydantic


class Facts:
    """Reads records out of the arrays of a snapshot."""

    def __init__(self, contents: Manifest, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._contents, self._arrays = contents, arrays
        self._bases = np.cumsum([0, *contents.nodes.values()])
        self._edge_bases = np.cumsum([0, *contents.edges.values()])
        self._heaps: dict[str, Heap] = {}
        self._by_document: tuple[Numbers, Numbers] | None = None

    def ids(self, numbers: Numbers) -> list[str]:
        """`_id`s of nodes."""
        kinds = (np.searchsorted(self._bases, numbers, side="right") - 1).tolist()
        return [f"{KINDS[kind]}/{key}" for kind, key in zip(kinds, self._heap("node.key").many(numbers), strict=True)]

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """Nodes, each column read once for all of them."""
        kinds = self._kinds(numbers)
        keys, names, summaries = (self._heap(f"node.{name}").many(numbers) for name in ("key", "name", "summary"))
        types, cited = self._column("node.type", numbers), self._cite("node", numbers)
        return [
            NodeFacts(
                id=f"{kinds[row]}/{keys[row]}",
                kind=kinds[row],
                name=names[row],
                type=self._contents.node_types[types[row]],
                summary=summaries[row],
                document="" if document < 0 else self._heap("document.origin")[document],
                span=span,
                **(self._entity_facts(number) if kinds[row] is Kind.ENTITY else {}),
            )
            for row, (number, (document, span)) in enumerate(zip(numbers.tolist(), cited, strict=True))
        ]

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """Edges, each column read once for all of them."""
        collections = (np.searchsorted(self._edge_bases, handles, side="right") - 1).tolist()
        keys, labels = (self._heap(f"edge.{name}").many(handles) for name in ("key", "label"))
        sources, targets = (self.ids(self._arrays[f"edge.{side}"][handles]) for side in ("source", "target"))
        types, weights = self._column("edge.type", handles), self._column("edge.weight", handles)
        validity = self._read_validity(handles)
        return [
            EdgeFacts(
                id=f"{EDGES[collections[row]]}/{keys[row]}",
                source=sources[row],
                target=targets[row],
                type=self._contents.types[types[row]],
                weight=None if math.isnan(weights[row]) else weights[row],
                label=labels[row],
                document="" if document < 0 else self._heap("document.origin")[document],
                document_id="" if document < 0 else self._heap("document.id")[document],
                span=span,
                snippet="" if document < 0 or span is None else self.text(document, *span),
                **validity[row],
            )
            for row, (document, span) in enumerate(self._cite("edge", handles))
        ]

    def passages(self, numbers: Numbers) -> list[Passage]:
        """The texts of chunks, functions and files."""
        kinds, cited = self._kinds(numbers), self._cite("node", numbers)
        for row, (document, _) in enumerate(cited):
            if document < 0:
                raise BadQuery(f"{self.ids(numbers[row : row + 1])[0]} has no text of its own; ask for its facts")
        keys, names = (self._heap(f"node.{name}").many(numbers) for name in ("key", "name"))
        types = [self._contents.node_types[code] for code in self._column("node.type", numbers)]
        chunks = [row for row, kind in enumerate(kinds) if kind is Kind.CHUNK]
        first_chunk = int(self._bases[KINDS.index(Kind.CHUNK)])
        owned = dict(zip(chunks, self._chunk_facts(numbers[chunks] - first_chunk), strict=True)) if chunks else {}
        found = []
        for row, (document, span) in enumerate(cited):
            own = owned.get(row, {})
            if own and types[row] == _PASSAGE and span:
                own["facts"] = self._read_stated(document, span)
            start, end = span or (0, int(self._arrays["document.characters"][document]))
            found.append(
                Passage(
                    id=f"{kinds[row]}/{keys[row]}",
                    text=self.text(document, start, end),
                    document=self._heap("document.origin")[document],
                    document_id=self._heap("document.id")[document],
                    span=(start, end),
                    title=names[row] or self._heap("document.title")[document],
                    kind=types[row],
                    **own,
                )
            )
        return found

    def _chunk_facts(self, rows: Numbers) -> list[dict[str, Any]]:
        """What chunks have beside their text; path, symbol and lines where one was cut from a file of a workspace."""
        texts = (self._heap(f"chunk.{name}").many(rows) for name in ("headings", "symbol"))
        names = ("tokens", "moment", "path", "start_line", "end_line")
        columns = (self._column(f"chunk.{name}", rows) for name in names)
        return [
            {
                "headings": tuple(headings.split(HEADING_SEPARATOR)) if headings else (),
                "token_count": tokens,
                "timestamp": _moment(moment),
                "path": "" if path < 0 else self._heap("chunk.path_name")[path],
                "symbol": symbol,
                "lines": (first, last) if first else None,
            }
            for headings, symbol, tokens, moment, path, first, last in zip(*texts, *columns, strict=True)
        ]

    def _read_stated(self, document: int, span: tuple[int, int]) -> tuple[str, ...]:
        """The triples that a document states in a span, in words; only passages are given labelled relations."""
        arrays, names, labels = self._arrays, self._heap("node.name"), self._heap("edge.label")
        handles, owners = self._label()
        first, last = np.searchsorted(owners, (document, document + 1))
        return tuple(
            f"{names[int(arrays['edge.source'][edge])]} {labels[edge]} {names[int(arrays['edge.target'][edge])]}"
            for edge in handles[first:last].tolist()
            if span[0] <= int(arrays["edge.start"][edge]) < span[1]
        )

    def _label(self) -> tuple[Numbers, Numbers]:
        """Relations that have words of their own, in order of their documents, and those documents."""
        if self._by_document is None:
            count = int(self._edge_bases[1])
            handles = np.flatnonzero(np.diff(self._arrays["edge.label.ends"][: count + 1]) > 0)
            owners = np.asarray(self._arrays["edge.document"][handles], np.int64)
            order = np.argsort(owners, kind="stable")
            self._by_document = handles[order], owners[order]
        return self._by_document

    def text(self, document: int, start: int, end: int) -> str:
        """Characters [start, end) of a document; only they are read where a character is a byte."""
        body, shift = self._heap("document.body"), int(self._arrays["document.shift"][document])
        start, end = start - shift, end - shift
        if body.size(document) == self._arrays["document.characters"][document]:
            return body.slice(document, start, min(end, body.size(document)))
        return body[document][start:end]

    def source(self, document_id: str) -> SourceFacts | None:
        """A stored document by `_id`."""
        ids = self._heap("document.id")
        low, high = 0, self._contents.documents  # stored documents stand in key order
        wanted = document_id.encode("utf-8", "surrogatepass")
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if ids.raw(middle) < wanted else (low, middle)
        if low < self._contents.documents and ids.raw(low) == wanted:
            # Snapshots of this format published before hashes were kept have no such heap: nothing vouches for them.
            hashed = "document.sha256.ends" in self._arrays
            return SourceFacts(
                id=document_id,
                origin=self._heap("document.origin")[low],
                title=self._heap("document.title")[low],
                text=self._heap("document.body")[low],
                sha256=self._heap("document.sha256")[low] if hashed else "",
            )
        return None

    def _entity_facts(self, number: int) -> dict[str, Any]:
        row = number  # entities are the first kind
        cluster, domain = (int(self._arrays[f"entity.{name}"][row]) for name in ("cluster", "domain"))
        return {
            "cluster_id": None if cluster < 0 else self._heap("entity.cluster_id")[cluster],
            "domain": None if domain < 0 else self._heap("entity.domain_name")[domain],
            "deg_out": int(self._arrays["entity.deg_out"][row]),
            "frequency": int(self._arrays["entity.frequency"][row]),
        }

    def _read_validity(self, handles: Numbers) -> list[dict[str, Any]]:
        """The bounds of each edge, where the snapshot has any."""
        if not self._contents.has_validity:
            return [{}] * len(handles)
        bounds = {name: self._column(f"edge.{name}", handles) for name in _BOUNDS}
        return [{name: _moment(values[row]) for name, values in bounds.items()} for row in range(len(handles))]

    def _cite(self, what: str, places: Numbers) -> list[tuple[int, tuple[int, int] | None]]:
        """The document and the span that each node or edge was read from; -1 and None where it was from none."""
        columns = (self._column(f"{what}.{part}", places) for part in ("document", "start", "end"))
        return [(document, None if start < 0 else (start, end)) for document, start, end in zip(*columns, strict=True)]

    def _kinds(self, numbers: Numbers) -> list[Kind]:
        return [KINDS[code] for code in (np.searchsorted(self._bases, numbers, side="right") - 1).tolist()]

    def _column(self, name: str, places: Numbers) -> list[Any]:
        values: list[Any] = self._arrays[name][places].tolist()
        return values

    def _heap(self, name: str) -> Heap:
        if name not in self._heaps:
            self._heaps[name] = Heap(self._arrays, name)
        return self._heaps[name]

    def of_level(self, level: int) -> Numbers:
        """Clusters of one level, as places among the clusters."""
        place, name = KINDS.index(Kind.CLUSTER), f"L{level}"
        if name not in self._contents.node_types:
            return np.empty(0, np.int64)
        codes = self._arrays["node.type"][self._bases[place] : self._bases[place + 1]]
        return np.flatnonzero(codes == self._contents.node_types.index(name))


def _moment(value: int) -> datetime | None:
    return None if value in (ALWAYS, FOREVER) else instant(value)


# Entities by name: every run of words in a question is looked up among the names, aliases included.


LONGEST_RUN = 16  # words; longer titles are entities, but nobody spells them out inside a question
_CACHED_TEXTS = 4096  # a turn matches its question several times, and titles and names recur between turns


def normalise(name: str) -> str:
    """A name as it is compared: its words in lower case without accents, one blank between them."""
    return " ".join(words(name))


def runs_of_words(text: str, longest: int = LONGEST_RUN) -> list[tuple[int, int, str]]:
    """Every run of at most `longest` words of a text: where it stands, and its normalised form."""
    places = spans(text)
    folded = [fold(text[start:end]) for start, end in places]
    return [
        (places[first][0], places[last - 1][1], " ".join(folded[first:last]))
        for first in range(len(places))
        for last in range(first + 1, min(first + longest, len(places)) + 1)
    ]


def outermost(starts: Sequence[int], ends: Sequence[int], numbers: Sequence[int]) -> NameMatches:
    """The matches whose span lies inside no longer one, by start, then number.

    A question has a dozen of them, for which a loop is faster than arrays.
    """
    kept: list[tuple[int, int, int]] = []
    begun, reach = -1, -1  # where the last span that was kept begins, and where it ends
    for start, less, number in sorted(zip(starts, (-end for end in ends), numbers, strict=True)):
        if -less > reach or (start == begun and -less == reach):
            kept.append((number, start, -less))
            begun, reach = start, -less
    columns = np.array(kept, np.int64).reshape(-1, 3)
    return NameMatches(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


class NameIndex:
    """Finds names in texts."""

    def __init__(self, arrays: ArrayReader, longest: int) -> None:
        self._hashes: NDArray[Any] = arrays["name.hash"]
        self._numbers: NDArray[np.int32] = arrays["name.number"]
        self._longest = min(longest, LONGEST_RUN)
        self._cached: dict[str, NameMatches] = {}

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """See `BatchView.match_each`; the arrays are read-only, because they are cached."""
        found = {text: self._cached.get(text) for text in texts}
        missing = [text for text, matches in found.items() if matches is None]
        if missing:
            read = dict(zip(missing, self._match(missing), strict=True))
            if len(self._cached) + len(read) > _CACHED_TEXTS:
                self._cached.clear()
            self._cached.update(read)
            return [matches if (matches := found[text]) is not None else read[text] for text in texts]
        return [matches for text in texts if (matches := found[text]) is not None]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """See `BatchView.match_whole`."""
        forms = [normalise(text) for text in texts]
        asked = [place for place, form in enumerate(forms) if form and form.count(" ") < self._longest]
        rows, entries = find(self._hashes, hash_texts(forms[place] for place in asked)).spread()
        found: list[list[int]] = [[] for _ in texts]
        for row, number in zip(rows.tolist(), self._numbers[entries].tolist(), strict=True):
            found[asked[row]].append(number)
        return [np.array(numbers, np.int64) for numbers in found]

    def _match(self, texts: Sequence[str]) -> list[NameMatches]:
        """The names in each text; one look-up serves all of them, and a run that comes twice is looked up once."""
        runs = [runs_of_words(text, self._longest) for text in texts]
        forms = list(dict.fromkeys(form for own in runs for _, _, form in own))
        rows, entries = find(self._hashes, hash_texts(forms)).spread()
        known: dict[str, list[int]] = {}
        for row, number in zip(rows.tolist(), self._numbers[entries].tolist(), strict=True):
            known.setdefault(forms[row], []).append(number)
        return [self._outermost(own, known) for own in runs]

    def _outermost(self, runs: Sequence[tuple[int, int, str]], known: Mapping[str, Sequence[int]]) -> NameMatches:
        spelled = [(start, end, number) for start, end, form in runs if form in known for number in known[form]]
        if not spelled:
            return _NO_MATCHES
        starts, ends, numbers = zip(*spelled, strict=True)
        return _read_only(outermost(starts, ends, numbers))


def _read_only(found: NameMatches) -> NameMatches:
    for array in (found.numbers, found.starts, found.ends):
        array.setflags(write=False)
    return found


_NO_MATCHES = _read_only(NameMatches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)))


# Bridges found by the topics they join; only those of the topics asked are looked at.


class BridgeIndex:
    """Reads what `BridgeRows` wrote."""

    def __init__(self, arrays: ArrayReader) -> None:
        self._arrays = arrays

    def find(self, starts: Numbers, ends: Numbers | None, limit: int) -> list[BridgePath]:
        """See `GraphView.bridges`."""
        tail, head = self._arrays["bridge.from"], self._arrays["bridge.to"]
        rows = self._touching(np.unique(starts))
        forward, backward = np.isin(tail[rows], starts), np.isin(head[rows], starts)
        if ends is not None:
            forward &= np.isin(head[rows], ends)
            backward &= np.isin(tail[rows], ends)
        rows, forward = rows[forward | backward], forward[forward | backward]
        kept = best(self._arrays["bridge.weight"][rows], rows, limit)
        return [
            self._path(row) if as_kept else self._path(row).reversed()
            for row, as_kept in zip(rows[kept].tolist(), forward[kept].tolist(), strict=True)
        ]

    def _touching(self, topics: Numbers) -> Numbers:
        """Rows with an end in one of these topics, each once."""
        among = self._arrays["bridge.topic"]
        first, last = np.searchsorted(among, topics, side="left"), np.searchsorted(among, topics, side="right")
        counts = last - first
        skipped = np.cumsum(counts) - counts
        places = np.repeat(first - skipped, counts) + np.arange(int(counts.sum()))
        return np.unique(self._arrays["bridge.row"][places]).astype(np.int64)

    def _path(self, row: int) -> BridgePath:
        arrays = self._arrays
        start, end = arrays["bridge.starts"][row : row + 2].tolist()
        nodes, edges = arrays["bridge.node"][start:end], arrays["bridge.edge"][start - row : end - row - 1]
        return BridgePath(
            int(arrays["bridge.from"][row]),
            int(arrays["bridge.to"][row]),
            tuple(nodes.tolist()),
            tuple(edges.tolist()),
            tuple((arrays["edge.source"][edges] == nodes[:-1]).tolist()),
            float(arrays["bridge.weight"][row]),
            float(arrays["bridge.cost"][row]),
            bool(arrays["bridge.pinned"][row]),
        )
