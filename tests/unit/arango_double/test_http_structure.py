"""Databases, collections, indexes, graphs, views and analyzers over HTTP."""

from typing import Any

import pytest
from arango import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import (
    AnalyzerCreateError,
    CollectionCreateError,
    DatabaseCreateError,
    DocumentInsertError,
    GraphCreateError,
    IndexCreateError,
    IndexDeleteError,
    ViewCreateError,
)

from tests.arango_double.server import ArangoDouble

DEFINITION = {"edge_collection": "e", "from_vertex_collections": ["a"], "to_vertex_collections": ["b"]}


def test_the_server_says_its_version(db: StandardDatabase) -> None:
    assert db.version() == "3.12.8"


def test_databases_are_created_listed_and_dropped(double: ArangoDouble) -> None:
    system = ArangoClient(double.url).db("_system", username="root", password="secret", verify=True)
    assert system.create_database("other", sharding="single")
    assert system.has_database("other")
    with pytest.raises(DatabaseCreateError) as caught:
        system.create_database("other")
    assert caught.value.error_code == 1207
    with pytest.raises(DatabaseCreateError) as caught:
        system.create_database("1bad")
    assert caught.value.error_code == 1229
    assert system.delete_database("other")
    assert "other" not in system.databases()


def test_collections(db: StandardDatabase) -> None:
    c = db.create_collection("c", key_generator="padded")
    assert db.has_collection("c")
    assert {item["name"]: item["system"] for item in db.collections()} == {
        "_analyzers": True,
        "_graphs": True,
        "c": False,
    }
    assert c.properties()["key_options"]["key_generator"] == "padded"
    c.insert({})
    assert c.count() == 1
    assert c.truncate()
    assert c.count() == 0
    for name, number in (("c", 1207), ("9x", 1208), ("_x", 1208)):
        with pytest.raises(CollectionCreateError) as caught:
            db.create_collection(name)
        assert caught.value.error_code == number
    assert db.delete_collection("c")
    assert db.delete_collection("c", ignore_missing=True) is False


def test_computed_values_follow_every_write(db: StandardDatabase) -> None:
    lowered = {"name": "name_lower", "expression": "RETURN LOWER(@doc.name)", "overwrite": True}
    c = db.create_collection("c", computedValues=[lowered])
    c.insert({"_key": "a", "name": "ABC"})
    assert c.get("a")["name_lower"] == "abc"
    c.update({"_key": "a", "name": "XY"})
    assert c.get("a")["name_lower"] == "xy"
    with pytest.raises(CollectionCreateError):
        db.create_collection("d", computedValues=[{"name": "x", "expression": "RETURN LENGTH(c)", "overwrite": True}])


def test_persistent_indexes_are_kept_unique_and_found_again(db: StandardDatabase) -> None:
    c = db.create_collection("c")
    made = c.add_index({"type": "persistent", "fields": ["name", "type"], "unique": True, "name": "by_name"})
    assert made["isNewlyCreated"] is True
    again = c.add_index({"type": "persistent", "fields": ["name", "type"], "unique": True, "cacheEnabled": True})
    assert (again["isNewlyCreated"], again["id"]) == (False, made["id"])
    c.insert({"name": "x", "type": 1})
    with pytest.raises(DocumentInsertError) as caught:
        c.insert({"name": "x", "type": 1})
    assert (caught.value.error_code, caught.value.http_code) == (1210, 409)
    assert [index["type"] for index in c.indexes()] == ["primary", "persistent"]
    assert c.delete_index(made["id"])
    with pytest.raises(IndexDeleteError) as missing:
        c.delete_index(made["id"])
    assert missing.value.error_code == 1212


def test_a_unique_index_cannot_be_built_over_duplicates(db: StandardDatabase) -> None:
    c = db.create_collection("c")
    c.insert_many([{"n": 1}, {"n": 1}])
    with pytest.raises(IndexCreateError) as caught:
        c.add_index({"type": "persistent", "fields": ["n"], "unique": True})
    assert caught.value.error_code == 1210


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "persistent", "fields": []},
        {"type": "persistent", "fields": ["_id"]},
        {"type": "persistent", "fields": ["a"], "uniq": True},
        {"type": "persistent", "fields": ["a"], "unique": 1},
        {"type": "ttl", "fields": ["a", "b"], "expireAfter": 0},
        {"type": "ttl", "fields": ["a"]},
        {"type": "vector", "fields": ["a"], "params": {"metric": "cosine", "dimension": 2, "nLists": 1}},
        {"type": "hash", "fields": ["a"]},
    ],
)
def test_bad_index_definitions_are_refused(db: StandardDatabase, definition: dict[str, Any]) -> None:
    c = db.create_collection("c")
    with pytest.raises(IndexCreateError) as caught:
        c.add_index(definition)
    assert caught.value.error_code == 10


