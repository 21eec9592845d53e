"""Vector indexes: made after rows are loaded, where the server has them; everywhere else search is exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from arango.collection import StandardCollection

from aql import load
from hades.stores.arango.client import ArangoSession
from schemas.catalogue import ALL, Collection, collections_in


def make_missing(session: ArangoSession, created: list[str], part: str = ALL) -> Iterator[str]:
    """Make the vector index of each collection that holds vectors; notes say why one was not made.

    One that was made for vectors of another dimension is dropped and made again.
    """
    if not session.has_vector_index:
        yield f"the server ({session.version}) makes no vector index that passes over rows without one; search is exact"
        return
    for collection in collections_in(part):
        if collection.vector_field is None:
            continue
        held = _dimensions(session, collection)
        indexes = _vector_indexes(session, session.patient_db.collection(collection.name))
        if indexes and [one["params"]["dimension"] for one in indexes] == list(held):
            continue
        _drop(session, collection)
        note = _make(session, collection, held)
        if note is None:
            created.append(f"vector index {collection.name}({collection.vector_field})")
        else:
            yield note


def drop_all(session: ArangoSession, part: str = ALL) -> Iterator[str]:
    """Drop every vector index: one that nobody asks costs writes, and refuses vectors of another dimension."""
    for collection in collections_in(part):
        if collection.vector_field is not None and _drop(session, collection):
            yield f"the vector index of {collection.name} was dropped, for HADES_ARANGO_VECTOR_INDEX is not set"


def is_indexed(session: ArangoSession, collection: Collection) -> bool:
    """Whether the collection has a vector index that answers; asked of the server until it says yes."""
    if collection.name not in session.vector_indexed:
        found = _vector_indexes(session, session.db.collection(collection.name))
        if not any(_state(index) == "ready" for index in found):
            return False
        session.vector_indexed.add(collection.name)
    return True


def _state(index: dict[str, Any]) -> str:
    return str(index.get("training_state", index.get("trainingState", "ready")))


def _drop(session: ArangoSession, collection: Collection) -> bool:
    documents = session.patient_db.collection(collection.name)
    found = _vector_indexes(session, documents)
    for index in found:
        drop = partial(documents.delete_index, index["id"], ignore_missing=True)
        session.run(f"dropping the vector index of {collection.name}", drop, again=True, writes=True)
    session.vector_indexed.discard(collection.name)
    return bool(found)


def _dimensions(session: ArangoSession, collection: Collection) -> dict[int, int]:
    """How many vectors there are of each dimension."""
    held = session.query(
        load("maintenance/count_vectors"),
        {"@collection": collection.name, "field": str(collection.vector_field)},
        action=f"counting vectors of {collection.name}",
        patient=True,
    )
    return {one["dimension"]: one["vectors"] for one in held}


def _make(session: ArangoSession, collection: Collection, held: dict[int, int]) -> str | None:
    field = str(collection.vector_field)
    if not held:
        return f"{collection.name} has no vectors yet; provision again after loading for a vector index"
    if len(held) > 1:
        dimensions = ", ".join(map(str, sorted(held)))
        return f"{collection.name} holds vectors of dimensions {dimensions}; an index takes one, so search is exact"
    ((dimension, vectors),) = held.items()
    data = {
        "type": "vector",
        "name": f"near_{field}",
        "fields": [field],
        "sparse": True,
        # The rule of thumb for lists: four times the square root, never more than there are vectors.
        "params": {"metric": "cosine", "dimension": dimension, "nLists": min(vectors, round(4 * math.sqrt(vectors)))},
    }
    documents = session.patient_db.collection(collection.name)
    session.run(
        f"creating the vector index of {collection.name}", lambda: documents.add_index(data), again=False, writes=True
    )
    return None


def _vector_indexes(session: ArangoSession, documents: StandardCollection) -> list[dict[str, Any]]:
    listed = session.run("listing indexes", lambda: cast(list[Any], documents.indexes()), again=True)
    return [index for index in listed if index["type"] == "vector"]
