"""Everything the catalogue declares, from the database to the graphs, made where it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from arango.database import StandardDatabase
from arango.exceptions import ArangoServerError

from hades.errors import NotProvisioned, StoreError
from hades.ports.store import ProvisionReport
from hades.stores.arango import checks, journal, vectors
from hades.stores.arango.accounts import make_accounts
from hades.stores.arango.client import ArangoSession
from schemas.catalogue import ANALYZER, NAME_ANALYZER, Collection, Graph, collection_named
from schemas.parts import collections_in, graphs_in, notes_on, part_of

_NO_DATABASE = 1228
_THERE_ALREADY = frozenset({1207, 1925})  # a database, collection, view or graph of that name


class Stranger(StoreError):
    """Something of a declared name that is not what is declared; whose it is, a person must say."""


@dataclass(frozen=True)
class Analyzer:
    """How the server cuts a text into what it finds it by."""

    type: str
    properties: dict[str, Any]
    features: tuple[str, ...]

    def is_same(self, held: dict[str, Any]) -> bool:
        """Whether one that the server describes does the same."""
        properties = held.get("properties") or {}
        return (
            held.get("type") == self.type
            and set(held.get("features", ())) == set(self.features)
            and all(properties.get(name) == value for name, value in self.properties.items())
            and not properties.get("edgeNgram")
        )


_FOLDED: dict[str, Any] = {"locale": "en", "case": "lower", "accent": False}
_ANALYZERS = {
    ANALYZER: Analyzer("text", {**_FOLDED, "stemming": True, "stopwords": []}, ("frequency", "norm", "position")),
    NAME_ANALYZER: Analyzer("norm", _FOLDED, ("frequency", "norm")),
}


@dataclass(frozen=True)
class Missing:
    """Something declared that the server does not have, and how to make it."""

    name: str
    make: Callable[[], object]


def provision(session: ArangoSession, only: str | None = None, *, vector_index: bool = False) -> ProvisionReport:
    """Make what is missing, in an order in which each thing finds what it needs."""
    created: list[str] = []
    for one in missing(session, only):
        session.run(f"creating {one.name}", _repeatable(one.make), again=True, writes=True)
        created.append(one.name)
    part = hold_part(session)
    notes = [*checks.check_version(session), *notes_on(part), *_strange_graphs(session, part)]
    if vector_index:
        notes += vectors.make_missing(session, created, part)
    else:
        notes += vectors.drop_all(session, part)
    created += make_accounts(session, session.accounts)
    return ProvisionReport(tuple(created), tuple(notes))


def _repeatable(make: Callable[[], object]) -> Callable[[], None]:
    """As good twice as once: a second attempt that finds the thing there was lost on its way back the first time."""
    attempts = 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1
        try:
            make()
        except ArangoServerError as error:
            if attempts == 1 or error.error_code not in _THERE_ALREADY:
                raise

    return attempt


def hold_part(session: ArangoSession) -> str:
    """What the database was made for, from the collections it has."""
    return part_of(_collection_kinds(session, session.patient_db))


def missing(session: ArangoSession, only: str | None = None) -> Iterator[Missing]:
    """What is declared and not there, lazily: later things are looked for after earlier ones were made."""
    if not _database_exists(session):
        yield Missing(f"database {session.database_name}", partial(_create_database, session))
    checks.check_version(session)
    checks.check_sharding(session)
    db = session.patient_db
    part = only or hold_part(session)
    yield from _missing_collections(session, db, part)
    yield from _missing_journal(session, db)
    there = _collection_kinds(session, db)
    for collection in collections_in(part):
        if collection.name in there:
            yield from _missing_indexes(session, db, collection)
    yield from _missing_analyzers(session, db)
    yield from _missing_views(session, db, part)
    present = {graph["name"] for graph in _graphs(session)}
    for graph in graphs_in(part):
        if graph.name not in present:
            yield Missing(f"graph {graph.name}", partial(_create_graph, db, graph))


def _database_exists(session: ArangoSession) -> bool:
    def ask() -> bool:
        try:
            session.db.collections()
        except ArangoServerError as error:
            if error.error_code == _NO_DATABASE:
                return False
            raise
        return True

    return session.run("looking for the database", ask, again=True)


def _create_database(session: ArangoSession) -> None:
    # One shard: custom shard keys would forbid the content-addressed `_key`s. A single server ignores it.
    session.system_database().create_database(session.database_name, sharding="single")


def _missing_collections(session: ArangoSession, db: StandardDatabase, part: str) -> Iterator[Missing]:
    kinds = _collection_kinds(session, db)
    for collection in collections_in(part):
        wanted = "edge" if collection.edge else "document"
        held = kinds.get(collection.name)
        if held is None:
            make = partial(db.create_collection, collection.name, edge=collection.edge is not None)
            yield Missing(f"collection {collection.name}", make)
        elif held != wanted:
            raise Stranger(
                f"{collection.name} is a {held} collection, expected {wanted}; move it away and provision again"
            )


def _collection_kinds(session: ArangoSession, db: StandardDatabase) -> dict[str, str]:
    listed = session.run("listing collections", lambda: cast(list[Any], db.collections()), again=True)
    return {one["name"]: one["type"] for one in listed}


def _missing_indexes(session: ArangoSession, db: StandardDatabase, collection: Collection) -> Iterator[Missing]:
    if not collection.indexes:
        return
    documents = db.collection(collection.name)
    listed = session.run("listing indexes", lambda: cast(list[Any], documents.indexes()), again=True)
    held = {(tuple(one["fields"]), bool(one.get("sparse"))) for one in listed if one["type"] == "persistent"}
    for index in collection.indexes:
        if (index.fields, index.sparse) not in held:
            name = f"index {collection.name}({', '.join(index.fields)})"
            yield Missing(name, partial(documents.add_index, _persistent(index.fields, index.sparse)))


def _missing_journal(session: ArangoSession, db: StandardDatabase) -> Iterator[Missing]:
    """The store's own collection for writes that take several transactions."""
    if journal.COLLECTION not in _collection_kinds(session, db):
        yield Missing(f"collection {journal.COLLECTION}", partial(db.create_collection, journal.COLLECTION))
    documents = db.collection(journal.COLLECTION)
    try:
        listed = session.run("listing indexes", lambda: cast(list[Any], documents.indexes()), again=True)
    except NotProvisioned:  # asked without making it
        return
    held = {tuple(one["fields"]) for one in listed if one["type"] == "persistent"}
    for fields, sparse in journal.INDEXES:
        if fields not in held:
            name = f"index {journal.COLLECTION}({', '.join(fields)})"
            yield Missing(name, partial(documents.add_index, _persistent(fields, sparse)))


