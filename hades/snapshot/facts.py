"""Nodes, edges and passages as records: what is materialised, and nothing else, is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.view import (
    ALWAYS,
    EDGES,
    FOREVER,
    KINDS,
    EdgeFacts,
    Kind,
    NodeFacts,
    Numbers,
    Passage,
    SourceFacts,
)
from hades.snapshot.expansion import instant
from hades.snapshot.heaps import Heap
from hades.snapshot.manifest import Manifest

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

    def kind(self, number: int) -> Kind:
        """The kind of a node."""
        return KINDS[int(np.searchsorted(self._bases, number, side="right")) - 1]

    def node(self, number: int) -> NodeFacts:
        """One node."""
        kind = self.kind(number)
        own = self._entity_facts(number) if kind is Kind.ENTITY else {}
        document, span = self._cite("node", number)
        return NodeFacts(
            id=f"{kind}/{self._heap('node.key')[number]}",
            kind=kind,
            name=self._heap("node.name")[number],
            type=self._contents.node_types[self._arrays["node.type"][number]],
            summary=self._heap("node.summary")[number],
            document="" if document < 0 else self._heap("document.origin")[document],
            span=span,
            **own,
        )

    def edge(self, handle: int) -> EdgeFacts:
        """One edge."""
        arrays = self._arrays
        collection = EDGES[int(np.searchsorted(self._edge_bases, handle, side="right")) - 1]
        weight = float(arrays["edge.weight"][handle])
        ends = self.ids(np.array([arrays["edge.source"][handle], arrays["edge.target"][handle]], np.int64))
        own: dict[str, Any] = self._provenance(handle)
        if self._contents.has_validity:
            own |= {
                bound: _moment(int(arrays[f"edge.{bound}"][handle]))
                for bound in ("valid_from", "valid_until", "recorded_at", "retracted_at")
            }
        return EdgeFacts(
            id=f"{collection}/{self._heap('edge.key')[handle]}",
            source=ends[0],
            target=ends[1],
            type=self._contents.types[arrays["edge.type"][handle]],
            weight=None if np.isnan(weight) else weight,
            **own,
        )

    def passage(self, number: int) -> Passage:
        """The text of a chunk, a function or a file."""
        kind = self.kind(number)
        document, span = self._cite("node", number)
        if document < 0:
            raise BadQuery(f"{self.ids(np.array([number]))[0]} has no text of its own; ask for its facts")
        own: dict[str, Any] = {}
        if kind is Kind.CHUNK:
            row = number - int(self._bases[KINDS.index(kind)])
            headings = self._heap("chunk.headings")[row]
            own["headings"] = tuple(headings.split(HEADING_SEPARATOR)) if headings else ()
            own["token_count"] = int(self._arrays["chunk.tokens"][row])
            own["timestamp"] = _moment(int(self._arrays["chunk.moment"][row]))
            own |= self._place_in_file(row)
            if self._contents.node_types[self._arrays["node.type"][number]] == _PASSAGE and span:
                own["facts"] = self._read_stated(document, span)
        start, end = span or (0, int(self._arrays["document.characters"][document]))
        return Passage(
            id=f"{kind}/{self._heap('node.key')[number]}",
            text=self.text(document, start, end),
            document=self._heap("document.origin")[document],
            document_id=self._heap("document.id")[document],
            span=(start, end),
            title=self._heap("node.name")[number] or self._heap("document.title")[document],
            kind=self._contents.node_types[self._arrays["node.type"][number]],
            **own,
        )

    def _place_in_file(self, row: int) -> dict[str, Any]:
        """Path, symbol and lines of a chunk that was cut from a file of a workspace."""
        path = int(self._arrays["chunk.path"][row])
        first, last = (int(self._arrays[f"chunk.{name}"][row]) for name in ("start_line", "end_line"))
        return {
            "path": "" if path < 0 else self._heap("chunk.path_name")[path],
            "symbol": self._heap("chunk.symbol")[row],
            "lines": (first, last) if first else None,
        }

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

    def _provenance(self, handle: int) -> dict[str, Any]:
        document, span = self._cite("edge", handle)
        return {
            "label": self._heap("edge.label")[handle],
            "document": "" if document < 0 else self._heap("document.origin")[document],
            "document_id": "" if document < 0 else self._heap("document.id")[document],
            "span": span,
            "snippet": "" if document < 0 or span is None else self.text(document, *span),
        }

    def _cite(self, what: str, place: int) -> tuple[int, tuple[int, int] | None]:
        document, start, end = (int(self._arrays[f"{what}.{part}"][place]) for part in ("document", "start", "end"))
        return document, None if start < 0 else (start, end)

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
