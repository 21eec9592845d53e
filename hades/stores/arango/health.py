"""What is wrong with the store: things that are missing, edges that dangle, rows that break a rule."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from aql import load
from hades.errors import BadRows, NotProvisioned, StoreDamaged
from hades.ports.store import RowStore
from hades.stores import rows
from hades.stores.arango import provision
from hades.stores.arango.client import ArangoSession
from schemas.catalogue import Collection
from schemas.parts import collections_in


def dangling(session: ArangoSession, part: str) -> dict[str, list[str]]:
    """Keys of edges whose end is missing, in key order, per edge collection of a part that has any."""
    edges = [collection for collection in collections_in(part) if collection.edge]
    found = {collection.name: sorted(_dangling_keys(session, collection)) for collection in edges}
    return {name: keys for name, keys in found.items() if keys}


def problems(session: ArangoSession, store: RowStore) -> Iterator[str]:
    """What is wrong, in sentences."""
    try:
        for one in provision.missing(session):
            yield f"{one.name} is missing; run `hades provision`"
        part = provision.hold_part(session)
        for collection in collections_in(part):
            yield from _bad_rows(collection, store)
        for name, keys in dangling(session, part).items():
            yield f"{name}: {len(keys)} edges without an end"
    except (NotProvisioned, provision.Stranger) as error:
        yield str(error)


def _dangling_keys(session: ArangoSession, collection: Collection) -> set[str]:
    assert collection.edge is not None
    keys: set[str] = set()
    for end, homes in (("_from", collection.edge.sources), ("_to", collection.edge.targets)):
        for home in homes:
            keys.update(
                session.query(
                    load("maintenance/list_dangling"),
                    {"@edges": collection.name, "@nodes": home, "end": end, "home": home},
                    action=f"looking for edges of {collection.name} without an end",
                    patient=True,
                )
            )
    return keys


def _bad_rows(collection: Collection, store: RowStore) -> Iterator[str]:
    """The first row of each batch that does not keep the catalogue's rules."""
    try:
        for batch in store.scan(collection.name):
            try:
                rows.prepare(collection, pa.Table.from_batches([batch]))
            except BadRows as error:
                yield f"{collection.name} (_key {error.key!r}): {error.rule}"
    except StoreDamaged as error:
        yield str(error)
