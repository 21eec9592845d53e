"""Create the catalogue, indexes and users; check the server."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from arango.collection import StandardCollection
from arango.database import StandardDatabase
from arango.exceptions import ArangoServerError

from aql import load
from hades.errors import NotProvisioned, StoreError
from hades.ports.store import Check, ProvisionReport, RowStore
from hades.stores import row_checks
from hades.stores.arango import write
from hades.stores.arango.client import Account, ArangoSession
from hades.stores.arango.cluster import check_cluster, is_cluster
from schemas.catalogue import (
    ALL,
    ANALYZER,
    NAME_ANALYZER,
    Collection,
    Graph,
    collection_named,
    collections_in,
    graphs_in,
    notes_on,
    part_of,
)
from schemas.record import JsonObject

OLDEST, ADVISED = (3, 12, 0), (3, 12, 4)
CLOCK_S = 5.0


class WrongServer(StoreError):
    """A server, or something of a declared name on it, that HADES cannot keep its promises on."""


def check_server(session: ArangoSession) -> None:
    """Refuse a server that is too old, or a database of a cluster that spreads collections over
    servers.

    Order and atomic commits need one server.
    """
    if session.version_numbers < OLDEST:
        raise WrongServer(
            f"the server is ArangoDB {session.version}; HADES needs 3.12.0, better 3.12.9 or "
            "newer: upgrade the server"
        )

    sharding = _sharding(session)
    if sharding is not None and sharding != "single":
        raise WrongServer(
            f"the database {session.database_name} is sharded ({sharding or 'flexible'}), expected "
            "OneShard; "
            "move it away or choose another HADES_ARANGO_DATABASE, and let `hades provision` "
            "create it"
        )


def findings(session: ArangoSession) -> Iterator[Check]:
    """Everything that can be asked with this account."""
    old = session.version_numbers < ADVISED
    yield Check(
        "server version",
        "warn" if old else "ok",
        session.version,
        _note_on_old_server(session) if old else "",
    )
    sharding = _sharding(session)

    if sharding in (None, "single"):
        yield Check(
            "sharding",
            "ok",
            sharding or "a single server",
        )
    else:
        step = "let `hades provision` create a database of its own"
        yield Check(
            "sharding",
            "fail",
            sharding or "flexible",
            step,
        )

    yield from check_cluster(session)
    yield _check_clock(session)
    yield _check_rights(session)
    size = session.unit_size
    yield Check(
        "transaction limit",
        "ok",
        f"{size.limit_bytes // 2**20} MiB ({size.source}); one unit writes at most "
        f"{size.unit_bytes // 2**20} MiB",
    )
    unfinished = write.complete_writes(session)

    if unfinished is None:
        yield Check(
            "write journal",
            "fail",
            "missing",
            "hades provision",
        )
    elif unfinished:
        yield Check(
            "write journal",
            "warn",
            f"{len(unfinished)} unfinished writes",
            "the next build or ingest finishes them",
        )
    else:
        yield Check("write journal", "ok", "nothing unfinished")


def _check_clock(session: ArangoSession) -> Check:
    began = time.time()
    query = load("maintenance/read_clock")
    action = "asking the server's time"
    server_time = session.query(query, {}, action=action)[0] / 1000
    skew = server_time - (began + time.time()) / 2

    if abs(skew) > CLOCK_S:
        step = (
            "set both clocks by NTP: validity intervals are compared with the time of this machine"
        )
        return Check(
            "clock",
            "warn",
            f"the server's clock differs by {skew:+.1f} s",
            step,
        )

    return Check("clock", "ok", f"within {CLOCK_S:.0f} s")


def _check_rights(session: ArangoSession) -> Check:
    user = session.user
    try:
        right = session.db.permission(user, session.database_name)
    except ArangoServerError:
        return Check(
            "rights",
            "ok",
            f"{user}; which rights, the server does not tell this account",
        )

    if right == "none":
        step = f"grant {user} `ro` (questions) or `rw` (builds) on {session.database_name}"
        return Check(
            "rights",
            "fail",
            f"{user} may not read the database",
            step,
        )

    return Check(
        "rights",
        "ok",
        f"{user} has {right} on {session.database_name}",
    )


def _sharding(session: ArangoSession) -> str | None:
    """How a cluster's database is sharded; None on a single server or where the account may not
    ask.
    """
    try:
        if not is_cluster(session):
            return None
        properties = cast(JsonObject, session.db.properties())
    except ArangoServerError:
        return None

    return str(properties.get("sharding") or "")


def _note_on_old_server(session: ArangoSession) -> str:
    return (
        f"the server is ArangoDB {session.version}. Off on it: the vector index (searches compare "
        "every vector), and "
        "transactions larger than 128 MiB unless the server allows more. A deployment created "
        "before 3.12.4 can become "
        "read-only later: upgrade to 3.12.9 or newer before production"
    )


_EVERY_COLLECTION = "*"


def make_accounts(
    session: ArangoSession,
    accounts: Sequence[Account],
) -> Iterator[str]:
    """Make the accounts that are missing, give each its password and its rights on this database;
    names of new ones.
    """
    to_make = [account for account in accounts if account.user != session.user]
    if not to_make:
        return

    system = session.system_database()
    users = {user["username"] for user in _list_existing(session, "users", system.users)}
    for account in to_make:
        if account.user in users:
            write = system.update_user
        else:
            write = system.create_user

        session.run(
            f"making the user {account.user}",
            partial(
                write,
                account.user,
                password=account.password,
                active=True,
            ),
            again=False,
            writes=True,
        )
        # A right on the database alone says nothing of its collections.
        for collection in (None, _EVERY_COLLECTION):
            grant = partial(
                system.update_permission,
                account.user,
                account.right,
                session.database_name,
                collection=collection,
            )
            session.run(
                f"granting {account.user} {account.right}",
                grant,
                again=True,
                writes=True,
            )

        if account.user not in users:
            yield f"user {account.user} ({account.right} on {session.database_name})"


_THERE_ALREADY = frozenset({1207, 1925})  # a database, collection, view or graph of that name
# Something declared that the server does not have, and how to make it.
Missing = tuple[str, Callable[[], object]]


@dataclass(frozen=True)
class Analyzer:
    """How the server cuts a text into what it finds it by."""

    type: str
    properties: JsonObject
    features: tuple[str, ...]

    def is_same(self, described: JsonObject) -> bool:
        """Whether one that the server describes does the same."""
        if described.get("type") != self.type:
            return False
        if set(described.get("features", ())) != set(self.features):
            return False

        properties = described.get("properties") or {}
        if properties.get("edgeNgram"):
            return False

        return all(properties.get(name) == value for name, value in self.properties.items())


_FOLDED: JsonObject = {
    "locale": "en",
    "case": "lower",
    "accent": False,
}
ANALYZERS = {
    ANALYZER: Analyzer(
        "text",
        {
            **_FOLDED,
            "stemming": True,
            "stopwords": [],
        },
        ("frequency", "norm", "position"),
    ),
    NAME_ANALYZER: Analyzer("norm", _FOLDED, ("frequency", "norm")),
}


def provision(
    session: ArangoSession,
    only: str | None = None,
    *,
    replicas: int | None = None,
    vector_index: bool = False,
) -> ProvisionReport:
    """Make what is missing, in an order in which each thing finds what it needs."""
    created: list[str] = []
    for name, make in missing(session, only, replicas):
        session.run(
            f"creating {name}",
            partial(_create_if_missing, make),
            again=True,
            writes=True,
        )
        created.append(name)

    part = hold_part(session)
    notes = list(notes_on(part))
    if session.version_numbers < ADVISED:
        notes.insert(0, _note_on_old_server(session))

    if vector_index:
        notes += make_vector_indexes(session, created, part)
    else:  # one that nobody asks costs writes, and refuses vectors of another dimension
        dropped = []
        for collection in collections_in(part):
            if collection.vector_field is not None and _drop_vector_index(session, collection):
                dropped.append(collection.name)

        reason = "was dropped, for HADES_ARANGO_VECTOR_INDEX is not set"
        notes += [f"the vector index of {name} {reason}" for name in dropped]

    if replicas is not None and f"database {session.database_name}" not in created:
        notes.append(
            f"the database {session.database_name} was there already and keeps its copies; "
            "--replicas counts for a new one"
        )

    created += make_accounts(session, session.accounts)
    return ProvisionReport(tuple(created), tuple(notes))


def _create_if_missing(make: Callable[[], object]) -> None:
    """Make a thing; it may be there since, for another made it or the first answer was lost."""
    try:
        make()
    except ArangoServerError as error:
        if error.error_code not in _THERE_ALREADY:
            raise


def hold_part(session: ArangoSession) -> str:
    """What the database was made for, from the collections it has."""
    return part_of(_collection_kinds(session, session.patient_db))


def missing(
    session: ArangoSession,
    only: str | None = None,
    replicas: int | None = None,
) -> Iterator[Missing]:
    """What is declared and not there, lazily: later things are looked for after earlier ones were
    made. `replicas` says on how many servers of a cluster each row of a new database is.
    """
    if not _database_exists(session):
        # One shard: custom shard keys would forbid the content-addressed `_key`s. A single server
        # ignores it.
        make = partial(
            session.system_database().create_database,
            session.database_name,
            sharding="single",
            replication_factor=replicas,
            write_concern=None if replicas is None else replicas // 2 + replicas % 2,
        )
        yield f"database {session.database_name}", make

    check_server(session)
    db = session.patient_db
    part = only or hold_part(session)
    yield from _missing_collections(session, db, part)

    # The store's own, for writes of several transactions.
    if write.COLLECTION not in _collection_kinds(session, db):
        yield f"collection {write.COLLECTION}", partial(db.create_collection, write.COLLECTION)

    kinds = _collection_kinds(session, db)
    if write.COLLECTION in kinds:
        yield from _missing_indexes(
            session,
            db,
            write.COLLECTION,
            write.INDEXES,
        )

    for collection in collections_in(part):
        if collection.name in kinds and collection.indexes:
            indexes = [(index.fields, index.sparse) for index in collection.indexes]
            yield from _missing_indexes(
                session,
                db,
                collection.name,
                indexes,
            )

    yield from _missing_analyzers(session, db)
    yield from _missing_views(session, db, part)
    present = {graph["name"] for graph in _list_existing(session, "graphs", db.graphs)}

    for graph in graphs_in(part):
        if graph.name not in present:
            yield f"graph {graph.name}", partial(_create_graph, db, graph)


def _list_existing(
    session: ArangoSession,
    kind: str,
    ask: Callable[[], object],
) -> list[Any]:
    """What the server has of a kind."""
    return session.run(
        f"listing {kind}",
        lambda: cast(list[Any], ask()),
        again=True,
    )


def _database_exists(session: ArangoSession) -> bool:
    try:
        session.run(
            "looking for the database",
            session.db.collections,
            again=True,
        )
    except NotProvisioned:
        return False

    return True


def _missing_collections(
    session: ArangoSession,
    db: StandardDatabase,
    part: str,
) -> Iterator[Missing]:
    kinds = _collection_kinds(session, db)
    for collection in collections_in(part):
        expected = "edge" if collection.edge else "document"
        kind = kinds.get(collection.name)
        if kind is None:
            make = partial(
                db.create_collection,
                collection.name,
                edge=collection.edge is not None,
            )
            yield f"collection {collection.name}", make
        elif kind != expected:
            raise WrongServer(
                f"{collection.name} is a {kind} collection, expected {expected}; move it away and "
                "provision again"
            )


def _collection_kinds(session: ArangoSession, db: StandardDatabase) -> dict[str, str]:
    return {
        collection["name"]: collection["type"]
        for collection in _list_existing(
            session,
            "collections",
            db.collections,
        )
    }


def _missing_indexes(
    session: ArangoSession,
    db: StandardDatabase,
    name: str,
    declared: Iterable[tuple[tuple[str, ...], bool]],
) -> Iterator[Missing]:
    """Indexes of a collection, each as its fields and whether it is sparse."""
    documents = db.collection(name)
    listed = _list_existing(
        session,
        "indexes",
        documents.indexes,
    )

    existing = set()
    for index in listed:
        if index["type"] == "persistent":
            existing.add((tuple(index["fields"]), bool(index.get("sparse"))))

    for fields, sparse in declared:
        if (fields, sparse) not in existing:
            kind = {
                "type": "persistent",
                "sparse": sparse,
                "unique": False,
                "inBackground": True,
            }
            make = partial(
                documents.add_index,
                {
                    **kind,
                    "name": f"by_{'_'.join(fields)}",
                    "fields": list(fields),
                },
            )
            yield f"index {name}({', '.join(fields)})", make


def _missing_analyzers(
    session: ArangoSession,
    db: StandardDatabase,
) -> Iterator[Missing]:
    """Requirement X-37: our own analyzers; one of such a name is used only when it does the
    same.
    """
    # One of _system is seen everywhere and is not this database's.
    prefix = f"{session.database_name}::"

    existing = {}
    for analyzer in _list_existing(session, "analyzers", db.analyzers):
        existing[analyzer["name"].removeprefix(prefix)] = analyzer

    for name, declared in ANALYZERS.items():
        if name not in existing:
            make = partial(
                db.create_analyzer,
                name,
                declared.type,
                declared.properties,
                list(declared.features),
            )
            yield f"analyzer {name}", make
        elif not declared.is_same(existing[name]):
            raise WrongServer(
                f"the analyzer {name} exists with another definition; remove it and the views that "
                "use it, "
                "then provision again"
            )


def has_other_analyzer(session: ArangoSession) -> bool:
    """Whether a declared analyzer is missing or defined otherwise; False where the account may not
    ask.
    """
    try:
        return any(True for _ in _missing_analyzers(session, session.db))
    except WrongServer:
        return True
    except StoreError:
        return False


def _missing_views(
    session: ArangoSession,
    db: StandardDatabase,
    part: str,
) -> Iterator[Missing]:
    present = {view["name"] for view in _list_existing(session, "views", db.views)}
    for collection in collections_in(part):
        if collection.view is None:
            continue

        links = {
            collection.name: {
                "includeAllFields": False,
                "fields": {
                    field: {"analyzers": names}
                    for field, names in _analyzers_of(collection).items()
                },
            }
        }
        if collection.view not in present:
            make = partial(
                db.create_view,
                collection.view,
                "arangosearch",
                {"links": links},
            )
            yield f"view {collection.view}", make
        elif not _has_fields(session, db, collection):
            yield (
                f"fields of view {collection.view}",
                partial(
                    db.update_view,
                    collection.view,
                    {"links": links},
                ),
            )


def _analyzers_of(collection: Collection) -> dict[str, list[str]]:
    """How each field in the view of a collection is found: by its words, whole as a name, or
    both.
    """
    analyzers = {field: [ANALYZER] for field in (*collection.text_fields, *collection.described_in)}
    for field in collection.name_fields:
        analyzers[field] = [*analyzers.get(field, ()), NAME_ANALYZER]

    return analyzers


def _has_fields(
    session: ArangoSession,
    db: StandardDatabase,
    collection: Collection,
) -> bool:
    view = session.run(
        "reading a view",
        lambda: cast(JsonObject, db.view(str(collection.view))),
        again=True,
    )
    fields = view.get("links", {}).get(collection.name, {}).get("fields", {})
    for field, analyzers in _analyzers_of(collection).items():
        indexed_by = fields.get(field, {}).get("analyzers", ())
        if {name.rpartition("::")[2] for name in indexed_by} != set(analyzers):
            return False

    return True


def _create_graph(db: StandardDatabase, graph: Graph) -> None:
    definitions = []
    for name in graph.edges:
        collection = collection_named(name)
        if collection and collection.edge:
            definition = {
                "edge_collection": name,
                "from_vertex_collections": sorted(collection.edge.sources),
                "to_vertex_collections": sorted(collection.edge.targets),
            }
            definitions.append(definition)

    db.create_graph(graph.name, edge_definitions=definitions)


def problems(session: ArangoSession, store: RowStore) -> Iterator[str]:
    """What is wrong, in sentences."""
    try:
        for name, _ in missing(session):
            yield f"{name} is missing; run `hades provision`"

        yield from row_checks.find_problems(store, hold_part(session))
    except (NotProvisioned, WrongServer) as error:
        yield str(error)


def make_vector_indexes(
    session: ArangoSession,
    created: list[str],
    part: str = ALL,
) -> Iterator[str]:
    """Make the vector index of each collection that holds vectors by now; notes say why one was not
    made.

    One that was made for vectors of another dimension is dropped and made again.
    """
    if not session.has_vector_index:
        yield (
            f"the server ({session.version}) makes no vector index that passes over rows "
            "without one; search is exact"
        )
        return

    for collection in collections_in(part):
        if collection.vector_field is None:
            continue

        binds = {
            "@collection": collection.name,
            "field": str(collection.vector_field),
        }
        action = f"counting vectors of {collection.name}"
        counted = session.query(
            load("maintenance/count_vectors"),
            binds,
            action=action,
            patient=True,
        )

        vector_counts: dict[int, int] = {}
        for row in counted:
            vector_counts[row["dimension"]] = row["vectors"]

        indexes = _vector_indexes(session, session.patient_db.collection(collection.name))
        if indexes and [index["params"]["dimension"] for index in indexes] == list(vector_counts):
            continue

        _drop_vector_index(session, collection)
        note = _make_vector_index(
            session,
            collection,
            vector_counts,
        )
        if note is None:
            created.append(f"vector index {collection.name}({collection.vector_field})")
        else:
            yield note


def is_indexed(session: ArangoSession, collection: Collection) -> bool:
    """Whether the collection has a vector index that answers; asked of the server until it says
    yes.
    """
    if collection.name not in session.vector_indexed:
        indexes = _vector_indexes(session, session.db.collection(collection.name))
        states = []
        for index in indexes:
            states.append(index.get("training_state", index.get("trainingState", "ready")))

        if "ready" not in states:
            return False

        session.vector_indexed.add(collection.name)

    return True


def _drop_vector_index(session: ArangoSession, collection: Collection) -> bool:
    documents = session.patient_db.collection(collection.name)
    indexes = _vector_indexes(session, documents)
    for index in indexes:
        drop = partial(
            documents.delete_index,
            index["id"],
            ignore_missing=True,
        )
        session.run(
            f"dropping the vector index of {collection.name}",
            drop,
            again=True,
            writes=True,
        )

    session.vector_indexed.discard(collection.name)
    return bool(indexes)


def _make_vector_index(
    session: ArangoSession,
    collection: Collection,
    vector_counts: dict[int, int],
) -> str | None:
    field = str(collection.vector_field)
    if not vector_counts:
        return (
            f"{collection.name} has no vectors yet; provision again after loading for a vector "
            "index"
        )

    if len(vector_counts) > 1:
        dimensions = ", ".join(map(str, sorted(vector_counts)))
        return (
            f"{collection.name} holds vectors of dimensions {dimensions}; an index takes one, "
            "so search is exact"
        )

    ((dimension, vectors),) = vector_counts.items()
    definition = {
        "type": "vector",
        "name": f"near_{field}",
        "fields": [field],
        "sparse": True,
        # The rule of thumb for lists: four times the square root, never more than there are
        # vectors.
        "params": {
            "metric": "cosine",
            "dimension": dimension,
            "nLists": min(vectors, round(4 * math.sqrt(vectors))),
        },
    }
    documents = session.patient_db.collection(collection.name)
    session.run(
        f"creating the vector index of {collection.name}",
        lambda: documents.add_index(definition),
        again=False,
        writes=True,
    )
    return None


def _vector_indexes(
    session: ArangoSession,
    documents: StandardCollection,
) -> list[JsonObject]:
    return [
        index
        for index in _list_existing(
            session,
            "indexes",
            documents.indexes,
        )
        if index["type"] == "vector"
    ]
