"""Documents, nodes, edges, bridges and the learned ranker as files of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import SnapshotError
from hades.ports.graph import ALWAYS, EDGES, FOREVER, KINDS, Kind, RankerState
from hades.ports.store import RowStore
from hades.snapshot import adjacency, vectors
from hades.snapshot.facts import normalise
from hades.snapshot.files import (
    LABEL_SEPARATOR,
    NOWHERE,
    Folder,
    encode,
    hash_texts,
    integers,
    join_labels,
    places_of,
    spans,
    whole_texts,
)
from hades.snapshot.lexical import PartWords, WordCounts, write_words
from hades.snapshot.manifest import edge_types
from hades.snapshot.view import GraphView
from models.arrays import Flags, Floats, Longs
from models.ranker.infer import (
    BadModel,
    Graph,
    RankerModel,
    node_features,
    node_states,
    pack,
    undirected,
)
from schemas.catalogue import columns_schema, declared
from schemas.ids import key_of
from schemas.record import TIME


def read_rows(
    store: RowStore,
    name: str,
    columns: Sequence[str],
) -> pa.Table:
    """A whole collection in key order."""
    return pa.Table.from_batches(
        store.scan(name, columns=columns),
        schema=columns_schema(name, columns),
    )


def identify(collection: str, keys: pa.ChunkedArray) -> pa.Array:
    """The `_id` of each key."""
    return whole_texts(
        pc.binary_join_element_wise(
            str(collection),
            keys,
            "/",
        )
    )


def _stated_labels(metadata: str) -> str | None:
    """The tags and authors that a document states, as one text; None where it states none."""
    stated = orjson.loads(metadata or "{}")

    labels: list[str] = []
    for kind in ("tags", "authors"):
        labels += [f"{kind}:{value}".casefold() for value in stated.get(kind) or ()]

    return LABEL_SEPARATOR.join(labels) or None


class Documents:
    """Reads the documents and finds them by `_id`; what is cited and not stored is added at the
    end.

    `document.shift` is the character at which the kept text begins: 0, or where a chunk stands
    whose document is not stored, so that its text and its span are kept all the same.
    """

    def __init__(self, store: RowStore) -> None:
        names = ("_key", "origin", "title", "text", "sha256", "domains", "created", "metadata")
        self._rows = read_rows(store, "documents", names)
        self._ids = identify("documents", self._rows["_key"])
        self._bodies = whole_texts(self._rows["text"])
        self.stored = len(self._ids)
        self._added: list[tuple[str, str, int]] = []  # `_id`, text, where it begins
        self._named: dict[str, int] = {}
        self._nothing: int | None = None

    def write(self, folder: Folder) -> None:
        """Write all documents, after everything that cites them."""
        stored = pa.table(
            {
                "id": self._ids,
                **{name: whole_texts(self._rows[name]) for name in ("origin", "title", "sha256")},
                "body": self._bodies,
                "domains": join_labels(self._rows["domains"]).cast(pa.string()),
                "labels": pa.array(
                    map(_stated_labels, self._rows["metadata"].to_pylist()),
                    pa.string(),
                ),
                "created": pa.array(integers(self._rows["created"].cast(TIME), int(ALWAYS))),
                "shift": pa.array(np.zeros(self.stored, np.int32)),
            }
        )
        rows = pa.concat_tables([stored, self._added_rows(stored.schema)])

        for name in ("domains", "labels"):
            rows = rows.set_column(
                rows.schema.get_field_index(name),
                name,
                encode(rows[name]),
            )

        folder.write_rows("document", rows)

    def _added_rows(self, schema: pa.Schema) -> pa.Table:
        """What is cited and not stored: its text is known, little else."""
        unknown = {
            "title": "",
            "sha256": "",
            "created": int(ALWAYS),
        }

        rows = []
        for document_id, body, shift in self._added:
            known = {
                "id": document_id,
                "origin": key_of(document_id) or document_id,
            }
            rows.append(
                {
                    **known,
                    "body": body,
                    "shift": shift,
                    **unknown,
                }
            )

        return pa.Table.from_pylist(rows, schema=schema)

    def find(self, column: pa.ChunkedArray) -> Longs:
        """The number of each document by `_id`, -1 where the column says nothing, a new number for
        one not stored.
        """
        places = places_of(column, self._ids)
        is_cited = np.asarray(column.is_valid()) & (places == NOWHERE)

        for row in np.flatnonzero(is_cited).tolist():
            document = column[row].as_py()
            if document not in self._named:
                self._named[document] = self._add(document, "", 0)
            places[row] = self._named[document]

        return places

    def find_chunks(self, rows: pa.Table) -> tuple[Longs, Longs, Longs]:
        """Document, start and end of each chunk; one that is not the span of its document is
        refused.
        """
        numbers = places_of(rows["document"], self._ids)
        starts, ends = spans(rows["span"])
        bodies = rows["text"].to_pylist()
        last = NOWHERE
        text = ""

        for row in np.argsort(numbers, kind="stable").tolist():
            number = int(numbers[row])
            start = int(starts[row])
            body = bodies[row]

            if number == NOWHERE and body is None:  # of a part of a graph, without its row
                if self._nothing is None:
                    self._nothing = self._add("", "", 0)

                numbers[row] = self._nothing
                starts[row] = ends[row] = 0
                continue

            if number == NOWHERE:
                start = max(0, start)
                starts[row], ends[row] = start, start + len(body)
                numbers[row] = self._add(
                    rows["document"][row].as_py() or "",
                    body,
                    start,
                )
                continue

            if number != last:
                last = number
                text = self._bodies[number].as_py()

            if start < 0 or text[start : ends[row]] != body:
                raise SnapshotError(
                    f"doc_chunks/{rows['_key'][row].as_py()}: characters {start} to {ends[row]} of "
                    "its document are "
                    "not its text; run the chunk phase of that document again, nothing was "
                    "published"
                )

        return numbers, starts, ends

    def _add(self, document: str, text: str, start: int) -> int:
        self._added.append((document, text, start))
        return self.stored + len(self._added) - 1


NODE_COLUMNS: dict[Kind, tuple[str, ...]] = {
    Kind.ENTITY: (
        "name",
        "canonical_name",
        "aliases",
        "type",
        "cluster_id",
        "summary",
        "deg_out",
        "domain",
        "frequency",
        "domains",
        "embedding",
        "embedding_model",
    ),
    Kind.CHUNK: (
        "document",
        "text",
        "span",
        "kind",
        "headings",
        "title",
        "token_count",
        "timestamp",
        "file_path",
        "symbol",
        "words",
        "start_line",
        "end_line",
        "embedding",
        "token_signs",
        "embedding_model",
    ),
    Kind.CLUSTER: ("level", "name", "summary", "centroid", "embedding_model"),
    Kind.FUNC: (
        "qualified_name",
        "kind",
        "document",
        "span",
        "docstring",
        "embedding",
        "embedding_model",
    ),
    Kind.FILE: ("path", "document"),
}
_NAME = {
    Kind.CHUNK: "title",
    Kind.FUNC: "qualified_name",
    Kind.FILE: "path",
}
_SUMMARY = {
    Kind.ENTITY: "summary",
    Kind.CLUSTER: "summary",
    Kind.FUNC: "docstring",
}


@dataclass(frozen=True)
class NodeSpace:
    """What publishing needs to know of the nodes, by collection, then key; a number is a place in
    `ids`.
    """

    counts: dict[str, int]
    ids: pa.Array
    types: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    longest_name: int
    words: dict[Kind, WordCounts]


def write_nodes(
    store: RowStore,
    folder: Folder,
    documents: Documents,
    words: Mapping[Kind, PartWords],
) -> NodeSpace:
    """Write all nodes; each collection is read once, in key order."""
    counts: dict[str, int] = {}
    counted: dict[Kind, WordCounts] = {}
    models: dict[str, tuple[str, ...]] = {}
    tables: list[pa.Table] = []
    ids: list[pa.Array] = []

    longest_name = 0
    for kind in KINDS:
        rows = read_rows(
            store,
            kind.value,
            ("_key", *NODE_COLUMNS[kind]),
        )
        collection = declared(kind.value)
        ids.append(identify(kind.value, rows["_key"]))
        tables.append(_common_columns(kind, rows, documents))

        if kind is Kind.ENTITY:
            longest_name = write_names(folder, rows)
            entities = rows.select(["cluster_id", "domain", "domains", "deg_out", "frequency"])

        if kind is Kind.CHUNK:
            _write_chunks(folder, rows)

        if collection.text_fields:
            texts = []
            for name in collection.text_fields:
                texts.append(pc.fill_null(rows[name], ""))

            bodies = pc.binary_join_element_wise(*texts, " ").to_pylist()
            counted[kind] = write_words(
                folder,
                f"lexical.{kind}",
                bodies,
                words.get(kind),
            )

        if collection.vector_field:
            models[kind.value] = vectors.write_vectors(
                folder,
                kind.value,
                rows,
                collection.vector_field,
            )

        counts[kind.value] = rows.num_rows

    all_ids = pa.concat_arrays(ids)
    nodes = pa.concat_tables(tables)
    types = encode(nodes["type"])
    codes = pa.array(integers(types.indices, 0).astype(np.uint8))
    folder.write_rows(
        "node",
        nodes.set_column(
            nodes.schema.get_field_index("type"),
            "type",
            codes,
        ),
    )
    hashes = hash_texts(all_ids.to_pylist())
    order = np.argsort(hashes, kind="stable")
    folder.write_arrays(
        "node_id",
        {
            "hash": hashes[order],
            "number": order.astype(np.int32),
        },
    )
    _write_entities(folder, entities, all_ids)
    return NodeSpace(
        counts,
        all_ids,
        tuple(types.dictionary.to_pylist()),
        models,
        longest_name,
        counted,
    )


def _common_columns(
    kind: Kind,
    rows: pa.Table,
    documents: Documents,
) -> pa.Table:
    nowhere = np.full(rows.num_rows, NOWHERE, np.int64)
    if kind is Kind.CHUNK:
        cited = documents.find_chunks(rows)
    elif "document" in rows.column_names:
        if "span" in rows.column_names:
            cited_spans = spans(rows["span"])
        else:
            cited_spans = (nowhere, nowhere)

        cited = (documents.find(rows["document"]), *cited_spans)
    else:
        cited = (nowhere, nowhere, nowhere)

    if kind in _SUMMARY:
        summary = rows[_SUMMARY[kind]]
    else:
        summary = pa.nulls(rows.num_rows, pa.string())

    return pa.table(
        {
            "key": whole_texts(rows["_key"]),
            "name": whole_texts(rows[_NAME.get(kind, "name")]),
            "summary": whole_texts(summary),
            "type": _types(kind, rows),
            **_cited_columns(cited),
        }
    )


def _cited_columns(cited: Sequence[Longs]) -> dict[str, pa.Array]:
    arrays = [pa.array(values, pa.int32()) for values in cited]
    return dict(zip(("document", "start", "end"), arrays, strict=True))


def _types(kind: Kind, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    if kind is Kind.CLUSTER:
        return pc.binary_join_element_wise(
            "L",
            rows["level"].cast(pa.string()),
            "",
        )
    if kind is Kind.FILE:
        return pa.repeat("file", rows.num_rows)
    return rows["type" if kind is Kind.ENTITY else "kind"]


def _write_entities(
    folder: Folder,
    rows: pa.Table,
    ids: pa.Array,
) -> None:
    topics = pc.binary_join_element_wise(
        str(Kind.CLUSTER),
        rows["cluster_id"],
        "/",
    )
    columns = {
        "cluster_id": encode(rows["cluster_id"]),
        "cluster": pa.array(places_of(topics, ids), pa.int32()),
        "domain": encode(rows["domain"]),
        "domains": encode(join_labels(rows["domains"])),
        "deg_out": pa.array(integers(rows["deg_out"], 0), pa.int32()),
        "frequency": pa.array(integers(rows["frequency"], 0), pa.int32()),
    }
    folder.write_rows("entity", pa.table(columns))


def _write_chunks(folder: Folder, rows: pa.Table) -> None:
    columns = {
        "headings": rows["headings"],
        "symbol": whole_texts(rows["symbol"]),
        "path": whole_texts(rows["file_path"]),
        "token_signs": whole_texts(rows["token_signs"]),
        "tokens": pa.array(integers(rows["token_count"], 0), pa.int32()),
        "start_line": pa.array(integers(rows["start_line"], 0), pa.int32()),
        "end_line": pa.array(integers(rows["end_line"], 0), pa.int32()),
        "moment": pa.array(integers(rows["timestamp"], int(ALWAYS))),
    }
    folder.write_rows("chunk", pa.table(columns))


def write_names(folder: Folder, entities: pa.Table) -> int:
    """Every form under which an entity is found, by hash, with its number; how many words the
    longest has.
    """
    numbers = np.arange(entities.num_rows, dtype=np.int64)
    aliases = entities["aliases"]
    several = np.repeat(numbers, integers(pc.list_value_length(aliases), 0))
    spellings = (entities["name"], entities["canonical_name"], pc.list_flatten(aliases))
    names = pa.concat_arrays([whole_texts(texts) for texts in spellings])
    owners = np.concatenate([numbers, numbers, several])
    spelled = names.dictionary_encode()

    forms = []
    for name in spelled.dictionary.to_pylist():
        forms.append(normalise(name))

    form_of = integers(spelled.indices, 0)
    is_name = np.array([bool(form) for form in forms], np.bool_)[form_of]
    hashes = hash_texts(forms)[form_of][is_name]
    owners = owners[is_name]
    order = np.lexsort((owners, hashes))
    hashes = hashes[order]
    owners = owners[order]
    is_new = np.ones(len(hashes), np.bool_)
    is_new[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
    folder.write_arrays(
        "name",
        {
            "hash": hashes[is_new],
            "number": owners[is_new].astype(np.int32),
        },
    )
    return max((form.count(" ") + 1 for form in forms if form), default=0)


_BOUNDS = {
    "valid_from": ALWAYS,
    "valid_until": FOREVER,
    "recorded_at": ALWAYS,
    "retracted_at": FOREVER,
}
_MAX_EDGES = np.iinfo(np.int32).max


@dataclass(frozen=True)
class EdgeSpace:
    """The edges that were written, by handle: by collection, then key. `has_ended`: an interval
    closed.
    """

    counts: dict[str, int]
    keys: pa.Array
    source: Longs
    target: Longs
    weight: Floats
    has_ended: Flags
    has_validity: bool


def write_edges(
    store: RowStore,
    folder: Folder,
    documents: Documents,
    nodes: NodeSpace,
) -> EdgeSpace:
    """Write all edges, then both directions of their adjacency; how many each collection has."""
    counts: dict[str, int] = {}

    tables: list[pa.Table] = []
    for name in EDGES:
        tables.append(_edge_columns(store, name, documents, nodes))
        counts[name] = tables[-1].num_rows

    edges = pa.concat_tables(tables).combine_chunks()
    if edges.num_rows > _MAX_EDGES:
        raise SnapshotError(
            f"{edges.num_rows} edges are more than a snapshot holds ({_MAX_EDGES}); use "
            "HADES_VIEW=arango"
        )

    bounds = {name: edges[name].to_numpy() for name in _BOUNDS}
    has_validity = any((values != _BOUNDS[name]).any() for name, values in bounds.items())
    folder.write_rows(
        "edge",
        edges if has_validity else edges.drop_columns(list(_BOUNDS)),
    )
    columns = edges.select(["source", "target", "type", "weight"])
    source, target, types, weight = (column.to_numpy() for column in columns.itercolumns())
    # A missing weight counts 1.0.
    effective = np.where(np.isnan(weight), 1.0, weight).astype(np.float32)

    for side, near, far in (("out", source, target), ("into", target, source)):
        rows = adjacency.build(
            near,
            far,
            types,
            effective,
            len(nodes.ids),
        )
        folder.write_arrays(side, vars(rows))

    has_ended = (bounds["valid_until"] != FOREVER) | (bounds["retracted_at"] != FOREVER)
    return EdgeSpace(
        counts,
        edges["key"].combine_chunks(),
        source,
        target,
        weight,
        has_ended,
        has_validity,
    )


def _edge_columns(
    store: RowStore,
    name: str,
    documents: Documents,
    nodes: NodeSpace,
) -> pa.Table:
    stored = {column.name for column in declared(name).columns}
    optional = []
    for column in ("provenance", "label"):
        if column in stored:
            optional.append(column)

    rows = read_rows(
        store,
        name,
        ("_key", "_from", "_to", "type", "weight", *_BOUNDS, *optional),
    )
    nowhere = np.full(rows.num_rows, NOWHERE, np.int64)
    cited = (nowhere, nowhere, nowhere)

    if "provenance" in stored:
        document, span = (pc.struct_field(rows["provenance"], part) for part in ("doc", "span"))
        cited = (documents.find(document), *spans(span))

    if "label" in stored:
        label = rows["label"]
    else:
        label = pa.nulls(rows.num_rows, pa.string())

    types = places_of(rows["type"], pa.array(edge_types(), pa.large_string()))
    columns = {
        "key": whole_texts(rows["_key"]),
        "label": whole_texts(label),
        "source": pa.array(_number_ends(name, rows, "_from", nodes.ids), pa.int32()),
        "target": pa.array(_number_ends(name, rows, "_to", nodes.ids), pa.int32()),
        "type": pa.array(types, pa.uint8()),
        "weight": pa.array(np.asarray(rows["weight"].cast(pa.float64()), np.float64)),
        **_cited_columns(cited),
    }
    for bound, absent in _BOUNDS.items():
        columns[bound] = pa.array(integers(rows[bound], int(absent)))

    return pa.table(columns)


def _number_ends(
    name: str,
    rows: pa.Table,
    end: str,
    ids: pa.Array,
) -> Longs:
    numbers = places_of(rows[end], ids)
    if (numbers == NOWHERE).any():
        row = int(np.argmax(numbers == NOWHERE))
        raise SnapshotError(
            f"{name}/{rows['_key'][row].as_py()}: {end} is {rows[end][row].as_py()}, which is not "
            "stored; delete the "
            "edge or write the node, nothing was published"
        )

    return numbers


_COLUMNS = (
    "from_cluster",
    "to_cluster",
    "nodes",
    "edges",
    "weight",
    "cost",
    "provenance",
    "generation",
    "pinned",
)


def write_bridges(
    store: RowStore,
    folder: Folder,
    nodes: NodeSpace,
    edges: EdgeSpace,
    generation: str,
) -> int:
    """Write bridges of this generation whose edges are all there as they were, in key order; how
    many.

    `bridge.node` holds the nodes of row i at `bridge.starts[i]:bridge.starts[i + 1]`; its edges,
    one fewer a row, stand in `bridge.edge` from `bridge.starts[i] - i`. `bridge.topic`, sorted,
    with `bridge.row` finds rows by topic.
    """
    rows = read_rows(
        store,
        "bridge_cache",
        ("_key", *_COLUMNS),
    )
    if generation:
        rows = rows.filter(pc.equal(rows["generation"], generation))
    else:
        rows = rows.slice(0, 0)

    from_ids, to_ids = (identify(Kind.CLUSTER, rows[end]) for end in ("from_cluster", "to_cluster"))
    topics = np.column_stack([places_of(from_ids, nodes.ids), places_of(to_ids, nodes.ids)])
    numbers = places_of(pc.list_flatten(rows["nodes"]), nodes.ids)
    keys = pc.replace_substring_regex(
        pc.list_flatten(rows["edges"]),
        r"^[^/]*/",
        "",
    )
    # Relations are the first collection of edges, so a place is a handle.
    handles = places_of(keys, edges.keys[: edges.counts["relations"]])
    n_nodes = integers(pc.list_value_length(rows["nodes"]), 0)
    n_edges = integers(pc.list_value_length(rows["edges"]), 0)
    node_row = np.repeat(np.arange(rows.num_rows), n_nodes)
    edge_row = np.repeat(np.arange(rows.num_rows), n_edges)
    is_kept = topics.min(axis=1) != NOWHERE
    is_kept[node_row[numbers == NOWHERE]] = False
    is_kept[edge_row[_are_stale(rows, handles, edges)]] = False
    numbers = numbers[is_kept[node_row]]
    handles = handles[is_kept[edge_row]]
    n_nodes = n_nodes[is_kept]
    n_edges = n_edges[is_kept]
    rows = rows.filter(pa.array(is_kept))
    _check_bridges(
        rows,
        (n_nodes, n_edges),
        numbers,
        handles,
        edges,
    )
    ends = topics[is_kept].astype(np.int32)
    order = np.argsort(ends.ravel(), kind="stable")
    folder.write_arrays(
        "bridge",
        {
            "starts": np.append(0, np.cumsum(n_nodes)),
            "node": numbers.astype(np.int32),
            "edge": handles.astype(np.int32),
            "from": ends[:, 0],
            "to": ends[:, 1],
            "weight": np.asarray(rows["weight"], np.float64),
            "cost": np.asarray(rows["cost"], np.float64),
            "pinned": integers(rows["pinned"], 0).astype(np.uint8),
            "topic": ends.ravel()[order],
            "row": np.repeat(np.arange(len(ends), dtype=np.int32), 2)[order],
        },
    )
    return len(ends)


def _are_stale(
    rows: pa.Table,
    handles: Longs,
    edges: EdgeSpace,
) -> Flags:
    """Which edges of bridges are gone, have ended, or weigh otherwise than when their bridge was
    found.
    """
    weights: list[float | None] = []  # as they were then
    for row in rows.select(["edges", "provenance"]).to_pylist():
        steps = orjson.loads(row["provenance"]).get("edges", ())
        weight_of = {}
        for step in steps:
            weight_of[step["id"]] = step["weight"]

        weights += map(weight_of.get, row["edges"])

    is_there = handles != NOWHERE
    known = handles[is_there]
    has_moved = edges.weight[known] != np.array(weights, np.float64)[is_there]
    are_stale: Flags = ~is_there
    are_stale[is_there] = has_moved | edges.has_ended[known]
    return are_stale


def _check_bridges(
    rows: pa.Table,
    lengths: tuple[Longs, Longs],
    numbers: Longs,
    handles: Longs,
    edges: EdgeSpace,
) -> None:
    """Refuse a bridge that is no path: it was written wrong, and waiting does not fix it.

    `lengths` are the nodes and the edges of each row.
    """
    n_nodes, n_edges = lengths
    wrong = np.flatnonzero((n_nodes != n_edges + 1) | (n_edges < 1))

    if not len(wrong):
        node_row = np.repeat(np.arange(rows.num_rows), n_nodes)
        edge_row = np.repeat(np.arange(rows.num_rows), n_edges)
        tails = numbers[np.diff(node_row, append=-1) == 0]
        heads = numbers[np.diff(node_row, prepend=-1) == 0]
        steps = np.sort(np.column_stack([tails, heads]))
        joined = np.sort(np.column_stack([edges.source[handles], edges.target[handles]]))
        wrong = edge_row[(joined != steps).any(axis=1)]

    if len(wrong):
        raise SnapshotError(
            f"bridge_cache/{rows['_key'][int(wrong[0])].as_py()}: its edges do not join its nodes "
            "one after the other; "
            "delete the row or run `hades run build_bridges`, nothing was published"
        )


def graph_of(view: GraphView, model: str) -> Graph:
    """Every node of a view with what the network sees of it, and all edges both ways."""
    adjacency = view.adjacency()
    numbers = np.arange(sum(view.info.nodes.values()), dtype=np.int64)
    vectors, _ = view.vectors(numbers, model=model)
    kinds = view.kinds(numbers)
    levels = np.zeros(len(numbers), np.uint8)
    topics = numbers[kinds == KINDS.index(Kind.CLUSTER)]
    types = [fact.type[1:] for fact in view.nodes(topics)]
    levels[topics] = [int(level) if level.isdigit() else 0 for level in types]
    out = adjacency.out
    into = adjacency.into
    features = node_features(
        vectors,
        kinds,
        levels,
        np.diff(out.starts),
        np.diff(into.starts),
    )
    starts, targets = undirected(
        out.starts,
        out.target,
        into.starts,
        into.target,
    )
    return Graph(features, starts, targets)


def fit_ranker(view: GraphView, model: RankerModel) -> RankerState:
    """The arrays of a ranker for a snapshot that is being written; `view` is what was written of
    it.
    """
    if not model.has_states:
        signature, numbers = pack(model)
        states = np.zeros((0, 1), np.float16)
        return RankerState(
            np.frombuffer(signature, np.uint8),
            numbers,
            states,
        )

    graph = graph_of(view, str(model.signature["model"]))
    if graph.features.shape[1] != model.arrays["first.own"].shape[0]:
        raise BadModel(
            f"it was fitted to vectors of {model.signature['model']}, of which this graph has none "
            "of that length"
        )

    signature, numbers = pack(model)
    states = node_states(
        model,
        graph.features,
        graph.starts,
        graph.targets,
    )
    return RankerState(
        np.frombuffer(signature, np.uint8),
        numbers,
        states,
    )
