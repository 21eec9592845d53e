"""Vector indexes: made after rows are loaded, where the server has them; everywhere else search is exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from arango.collection import StandardCollection

from aql import load
from hades.stores.arango.client import ArangoSession
from schemas.catalogue import COLLECTIONS, Collection
from schemas.parts import ALL, collections_in


def make_missing(session: ArangoSession, created: list[str], part: str = ALL) -> Iterator[str]:
    """Make the vector index of each collection that holds vectors; notes say why one was not made (X-34)."""
    if not session.has_vector_index:
        yield f"the server ({session.version}) makes no vector index that passes over rows without one; search is exact"
        return
    for collection in collections_in(part):
        if collection.vector_field is None or is_indexed(session, collection):
            continue
        note = _make(session, collection)
        if note is None:
            created.append(f"vector index {collection.name}({collection.vector_field})")
        else:
            yield note


def rebuild(session: ArangoSession) -> list[str]:
    """Drop and make every vector index anew: it is trained once, and rows that come later make it worse."""
    session.require_admin("rebuilding vector indexes")
    if not session.has_vector_index:
        return []
    for collection in COLLECTIONS:
        documents = session.patient_db.collection(collection.name)
        for index in _vector_indexes(session, documents):
            drop = partial(documents.delete_index, index["id"], ignore_missing=True)
            session.run(f"dropping the vector index of {collection.name}", drop, again=True, writes=True)
    session.vector_indexed.clear()
    created: list[str] = []
    list(make_missing(session, created))
    return created


def is_indexed(session: ArangoSession, collection: Collection) -> bool:
    """Whether the collection has a vector index; asked of the server until it says yes."""
    if collection.name not in session.vector_indexed:
        found = _vector_indexes(session, session.db.collection(collection.name))
        if any(index.get("training_state", "ready") == "ready" for index in found):
            session.vector_indexed.add(collection.name)
        return bool(found)
    return True


def _make(session: ArangoSession, collection: Collection) -> str | None:
    field = str(collection.vector_field)
    held = session.query(
        load("maintenance/count_vectors"),
        {"@collection": collection.name, "field": field},
        action=f"counting vectors of {collection.name}",
        patient=True,
    )
    if not held:
        return f"{collection.name} has no vectors yet; provision again after loading for a vector index"
    if len(held) > 1:
        dimensions = ", ".join(str(one["dimension"]) for one in held)
        return f"{collection.name} holds vectors of dimensions {dimensions}; an index takes one, so search is exact"
    dimension, vectors = held[0]["dimension"], held[0]["vectors"]
    data = {
        "type": "vector",
        "name": f"near_{field}",
        "fields": [field],
        "sparse": True,
        "params": {"metric": "cosine", "dimension": dimension, "nLists": _lists(vectors)},
    }
    documents = session.patient_db.collection(collection.name)
    session.run(
        f"creating the vector index of {collection.name}", lambda: documents.add_index(data), again=False, writes=True
    )
    return None


def _lists(vectors: int) -> int:
    """The rule of thumb: four times the square root, never more than there are vectors."""
    return max(1, min(vectors, round(4 * math.sqrt(vectors))))


def _vector_indexes(session: ArangoSession, documents: StandardCollection) -> list[dict[str, Any]]:
    listed = session.run("listing indexes", lambda: cast(list[Any], documents.indexes()), again=True)
    return [index for index in listed if index["type"] == "vector"]
