"""What a snapshot is made under, beside the rows: declarations of the catalogue and generations of what was built.

Reading it tells whether a release has work; only one that has loads what writes a snapshot.
"""

from __future__ import annotations

import hashlib
import json

from hades.build_state import ledger
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import RowStore
from schemas.catalogue import collection_named

RANKER = "ranker"
PARTS = (ledger.HIERARCHY, ledger.WEIGHTS, ledger.BRIDGES, RANKER)


def parts_of(store: RowStore) -> dict[str, str]:
    """The generation of each thing that was built into the store, empty where it never was."""
    done = {stage: ledger.complete(store, stage) for stage in PARTS}
    return {stage: "" if one is None else one.generation for stage, one in done.items()}


def catalogue_hash() -> str:
    """The hash of the declarations a snapshot was made under: columns of what it reads, and its edge types."""
    digest = hashlib.sha256(json.dumps(edge_types()).encode())
    for name in ("documents", *KINDS, *EDGES):
        collection = collection_named(name)
        assert collection is not None
        columns = [[column.name, str(column.type), column.nullable] for column in collection.columns]
        digest.update(json.dumps([collection.name, columns, list(collection.text_fields)]).encode())
    return digest.hexdigest()


def edge_types() -> tuple[str, ...]:
    """Every type an edge of the graph can have, in catalogue order; its place is its code in every view."""
    found: dict[str, None] = {}
    for name in EDGES:
        collection = collection_named(name)
        assert collection is not None
        choices = next(column.choices for column in collection.columns if column.name == "type")
        found.update(dict.fromkeys(choices))
    return tuple(found)
