"""Provisioning on the loopback double: everything once, nothing twice, and strangers are left
alone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from aql import load
from hades.errors import NotProvisioned, ReadOnly, SettingsError, StoreError
from hades.ports.graph import Kind
from hades.ports.store import Mode
from hades.stores.arango import provision as checks
from hades.stores.arango.client import Account, ArangoEndpoints
from hades.stores.arango.errors import RetryPolicy
from hades.stores.arango.neighbourhood import ArangoView
from hades.stores.arango.store import ArangoStore
from hades.stores.arango.write import INDEXES
from schemas.catalogue import ANALYZER, COLLECTIONS, GRAPHS, NAME_ANALYZER
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import put

SECRET = "not to be seen"
ONCE = RetryPolicy(attempts=1)


@pytest.fixture
def double() -> Iterator[ArangoDouble]:
    with ArangoDouble(root_password=SECRET) as server:
        yield server


def opened(double: ArangoDouble, mode: Mode = Mode.ADMIN, **options: Any) -> ArangoStore:
    endpoints = ArangoEndpoints(url=double.url, database="kg", user="root", password=SECRET)
    return ArangoStore(endpoints, mode, fail_on_warning=True, retry=ONCE, **options)


def test_everything_is_made_once_and_reported(double: ArangoDouble) -> None:
    store = opened(double)
    created = store.provision().created
    indexes = sum(len(collection.indexes) for collection in COLLECTIONS)
    views = sum(collection.view is not None for collection in COLLECTIONS)
    journal = 1 + len(INDEXES)
    assert len(created) == 1 + len(COLLECTIONS) + indexes + journal + 2 + views + len(GRAPHS)
    assert created[0] == "database kg"
    assert {
        "collection relations",
        "index entities(name_lower)",
        f"analyzer {ANALYZER}",
        "graph HADES_KG",
    } < set(created)
    assert store.provision().created == ()
    assert store.check() == []


def test_what_was_made_is_what_the_catalogue_says(double: ArangoDouble) -> None:
    store = opened(double)
    store.provision()
    db = store.session.db
    kinds = {one["name"]: one["type"] for one in cast(list[Any], db.collections())}
    assert (kinds["entities"], kinds["relations"]) == ("document", "edge")
    held = {
        tuple(one["fields"]): one for one in cast(list[Any], db.collection("entities").indexes())
    }
    assert held[("name_lower",)]["sparse"] is True
    assert held[("name_lower",)]["unique"] is False
    graph = next(one for one in cast(list[Any], db.graphs()) if one["name"] == "HADES_KG")
    ends = {one["edge_collection"]: one for one in graph["edge_definitions"]}
    assert sorted(ends["cluster_edges"]["from_vertex_collections"]) == ["clusters", "entities"]
    view = cast(dict[str, Any], db.view("doc_chunks_view"))
    assert set(view["links"]["doc_chunks"]["fields"]) == {"title", "symbol", "words", "text"}
    analyzer = next(
        one for one in cast(list[Any], db.analyzers()) if one["name"].endswith(ANALYZER)
    )
    assert analyzer["properties"]["stemming"] is True
    assert analyzer["properties"]["stopwords"] == []
    entities = cast(dict[str, Any], db.view("entities_view"))["links"]["entities"]["fields"]
    assert {field: set(link["analyzers"]) for field, link in entities.items()} == {
        "name": {ANALYZER, NAME_ANALYZER},
        "summary": {ANALYZER},
        "canonical_name": {NAME_ANALYZER},
        "aliases": {NAME_ANALYZER},
    }


def test_an_analyzer_of_our_name_is_used_only_when_it_does_the_same(double: ArangoDouble) -> None:
    store = opened(double)
    store.session.system_database().create_database("kg")
    db = store.session.db
    db.create_analyzer(
        ANALYZER,
        "text",
        {"locale": "en", "stemming": False, "stopwords": []},
        ["frequency", "norm"],
    )
    with pytest.raises(StoreError, match="exists with another definition"):
        store.provision()
    db.delete_analyzer(ANALYZER)
    store.provision()


def test_a_view_that_lost_a_field_gets_it_back(double: ArangoDouble) -> None:
    store = opened(double)
    store.provision()
    only_name = {"links": {"entities": {"fields": {"name": {"analyzers": [ANALYZER]}}}}}
    store.session.db.replace_view("entities_view", only_name)
    assert store.provision().created == ("fields of view entities_view",)
    assert store.provision().created == ()


def test_a_document_collection_where_edges_belong_is_refused(double: ArangoDouble) -> None:
    store = opened(double)
    store.session.system_database().create_database("kg")
    store.session.db.create_collection("relations")
    with pytest.raises(StoreError, match="relations is a document collection, expected edge"):
        store.provision()


def test_a_graph_of_somebody_else_is_left(double: ArangoDouble) -> None:
    store = opened(double)
    store.session.system_database().create_database("kg")
    definition = {
        "edge_collection": "relations",
        "from_vertex_collections": ["entities"],
        "to_vertex_collections": ["entities"],
    }
    store.session.db.create_graph("HADES_KG", edge_definitions=[definition])
    report = store.provision()
    assert "graph HADES_KG" not in report.created


def test_an_empty_server_says_what_to_run(double: ArangoDouble) -> None:
    with pytest.raises(NotProvisioned, match="hades provision"):
        opened(double, Mode.READ_ONLY).count("entities")


def test_a_wrong_password_is_about_the_account_and_does_not_show_it(double: ArangoDouble) -> None:
    endpoints = ArangoEndpoints(
        url=double.url, database="kg", user="root", password="wrong and secret"
    )
    with pytest.raises(SettingsError, match="HADES_ARANGO_PASSWORD") as caught:
        ArangoStore(endpoints, Mode.ADMIN, retry=ONCE).provision()
    assert "wrong and secret" not in str(caught.value)


def test_each_mode_goes_through_its_own_socket(double: ArangoDouble, tmp_path: Path) -> None:
    sockets = {
        name: double.unix_socket(tmp_path / f"{name}.sock") for name in ("ro", "rw", "admin")
    }
    endpoints = ArangoEndpoints(
        database="kg",
        user="root",
        password=SECRET,
        ro_socket=sockets["ro"],
        rw_socket=sockets["rw"],
        admin_socket=sockets["admin"],
    )
    admin, reader = ArangoStore(endpoints, Mode.ADMIN), ArangoStore(endpoints, Mode.READ_ONLY)
    admin.provision()
    assert reader.describe()["endpoint"] == f"unix:{sockets['ro']}"
    assert reader.count("entities") == 0


def loaded(store: ArangoStore, rows: int) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(3)
    matrix = chance.normal(size=(rows, 4)).astype(np.float32)
    table = pa.table(
        {
            "_key": [f"k{row:03}" for row in range(rows)],
            "name": ["n"] * rows,
            "name_lower": ["n"] * rows,
            "type": ["concept"] * rows,
            "embedding": list(matrix),
            "embedding_model": ["m@1/4"] * rows,
        }
    )
    store.upsert("entities", table)
    store.upsert(
        "entities",
        pa.table({"_key": ["no-vector"], "name": ["n"], "name_lower": ["n"], "type": ["concept"]}),
    )
    return matrix


def test_vector_indexes_come_after_the_rows_and_only_where_the_server_has_them() -> None:
    with ArangoDouble(version="3.12.8", vector_index=True, root_password=SECRET) as server:
        store = opened(server, approximate=True)
        first = store.provision()
        assert any("entities has no vectors yet" in note for note in first.notes)
        matrix = loaded(store, 40)
        assert store.provision().created == ("vector index entities(embedding)",)
        assert store.provision().created == ()
        asked = {"model": "m@1/4", "limit": 3}
        binds = {
            "@collection": "entities",
            "field": "embedding",
            "vector": matrix[7].tolist(),
            "probes": 20,
            **asked,
        }
        near = store.session.query(load("view/find_near_by_index"), binds, action="searching")
        assert near[0] == "entities/k007"
        exact = {"vectors": [matrix[7].tolist()], **asked}
        assert near == store.session.query(load("view/find_near"), exact, action="searching")


def test_a_turn_finds_topics_through_the_vector_index_as_well() -> None:
    with ArangoDouble(version="3.12.8", vector_index=True, root_password=SECRET) as server:
        store = opened(server, approximate=True)
        store.provision()
        matrix = loaded(store, 10)
        topic = {
            "_key": "t",
            "level": 1,
            "centroid": matrix[0].tolist(),
            "embedding_model": "m@1/4",
        }
        params = {"algo": "toy", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
        put(store, "clusters", {**topic, "cluster_params": params})
        store.provision()
        view = ArangoView(store).around(["anything"], [matrix[0]], "m@1/4", [], hops=0).view
        found = view.nearest(matrix[0], kind=Kind.CLUSTER, model="m@1/4", limit=1)
        assert view.ids(found.numbers) == ["clusters/t"]


@pytest.mark.parametrize(
    ("version", "flag"), [("3.12.8", False), ("3.12.5", True), ("3.12.3", False)]
)
def test_without_a_usable_vector_index_search_is_exact(version: str, flag: bool) -> None:
    with ArangoDouble(version=version, vector_index=flag, root_password=SECRET) as server:
        store = opened(server, approximate=True)
        store.provision()
        loaded(store, 10)
        report = store.provision()
        assert report.created == ()
        assert any("search is exact" in note for note in report.notes)


def test_check_names_what_is_missing_and_what_is_wrong(double: ArangoDouble) -> None:
    store = opened(double)
    assert any("database kg is missing" in problem for problem in store.check())
    store.provision()
    db = store.session.db
    db.delete_graph("HADES_MEMORY")
    db.delete_view("funcs_view")
    db.collection("entities").insert(
        {"_key": "odd", "name": "odd", "name_lower": "odd", "type": "animal", "layer": 0}
    )
    db.collection("merge_log").insert(
        {"_key": "late", "alias": "a", "canonical": "b", "rule": "r", "at": "late"}
    )
    problems = "\n".join(store.check())
    assert "graph HADES_MEMORY is missing; run `hades provision`" in problems
    assert "view funcs_view is missing" in problems
    assert "entities (_key 'odd'): " in problems
    assert "merge_log.at holds something that is not timestamp" in problems


def test_without_the_setting_a_vector_index_is_dropped_and_search_is_exact() -> None:
    with ArangoDouble(version="3.12.8", vector_index=True, root_password=SECRET) as server:
        store = opened(server, approximate=True)
        store.provision()
        loaded(store, 10)
        assert store.provision().created == ("vector index entities(embedding)",)
        plain = opened(server)
        assert any("was dropped" in note for note in plain.provision().notes)
        assert plain.provision().notes == ()


def test_vectors_of_another_dimension_get_an_index_of_their_own() -> None:
    with ArangoDouble(version="3.12.8", vector_index=True, root_password=SECRET) as server:
        store = opened(server, approximate=True)
        store.provision()
        loaded(store, 10)
        store.provision()
        opened(server).provision()
        keys = [f"k{row:03}" for row in range(10)]
        table = pa.table(
            {"_key": keys, "embedding": [[1.0, 0.5]] * 10, "embedding_model": ["n@1/2"] * 10}
        )
        store.patch("entities", table)
        assert store.provision().created == ("vector index entities(embedding)",)


@pytest.mark.parametrize(("version", "said"), [("3.11.9", "needs 3.12.0"), ("3.12.1", "")])
def test_an_old_server_is_refused_or_advised_against(version: str, said: str) -> None:
    with ArangoDouble(version=version, root_password=SECRET) as server:
        if said:
            with pytest.raises(checks.WrongServer, match=said):
                opened(server).provision()
        else:
            notes = opened(server).provision().notes
            assert any(
                "Off on it: the vector index" in note and "upgrade to 3.12.9" in note
                for note in notes
            )
            assert [
                one.status for one in opened(server).findings() if one.name == "server version"
            ] == ["warn"]


def test_a_sharded_database_of_a_cluster_is_refused_with_the_way_out() -> None:
    with ArangoDouble(root_password=SECRET) as server:
        server.state.role = "COORDINATOR"
        opened(server).session.system_database().create_database("kg", sharding="flexible")
        with pytest.raises(checks.WrongServer, match="expected OneShard"):
            opened(server).provision()
    with ArangoDouble(root_password=SECRET) as server:
        server.state.role = "COORDINATOR"
        store = opened(server)
        store.provision()
        assert [one.status for one in store.findings()] == ["ok"] * 6


def test_provisioning_makes_accounts_that_may_do_no_more_than_they_need(
    double: ArangoDouble,
) -> None:
    accounts = (Account("builder", "b", "rw"), Account("asker", "a", "ro"))
    admin = ArangoEndpoints(
        url=double.url, database="kg", user="root", password=SECRET, accounts=accounts
    )
    created = ArangoStore(admin, Mode.ADMIN, retry=ONCE).provision().created
    assert created[-2:] == ("user builder (rw on kg)", "user asker (ro on kg)")
    assert ArangoStore(admin, Mode.ADMIN, retry=ONCE).provision().created == ()

    def as_user(name: str, password: str) -> ArangoStore:
        endpoints = ArangoEndpoints(url=double.url, database="kg", user=name, password=password)
        return ArangoStore(endpoints, Mode.READ_WRITE, retry=ONCE)

    row = pa.Table.from_pylist([{"_key": "k", "name": "n", "name_lower": "n", "type": "concept"}])
    as_user("builder", "b").upsert("entities", row)
    assert as_user("asker", "a").count("entities") == 1
    with pytest.raises(ReadOnly, match="writing entities"):
        as_user("asker", "a").upsert("entities", row)
    builder = as_user("builder", "b").session
    with pytest.raises(SettingsError, match="may not"):
        builder.run(
            "creating a database",
            lambda: builder.system_database().create_database("x"),
            again=False,
        )