def _persistent(fields: tuple[str, ...], sparse: bool) -> dict[str, Any]:
    return {
        "type": "persistent",
        "name": f"by_{'_'.join(fields)}",
        "fields": list(fields),
        "sparse": sparse,
        "unique": False,
        "inBackground": True,
    }


def _missing_analyzers(session: ArangoSession, db: StandardDatabase) -> Iterator[Missing]:
    """Requirement X-37: our own analyzers; one of such a name is used only when it does the same."""
    listed = session.run("listing analyzers", lambda: cast(list[Any], db.analyzers()), again=True)
    own = f"{session.database_name}::"  # one of _system is seen everywhere and is not this database's
    held = {one["name"].removeprefix(own): one for one in listed}
    for name, wanted in _ANALYZERS.items():
        if name not in held:
            make = partial(db.create_analyzer, name, wanted.type, wanted.properties, list(wanted.features))
            yield Missing(f"analyzer {name}", make)
        elif not wanted.is_same(held[name]):
            raise Stranger(
                f"the analyzer {name} exists with another definition; remove it and the views that use it, "
                "then provision again"
            )


def _missing_views(session: ArangoSession, db: StandardDatabase, part: str) -> Iterator[Missing]:
    listed = session.run("listing views", lambda: cast(list[Any], db.views()), again=True)
    present = {one["name"] for one in listed}
    for collection in collections_in(part):
        if collection.view is None:
            continue
        links = {
            collection.name: {
                "includeAllFields": False,
                "fields": {field: {"analyzers": names} for field, names in _analyzers_of(collection).items()},
            }
        }
        if collection.view not in present:
            make = partial(db.create_view, collection.view, "arangosearch", {"links": links})
            yield Missing(f"view {collection.view}", make)
        elif not _covers(session, db, collection):
            yield Missing(
                f"fields of view {collection.view}", partial(db.update_view, collection.view, {"links": links})
            )


def _analyzers_of(collection: Collection) -> dict[str, list[str]]:
    """How each field in the view of a collection is found: by its words, whole as a name, or both."""
    wanted = {field: [ANALYZER] for field in (*collection.text_fields, *collection.described_in)}
    for field in collection.name_fields:
        wanted[field] = [*wanted.get(field, ()), NAME_ANALYZER]
    return wanted


def _covers(session: ArangoSession, db: StandardDatabase, collection: Collection) -> bool:
    view = session.run("reading a view", lambda: cast(dict[str, Any], db.view(str(collection.view))), again=True)
    fields = view.get("links", {}).get(collection.name, {}).get("fields", {})
    return all(
        {name.rpartition("::")[2] for name in fields.get(field, {}).get("analyzers", ())} == set(names)
        for field, names in _analyzers_of(collection).items()
    )


def _graphs(session: ArangoSession) -> list[dict[str, Any]]:
    return session.run("listing graphs", lambda: cast(list[Any], session.patient_db.graphs()), again=True)


def _create_graph(db: StandardDatabase, graph: Graph) -> None:
    db.create_graph(graph.name, edge_definitions=_definitions(graph))


def _definitions(graph: Graph) -> list[dict[str, Any]]:
    shapes = {name: declared.edge for name in graph.edges if (declared := collection_named(name)) and declared.edge}
    return [
        {
            "edge_collection": name,
            "from_vertex_collections": sorted(shape.sources),
            "to_vertex_collections": sorted(shape.targets),
        }
        for name, shape in shapes.items()
    ]


def _strange_graphs(session: ArangoSession, part: str) -> Iterator[str]:
    """Graphs that exist with other edge definitions than the catalogue's; changing them is for a person."""
    held = {one["name"]: one["edge_definitions"] for one in _graphs(session)}
    for graph in graphs_in(part):
        if _comparable(held[graph.name]) != _comparable(_definitions(graph)):
            yield f"graph {graph.name} joins other collections than declared; drop it and provision again"


def _comparable(definitions: list[dict[str, Any]]) -> set[tuple[str, frozenset[str], frozenset[str]]]:
    return {
        (
            one["edge_collection"],
            frozenset(one["from_vertex_collections"]),
            frozenset(one["to_vertex_collections"]),
        )
        for one in definitions
    }
