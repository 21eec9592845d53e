"""Nodes, names, documents, edges, bridges as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.graph import ALWAYS, KINDS, Kind
from hades.ports.store import RowStore
from hades.snapshot.facts import HEADING_SEPARATOR, normalise
from hades.snapshot.files import (
    NOWHERE,
    Coder,
    Folder,
    Hashes,
    Heap,
    HeapWriter,
    append_texts,
    hash_texts,
    integers,
    join_labels,
    spans,
    texts,
)
from hades.snapshot.lexical import LexicalWriter
from hades.snapshot.write_vectors import VectorWriter
from schemas.catalogue import Collection, collection_named

# Documents: their texts, kept once, with the hash each was stored under, and what citations show of them.


COLUMNS = ("_key", "origin", "title", "text", "sha256", "domains")
_BATCH_ROWS = 4_096


class DocumentRows:
    """Writes the documents; then finds them by `_id`.

    `document.shift` is the character at which the kept text begins: 0, or where a chunk stands whose document is not
    stored, so that its text and its span are kept all the same.
    """

    def __init__(self, store: RowStore, folder: Folder) -> None:
        self._id, self._origin, self._title, self._sha256 = (
            HeapWriter(folder, f"document.{name}") for name in ("id", "origin", "title", "sha256")
        )
        self._text = HeapWriter(folder, "document.body")
        self._characters = folder.column("document.characters", np.int32)
        self._shift = folder.column("document.shift", np.int32)
        self._folder, self._domains = folder, Coder()
        self._domain = folder.column("document.domain", np.int32)
        self._unstored: dict[str, int] = {}
        keys = [pa.array([], pa.string())]
        for batch in store.scan("documents", columns=COLUMNS, batch_rows=_BATCH_ROWS):
            keys.append(pc.binary_join_element_wise("documents", batch.column("_key"), "/"))
            append_texts(self._id, keys[-1])
            append_texts(self._origin, batch.column("origin"))
            append_texts(self._title, batch.column("title"))
            append_texts(self._sha256, batch.column("sha256"))
            append_texts(self._text, batch.column("text"))
            self._characters.append(integers(pc.utf8_length(pc.fill_null(batch.column("text"), "")), 0))
            self._shift.append(np.zeros(batch.num_rows, np.int32))
            self._domain.append(self._domains.encode(join_labels(batch.column("domains"))))
        self._ids = pa.concat_arrays(keys)
        self.stored = len(self._ids)
        self._bodies = Heap(folder, "document.body")

    def write_domains(self) -> None:
        """Write the names behind the codes of `document.domain`."""
        HeapWriter(self._folder, "document.domain_name").append(self._domains.codes)

    def find(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each document by `_id`, -1 where the column says nothing, a new number for one not stored."""
        places = self.document_numbers(column)
        named = np.asarray(column.is_valid().to_numpy(zero_copy_only=False)) & (places == NOWHERE)
        for row in np.flatnonzero(named).tolist():
            places[row] = self._stand_in(column[row].as_py())
        return places

    def document_numbers(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each document by `_id`, -1 where it is not stored."""
        return integers(pc.index_in(column, value_set=self._ids), NOWHERE).copy()

    def keep_text(self, document: str, text: str, start: int) -> int:
        """Keep the text of a chunk whose document is not stored; the number it is found under."""
        return self._append(document, text, start)

    def check_chunks(
        self,
        keys: list[str],
        numbers: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        bodies: list[str],
    ) -> None:
        """Refuse a chunk that is not the span of its document that it says it is."""
        order = np.argsort(numbers, kind="stable")
        held, text = NOWHERE, ""
        for row in order[numbers[order] >= 0].tolist():
            if numbers[row] != held:
                held = int(numbers[row])
                text = self._bodies[held]
            if starts[row] < 0 or text[starts[row] : ends[row]] != bodies[row]:
                raise SnapshotError(
                    f"doc_chunks/{keys[row]}: characters {starts[row]} to {ends[row]} of its document are not its "
                    "text; run the chunk phase of that document again, nothing was published"
                )

    def _stand_in(self, document: str) -> int:
        """A document that is only named: cited by that name, with no text."""
        if document not in self._unstored:
            self._unstored[document] = self._append(document, "", 0)
        return self._unstored[document]

    def _append(self, document: str, text: str, start: int) -> int:
        number = self._id.count
        self._id.append([document])
        self._origin.append([document.partition("/")[2] or document])
        self._title.append([""])
        self._sha256.append([""])
        self._text.append([text])
        self._characters.append(np.array([len(text)]))
        self._shift.append(np.array([start]))
        self._domain.append(np.array([NOWHERE], np.int32))
        return number


# Names of entities: every form under which one is found, as a hash with the number of its entity.


Longs = NDArray[np.int64]


class NameRows:
    """Collects names of entities by number; writes `name.hash` and `name.number`, and the longest name in words."""

    def __init__(self) -> None:
        self._hashes: list[Hashes] = [np.empty(0, np.uint64)]
        self._numbers: list[Longs] = [np.empty(0, np.int64)]
        self.longest = 0

    def append(self, first_number: int, batch: pa.RecordBatch) -> None:
        """All names of consecutive entities: `name`, `canonical_name` and `aliases`."""
        numbers = np.arange(first_number, first_number + batch.num_rows, dtype=np.int64)
        aliases = batch.column("aliases")
        several = np.repeat(numbers, integers(pc.list_value_length(aliases), 0))
        plain = (batch.column(name).cast(pa.large_string()) for name in ("name", "canonical_name"))
        names = pa.concat_arrays([*plain, pc.list_flatten(aliases).cast(pa.large_string())])
        spelled = names.drop_null().dictionary_encode()
        owners = np.concatenate([numbers, numbers, several])[np.asarray(names.is_valid())]
        forms = normalise_each(spelled.dictionary).dictionary_encode()
        distinct = forms.dictionary.to_pylist()
        form = integers(forms.indices, 0)[integers(spelled.indices, 0)]
        pairs = np.unique(owners * max(1, len(distinct)) + form)
        number, form = np.divmod(pairs, max(1, len(distinct)))
        is_spelled = np.array([bool(text) for text in distinct], np.bool_)[form]
        self.longest = max([self.longest, *(text.count(" ") + 1 for text in distinct if text)])
        self._hashes.append(hash_texts(distinct)[form[is_spelled]])
        self._numbers.append(number[is_spelled])

    def write(self, folder: Folder) -> None:
        """Sorted by hash, then number."""
        hashes, numbers = np.concatenate(self._hashes), np.concatenate(self._numbers)
        order = np.lexsort((numbers, hashes))
        folder.whole("name.hash", hashes[order])
        folder.whole("name.number", numbers[order].astype(np.int32))


def normalise_each(names: pa.Array) -> pa.Array:
    """`normalise` of each name; those in ASCII, which are nearly all, as whole columns."""
    is_ascii = np.asarray(pc.string_is_ascii(names), np.bool_)
    lower = pc.ascii_lower(names)
    forms = pc.utf8_trim(pc.replace_substring_regex(lower, "[^0-9a-z_]+", " "), " ")
    others = np.flatnonzero(~is_ascii)
    if not len(others):
        return forms
    spelled = [normalise(name) for name in names.take(pa.array(others)).to_pylist()]
    return pc.replace_with_mask(forms, pa.array(~is_ascii), pa.array(spelled, forms.type))


# Nodes: numbered by collection, then by key, with the few columns that questions need.


_NODE_BATCH_ROWS = 8_192
_COLUMNS: dict[Kind, tuple[str, ...]] = {
    Kind.ENTITY: (
        *("name", "canonical_name", "aliases", "type", "cluster_id", "summary", "deg_out", "domain", "frequency"),
        *("domains", "embedding", "embedding_model"),
    ),
    Kind.CHUNK: (
        *("document", "text", "span", "kind", "headings", "title", "token_count", "timestamp"),
        *("file_path", "symbol", "words", "start_line", "end_line"),
        *("embedding", "embedding_model"),
    ),
    Kind.CLUSTER: ("level", "name", "summary", "centroid", "embedding_model"),
    Kind.FUNC: ("qualified_name", "kind", "document", "span", "docstring", "embedding", "embedding_model"),
    Kind.FILE: ("path", "document"),
}
_NAME = {Kind.CHUNK: "title", Kind.FUNC: "qualified_name", Kind.FILE: "path"}
_SUMMARY = {Kind.ENTITY: "summary", Kind.CLUSTER: "summary", Kind.FUNC: "docstring"}
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class NodeSpace:
    """What the rest of publishing needs to know of the nodes; a node's number is its place in `ids`."""

    counts: dict[str, int]
    ids: pa.Array
    types: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    longest_name: int


class NodeRows:
    """Writes all nodes of a store."""

    def __init__(self, folder: Folder, documents: DocumentRows) -> None:
        self._folder, self._documents = folder, documents
        self._key, self._name, self._summary = (
            HeapWriter(folder, f"node.{name}") for name in ("key", "name", "summary")
        )
        self._type = folder.column("node.type", np.uint8)
        self._places = [folder.column(f"node.{name}", np.int32) for name in ("document", "start", "end")]
        self._headings = HeapWriter(folder, "chunk.headings")
        self._symbol = HeapWriter(folder, "chunk.symbol")
        self._paths = Coder()
        self._path = folder.column("chunk.path", np.int32)
        self._lines = [folder.column(f"chunk.{name}", np.int32) for name in ("start_line", "end_line")]
        self._tokens = folder.column("chunk.tokens", np.int32)
        self._moment = folder.column("chunk.moment", np.int64)
        self._entity = {
            name: folder.column(f"entity.{name}", np.int32)
            for name in ("cluster", "domain", "domains", "deg_out", "frequency")
        }
        self._types, self._clusters, self._domains, self._label_sets = Coder(), Coder(), Coder(), Coder()
        self._names = NameRows()

    def write(self, store: RowStore, progress: Progress) -> NodeSpace:
        """Scan each collection once, in key order."""
        counts: dict[str, int] = {}
        models: dict[str, tuple[str, ...]] = {}
        ids: list[pa.Array] = [pa.array([], pa.large_string())]
        hashes = [np.empty(0, np.uint64)]
        for kind in KINDS:
            before = self._key.count
            for batch in self._scan(store, kind, models):
                ids.append(pc.binary_join_element_wise(kind.value, batch.column("_key"), "/").cast(pa.large_string()))
                hashes.append(hash_texts(ids[-1].to_pylist()))
                progress(kind.value, self._key.count - before)
            counts[kind.value] = self._key.count - before
        all_hashes = np.concatenate(hashes)
        order = np.argsort(all_hashes, kind="stable")
        self._folder.whole("node.hash", all_hashes[order])
        self._folder.whole("node.number", order.astype(np.int32))
        self._names.write(self._folder)
        self._documents.write_domains()
        for name, coder in (
            ("entity.cluster_id", self._clusters),
            ("entity.domain_name", self._domains),
            ("entity.domains_name", self._label_sets),
            ("chunk.path_name", self._paths),
        ):
            HeapWriter(self._folder, name).append(coder.codes)
        everything = pa.concat_arrays(ids)
        self._folder.whole("entity.cluster_node", _clusters(self._clusters, everything))
        return NodeSpace(counts, everything, tuple(self._types.codes), models, self._names.longest)

    def _scan(self, store: RowStore, kind: Kind, models: dict[str, tuple[str, ...]]) -> Iterator[pa.RecordBatch]:
        collection = collection_named(kind.value)
        assert collection is not None
        words = LexicalWriter(f"lexical.{kind}") if collection.text_fields else None
        vectors = VectorWriter(self._folder, kind.value) if collection.vector_field else None
        columns = ("_key", *_COLUMNS[kind])
        rows = 0
        for batch in store.scan(kind.value, columns=columns, batch_rows=_NODE_BATCH_ROWS):
            self._common(kind, batch)
            if kind is Kind.ENTITY:
                self._entities(batch, rows)
            if kind is Kind.CHUNK:
                self._chunks(batch)
            if words:
                words.append(_search(collection, batch))
            if vectors:
                vectors.append(rows, batch, str(collection.vector_field))
            rows += batch.num_rows
            yield batch
        if words:
            words.write(self._folder)
        if vectors:
            models[kind.value] = vectors.write(rows)

    def _common(self, kind: Kind, batch: pa.RecordBatch) -> None:
        append_texts(self._key, batch.column("_key"))
        append_texts(self._name, batch.column(_NAME.get(kind, "name")))
        nothing = pa.nulls(batch.num_rows, pa.string())
        append_texts(self._summary, batch.column(_SUMMARY[kind]) if kind in _SUMMARY else nothing)
        self._type.append(self._types.encode(_types(kind, batch)))
        for column, values in zip(self._places, self._cite(kind, batch), strict=True):
            column.append(values)

    def _cite(self, kind: Kind, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], ...]:
        """Document, start and end of each node; -1 where it has none."""
        nowhere = np.full(batch.num_rows, NOWHERE, np.int64)
        if "document" not in batch.schema.names:
            return nowhere, nowhere, nowhere
        if kind is Kind.FILE:
            return self._documents.find(batch.column("document")), nowhere, nowhere
        starts, ends = spans(batch.column("span"))
        if kind is not Kind.CHUNK:
            return self._documents.find(batch.column("document")), starts, ends
        keys, bodies = batch.column("_key").to_pylist(), texts(batch.column("text"))
        named = texts(batch.column("document"))
        numbers = self._documents.document_numbers(batch.column("document"))
        self._documents.check_chunks(keys, numbers, starts, ends, bodies)
        for row in np.flatnonzero(numbers == NOWHERE).tolist():
            starts[row] = max(0, int(starts[row]))
            ends[row] = starts[row] + len(bodies[row])
            numbers[row] = self._documents.keep_text(named[row], bodies[row], int(starts[row]))
        return numbers, starts, ends

    def _entities(self, batch: pa.RecordBatch, rows: int) -> None:
        self._names.append(rows, batch)  # entities are the first kind, so a row is a number
        self._entity["cluster"].append(self._clusters.encode(batch.column("cluster_id")))
        self._entity["domain"].append(self._domains.encode(batch.column("domain")))
        self._entity["domains"].append(self._label_sets.encode(join_labels(batch.column("domains"))))
        for name in ("deg_out", "frequency"):
            self._entity[name].append(integers(batch.column(name), 0))

    def _chunks(self, batch: pa.RecordBatch) -> None:
        append_texts(self._headings, pc.binary_join(batch.column("headings"), HEADING_SEPARATOR))
        append_texts(self._symbol, batch.column("symbol"))
        path = batch.column("file_path")
        self._path.append(self._paths.encode(pc.if_else(pc.equal(path, ""), pa.scalar(None, path.type), path)))
        for column, name in zip(self._lines, ("start_line", "end_line"), strict=True):
            column.append(integers(batch.column(name), 0))
        self._tokens.append(integers(batch.column("token_count"), 0))
        self._moment.append(integers(batch.column("timestamp"), int(ALWAYS)))


def _clusters(coder: Coder, ids: pa.Array) -> NDArray[np.int32]:
    """The node that each code of an entity's topic stands for; -1 where no such topic is stored."""
    named = pa.array([f"{Kind.CLUSTER}/{key}" for key in coder.codes], pa.large_string())
    return integers(pc.index_in(named, value_set=ids), NOWHERE).astype(np.int32)


def _types(kind: Kind, batch: pa.RecordBatch) -> pa.Array:
    if kind is Kind.CLUSTER:
        return pc.binary_join_element_wise("L", batch.column("level").cast(pa.string()), "")
    if kind is Kind.FILE:
        return pa.repeat("file", batch.num_rows)
    return batch.column("type" if kind is Kind.ENTITY else "kind")


def _search(collection: Collection, batch: pa.RecordBatch) -> list[str]:
    """The text fields of each row as one text."""
    fields = [pc.fill_null(batch.column(name), "") for name in collection.text_fields]
    joined: list[str] = pc.binary_join_element_wise(*fields, " ").to_pylist()
    return joined
