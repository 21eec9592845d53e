"""A smaller database for memory alone, made and kept by the same tooling on both stores (C4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hades.errors import NotProvisioned, StoreError
from hades.ports.store import GraphStore, Mode
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.errors import RetryPolicy
from hades.stores.arango.store import ArangoStore
from hades.stores.sqlite.store import SqliteStore
from schemas.catalogue import ALL, MEMORY, NAMES, collections_in, graphs_in, names_in, part_of
from tests.arango_double.server import ArangoDouble

Open = Callable[[], GraphStore]


@pytest.fixture(params=["sqlite", "arango"])
def open_admin(request, tmp_path) -> Iterator[Open]:
    """Opens handles on one database that is not there yet."""
    if request.param == "sqlite":
        yield lambda: SqliteStore.open(tmp_path / "graph.db", Mode.ADMIN)
        return
    with ArangoDouble(root_password="x") as double:
        endpoints = ArangoEndpoints(url=double.url, database="kg_agent", user="root", password="x")
        yield lambda: ArangoStore(endpoints, Mode.ADMIN, retry=RetryPolicy(attempts=1))


def test_memory_is_its_own_collections_the_ends_of_its_edges_and_what_every_part_needs():
    names = names_in(MEMORY)
    assert {name for name in NAMES if name.startswith("memory_")} <= set(names)
    assert {"query_logs", "build_stages"} <= set(names)
    assert not {"documents", "entities", "relations"} & set(names)
    for collection in collections_in(MEMORY):
        if collection.edge is not None:
            assert {*collection.edge.sources, *collection.edge.targets} <= set(names)
    assert [graph.name for graph in graphs_in(MEMORY)] == ["HADES_MEMORY"]


@pytest.mark.parametrize(
    ("held", "part"),
    [
        ((), ALL),
        (("memory_states",), MEMORY),
        (("memory_states", "documents"), ALL),
        (("somebody_elses",), ALL),
        (("memory_states", "somebody_elses"), MEMORY),
        (NAMES, ALL),
    ],
)
def test_a_database_says_itself_what_it_was_made_for(held, part):
    assert part_of(held) == part


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match="memory"):
        names_in("memries")


def test_a_database_for_memory_holds_memory_and_stays_so(open_admin: Open):
    created = open_admin().provision(MEMORY).created
    assert not any("entities" in name or "documents" in name for name in created)
    assert open_admin().provision().created == ()
    store = open_admin()
    assert store.counts() == dict.fromkeys(NAMES, 0)
    assert store.check() == []
    assert store.dangling() == {}
    assert store.describe()["holds"] == MEMORY
    assert any("--only all" in note for note in store.provision().notes)
    with pytest.raises((NotProvisioned, StoreError), match="provision"):
        store.count("entities")


def test_it_grows_when_it_is_told_to(open_admin: Open):
    open_admin().provision(MEMORY)
    assert open_admin().provision(ALL).created != ()
    store = open_admin()
    assert "holds" not in store.describe()
    assert store.count("entities") == 0
    assert open_admin().provision(MEMORY).created == ()
