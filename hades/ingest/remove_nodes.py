"""Taking nodes out of the store together with every edge that touches them."""

from __future__ import annotations

from collections.abc import Sequence

from hades.ports.store import RowStore, Term
from schemas.catalogue import edge_collections
from schemas.ids import node_id

# What belongs to one document and goes with it, nodes before what they stand in.
OWNED_BY_DOCUMENT = ("doc_chunks", "funcs", "files", "papers_raw")


def remove_nodes(store: RowStore, collection: str, keys: Sequence[str]) -> dict[str, int]:
    """Delete nodes, their edges first; how many rows went, by collection."""
    if not keys:
        return {}
    gone: dict[str, int] = {}
    identifiers = [node_id(collection, key) for key in keys]
    for edges in edge_collections():
        shape = edges.edge
        assert shape is not None
        for end, joined in (("_from", shape.sources), ("_to", shape.targets)):
            if collection in joined:
                count = store.delete(edges.name, where=[Term(end, "in", identifiers)])
                gone[edges.name] = gone.get(edges.name, 0) + count
    gone[collection] = store.delete(collection, keys=keys)
    return {name: count for name, count in gone.items() if count}


def keys_of_documents(store: RowStore, collection: str, documents: Sequence[str]) -> dict[str, list[str]]:
    """Keys of the rows that belong to these documents, by document key."""
    wanted = [node_id("documents", key) for key in documents]
    found: dict[str, list[str]] = {key: [] for key in documents}
    for batch in store.scan(collection, where=[Term("document", "in", wanted)], columns=["document"]):
        for document, key in zip(batch.column("document").to_pylist(), batch.column("_key").to_pylist(), strict=True):
            found[document.partition("/")[2]].append(key)
    return found
