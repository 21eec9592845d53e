"""Documents over HTTP with the real driver: one, many, revisions and bulk import."""

import pytest
from arango.database import StandardDatabase
from arango.exceptions import (
    DocumentDeleteError,
    DocumentGetError,
    DocumentInsertError,
    DocumentRevisionError,
    DocumentUpdateError,
)

from tests.arango_double.server import ArangoDouble


@pytest.fixture
def docs(db: StandardDatabase) -> StandardDatabase:
    db.create_collection("c")
    db.create_collection("e", edge=True)
    return db


def test_a_document_is_written_read_changed_and_removed(docs: StandardDatabase, double: ArangoDouble) -> None:
    c = docs.collection("c")
    meta = c.insert({"_key": "a", "n": 1, "o": {"x": 1}}, return_new=True)
    assert (meta["_id"], meta["new"]["n"]) == ("c/a", 1)
    assert c.get("a")["n"] == 1
    changed = c.update({"_key": "a", "o": {"y": 2}}, return_new=True, return_old=True)
    assert changed["_old_rev"] == meta["_rev"]
    assert changed["new"]["o"] == {"x": 1, "y": 2}
    c.replace({"_key": "a", "m": 1})
    assert double.databases["db"].collection("c").documents["a"]["m"] == 1
    assert c.delete("a", return_old=True)["old"]["m"] == 1
    assert c.get("a") is None
    assert c.has("a") is False


def test_whole_numbers_come_back_as_integers(docs: StandardDatabase) -> None:
    docs.collection("c").insert({"_key": "a", "w": 1.0, "v": [0.5, 2.0]})
    stored = docs.collection("c").get("a")
    assert isinstance(stored["w"], int)
    assert stored["v"] == [0.5, 2]


def test_duplicates_and_bad_keys_are_named(docs: StandardDatabase) -> None:
    c = docs.collection("c")
    c.insert({"_key": "a"})
    with pytest.raises(DocumentInsertError) as caught:
        c.insert({"_key": "a"})
    assert (caught.value.error_code, caught.value.http_code) == (1210, 409)
    with pytest.raises(DocumentInsertError) as caught:
        c.insert({"_key": "not legal"})
    assert (caught.value.error_code, caught.value.http_code) == (1221, 400)
    with pytest.raises(DocumentInsertError) as caught:
        docs.collection("missing").insert({})
    assert (caught.value.error_code, caught.value.http_code) == (1203, 404)
    with pytest.raises(DocumentInsertError) as caught:
        docs.collection("e").insert({"_from": "c/a"})
    assert (caught.value.error_code, caught.value.http_code) == (1233, 400)


def test_many_documents_answer_one_by_one(docs: StandardDatabase) -> None:
    c = docs.collection("c")
    answers = c.insert_many([{"_key": "a"}, {"_key": "a"}, {"_key": "b"}])
    assert [isinstance(answer, DocumentInsertError) for answer in answers] == [False, True, False]
    assert answers[1].error_code == 1210
    assert c.count() == 2
    assert {doc["_key"] for doc in c.get_many(["a", "b", "zz"])} == {"a", "b"}
    changed = c.update_many([{"_key": "a", "n": 1}, {"_key": "zz", "n": 1}])
    assert isinstance(changed[1], DocumentUpdateError)
    assert c.get("a")["n"] == 1
    removed = c.delete_many([{"_key": "a"}, {"_key": "zz"}])
    assert isinstance(removed[1], DocumentDeleteError)


@pytest.mark.parametrize(
    ("mode", "expected"), [("ignore", {"n": 1}), ("replace", {"m": 2}), ("update", {"n": 1, "m": 2})]
)
def test_overwrite_modes(docs: StandardDatabase, mode: str, expected: dict[str, int]) -> None:
    c = docs.collection("c")
    c.insert({"_key": "a", "n": 1})
    c.insert({"_key": "a", "m": 2}, overwrite_mode=mode)
    stored = c.get("a")
    assert {name: value for name, value in stored.items() if not name.startswith("_")} == expected


def test_a_stale_revision_is_412(docs: StandardDatabase) -> None:
    c = docs.collection("c")
    old = c.insert({"_key": "a", "n": 1})
    c.update({"_key": "a", "n": 2})
    with pytest.raises(DocumentRevisionError) as caught:
        c.update({"_key": "a", "_rev": old["_rev"], "n": 3}, check_rev=True)
    assert (caught.value.error_code, caught.value.http_code) == (1200, 412)
    c.update({"_key": "a", "_rev": old["_rev"], "n": 3}, check_rev=False)
    with pytest.raises(DocumentRevisionError):
        c.get("a", rev=old["_rev"])
    with pytest.raises(DocumentRevisionError):
        c.delete({"_key": "a", "_rev": old["_rev"]}, check_rev=True)


def test_import_counts_what_it_did(docs: StandardDatabase) -> None:
    c = docs.collection("c")
    rows = [{"_key": "a", "n": 1}, {"_key": "b"}, {"_key": "a", "n": 2}]
    with pytest.raises(DocumentInsertError) as caught:
        c.import_bulk(rows)
    assert (caught.value.http_code, c.count()) == (409, 0)
    result = c.import_bulk(rows, halt_on_error=False)
    assert (result["created"], result["errors"], len(result["details"])) == (2, 1, 1)
    assert c.import_bulk([{"_key": "a", "n": 3}], on_duplicate="update")["updated"] == 1
    assert c.import_bulk([{"_key": "a", "n": 4}], on_duplicate="ignore")["ignored"] == 1
    assert c.get("a")["n"] == 3
    assert c.import_bulk([{"_key": "z"}], overwrite=True)["created"] == 1
    assert c.count() == 1
    edges = docs.collection("e").import_bulk([{"_from": "a", "_to": "b"}], from_prefix="c", to_prefix="c")
    assert edges["created"] == 1
    assert next(docs.collection("e").all())["_from"] == "c/a"


def test_the_drivers_own_helpers_work(docs: StandardDatabase) -> None:
    c = docs.collection("c")
    c.insert_many([{"_key": key, "n": len(key)} for key in ("a", "bb", "ccc")])
    assert sorted(c.keys()) == ["a", "bb", "ccc"]
    assert [doc["_key"] for doc in c.find({"n": 2})] == ["bb"]
    assert len(list(c.all(skip=1, limit=1))) == 1
    assert c.random()["n"] in (1, 2, 3)
    assert c.update_match({"n": 1}, {"seen": True}) == 1
    assert c.delete_match({"seen": True}) == 1
    definition = {"edge_collection": "e", "from_vertex_collections": ["c"], "to_vertex_collections": ["c"]}
    edges = docs.create_graph("g", edge_definitions=[definition]).edge_collection("e")
    edges.link("c/bb", "c/ccc")
    assert len(edges.edges("c/bb", direction="out")["edges"]) == 1
    assert edges.edges("c/bb", direction="in")["edges"] == []


def test_unknown_query_parameters_are_refused(docs: StandardDatabase) -> None:
    from arango.request import Request

    answer = docs.request(Request(method="get", endpoint="/_api/document/c/a", params={"typo": 1}))
    assert (answer.status_code, answer.error_code) == (400, 10)
    answer = docs.request(Request(method="get", endpoint="/_api/nowhere"))
    assert answer.status_code == 404


def test_reading_a_missing_collection_is_1203(docs: StandardDatabase) -> None:
    with pytest.raises(DocumentGetError) as caught:
        docs.collection("missing").get("a")
    assert caught.value.error_code == 1203