def test_a_ttl_index_is_single_and_sweeps_on_demand(db: StandardDatabase, double: ArangoDouble) -> None:
    c = db.create_collection("c")
    c.add_index({"type": "ttl", "fields": ["until"], "expireAfter": 10})
    with pytest.raises(IndexCreateError):
        c.add_index({"type": "ttl", "fields": ["other"], "expireAfter": 0})
    c.insert_many([{"_key": "old", "until": 100}, {"_key": "iso", "until": "1970-01-01T00:00:50Z"}, {"_key": "no"}])
    assert c.count() == 3
    assert double.sweep_expired(now=105) == 1
    assert double.sweep_expired(now=111) == 1
    assert [doc["_key"] for doc in c.all()] == ["no"]


def test_graphs_create_their_collections(db: StandardDatabase) -> None:
    graph = db.create_graph("g", edge_definitions=[DEFINITION], orphan_collections=["o"])
    assert db.has_graph("g")
    assert graph.vertex_collections() == ["a", "b", "o"]
    assert graph.edge_definitions() == [DEFINITION]
    assert db.collection("e").properties()["edge"] is True
    with pytest.raises(GraphCreateError) as caught:
        db.create_graph("g")
    assert (caught.value.error_code, caught.value.http_code) == (1925, 409)
    with pytest.raises(GraphCreateError) as caught:
        db.create_graph("h", edge_definitions=[{**DEFINITION, "to_vertex_collections": ["a"]}])
    assert caught.value.error_code == 1921
    assert db.delete_graph("g", drop_collections=True)
    assert not db.has_collection("e")


def test_edge_definitions_are_enforced_through_the_graph_only(db: StandardDatabase) -> None:
    graph = db.create_graph("g", edge_definitions=[DEFINITION])
    graph.vertex_collection("a").insert({"_key": "1"})
    graph.vertex_collection("b").insert({"_key": "2"})
    edges = graph.edge_collection("e")
    edges.insert({"_key": "ok", "_from": "a/1", "_to": "b/2"})
    for bad, number in (
        ({"_from": "b/2", "_to": "b/2"}, 1906),
        ({"_from": "z/2", "_to": "b/2"}, 1947),
        ({"_from": "a/none", "_to": "b/2"}, 1202),
    ):
        with pytest.raises(DocumentInsertError) as caught:
            edges.insert(bad)
        assert caught.value.error_code == number
    db.collection("e").insert({"_from": "z/2", "_to": "z/3"})
    assert graph.vertex_collection("a").delete("1")
    assert not edges.has("ok")
    assert db.collection("e").count() == 1


def test_graph_definitions_change(db: StandardDatabase) -> None:
    graph = db.create_graph("g", edge_definitions=[DEFINITION])
    graph.create_edge_definition("f", ["a"], ["c"])
    graph.replace_edge_definition("f", ["a"], ["a"])
    assert [item["edge_collection"] for item in graph.edge_definitions()] == ["e", "f"]
    assert graph.delete_edge_definition("f")
    graph.create_vertex_collection("lonely")
    assert graph.delete_vertex_collection("lonely")
    assert graph.vertex_collections() == ["a", "b"]


def test_views_and_analyzers(db: StandardDatabase) -> None:
    db.create_collection("c")
    properties = {"min": 3, "max": 3, "preserveOriginal": False, "streamType": "utf8"}
    assert db.create_analyzer("tri", "ngram", properties, ["frequency", "norm", "position"])["name"] == "db::tri"
    with pytest.raises(AnalyzerCreateError):
        db.create_analyzer("tri", "identity")
    assert {item["name"] for item in db.analyzers()} == {"identity", "text_en", "db::tri"}
    link = {"fields": {"t": {"analyzers": ["text_en", "tri"]}}}
    made = db.create_view("v", "arangosearch", {"links": {"c": link}})
    assert made["links"]["c"] == link
    with pytest.raises(ViewCreateError) as caught:
        db.create_view("v", "arangosearch", {})
    assert (caught.value.error_code, caught.value.http_code) == (1207, 409)
    db.collection("c").insert({"_key": "a", "t": "Running dogs"})
    query = "FOR d IN v SEARCH ANALYZER(d.t == 'run', 'text_en') RETURN d._key"
    assert list(db.aql.execute(query)) == ["a"]
    db.update_view("v", {"links": {"c": None}})
    assert list(db.aql.execute(query)) == []
    assert [view["name"] for view in db.views()] == ["v"]
    assert db.delete_view("v")
    assert db.delete_analyzer("tri")
