"""Bad input: a typed error that names row and rule, and nothing written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hades.errors import BadQuery, BadRows
from hades.ports.store import GraphStore, Term
from tests.contract.examples import MODEL, entity, put, relation, table

ILLEGAL_KEYS = [
    "",
    "with space",
    "slash/ed",
    "ünïcode",
    "x" * 255,
    "colon:ed",
    "FOR d IN entities REMOVE d IN entities",
    "a\nb",
]


def check_refused(store: GraphStore, collection: str, rows: pa.Table, row: int | None, rule: str) -> None:
    """The write is refused for that row and rule, and the collection is as it was."""
    before = store.counts()
    with pytest.raises(BadRows, match=rule) as raised:
        store.upsert(collection, rows)
    assert raised.value.row == row
    assert raised.value.collection == collection
    assert store.counts() == before


@pytest.mark.parametrize("key", ILLEGAL_KEYS)
def test_illegal_keys_are_refused(store: GraphStore, key: str) -> None:
    check_refused(store, "entities", table("entities", [entity("fine"), entity(key, name="n")]), 1, "_key must be")


def test_a_key_twice_in_one_batch_is_refused(store: GraphStore) -> None:
    check_refused(store, "entities", table("entities", [entity("a"), entity("b"), entity("a")]), 2, "twice")


def test_a_wrong_type_is_refused(store: GraphStore) -> None:
    wrong = table("entities", [entity("a")]).set_column(1, "name", pa.array([3]))
    check_refused(store, "entities", wrong, 0, "'name' is int64, expected string")


def test_a_missing_column_is_refused(store: GraphStore) -> None:
    check_refused(store, "entities", pa.table({"_key": ["a"]}), None, "'name' is missing")


def test_an_unknown_column_is_refused(store: GraphStore) -> None:
    rows = table("entities", [entity("a")]).append_column("colour", pa.array(["red"]))
    check_refused(store, "entities", rows, None, "unknown column 'colour'")


def test_a_null_where_a_value_must_be_is_refused(store: GraphStore) -> None:
    check_refused(
        store, "entities", table("entities", [entity("a"), {**entity("b"), "type": None}]), 1, "type is missing"
    )


def test_a_value_outside_the_closed_list_is_refused(store: GraphStore) -> None:
    check_refused(store, "entities", table("entities", [entity("a", type="animal")]), 0, "type must be one of paper")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_must_be_finite(store: GraphStore, value: float) -> None:
    put(store, "entities", entity("a"), entity("b"))
    check_refused(
        store, "relations", table("relations", [relation("a", "b", sim=value)]), 0, "sim must be a finite number"
    )


def test_a_weight_above_one_is_refused(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    check_refused(store, "relations", table("relations", [relation("a", "b", weight=1.5)]), 0, "weight must be <= 1")


@pytest.mark.parametrize(
    ("vector", "rule"), [([1.0, float("nan"), 0.0], "NaN"), ([1.0, 2.0], "dimension 3"), ([], "empty")]
)
def test_bad_vectors_are_refused(store: GraphStore, vector: list[float], rule: str) -> None:
    good = entity("a", embedding=[1.0, 0.0, 0.0], embedding_model=MODEL)
    rows = table("entities", [good, entity("b", embedding=vector, embedding_model=MODEL)])
    check_refused(store, "entities", rows, 1, rule)


def test_a_vector_of_an_unknown_model_is_refused(store: GraphStore) -> None:
    rows = table("entities", [entity("a", embedding=[1.0, 0.0], embedding_model=None)])
    check_refused(store, "entities", rows, 0, "without embedding_model")


@pytest.mark.parametrize("end", ["_from", "_to"])
def test_a_dangling_edge_is_refused(store: GraphStore, end: str) -> None:
    put(store, "entities", entity("a"), entity("b"))
    bad: dict[str, Any] = {**relation("a", "b", "extends"), end: "entities/nobody"}
    check_refused(store, "relations", table("relations", [relation("a", "b"), bad]), 1, "entities/nobody.*not stored")


def test_an_edge_to_a_collection_it_may_not_join_is_refused(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    bad = {**relation("a", "b"), "_to": "clusters/c"}
    check_refused(store, "relations", table("relations", [bad]), 0, "_to must be in entities")


def test_an_end_that_is_no_id_is_refused(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    bad = {**relation("a", "b"), "_from": "entities/a' || true"}
    check_refused(store, "relations", table("relations", [bad]), 0, "_from must be an id")


def test_a_document_of_ten_megabytes_is_refused(store: GraphStore) -> None:
    rows = table("entities", [entity("a"), entity("b", summary="x" * 10_000_000)])
    check_refused(store, "entities", rows, 1, "summary is larger than")


@pytest.mark.parametrize("text", ["{", "[1]", "null", "plain"])
def test_free_form_fields_hold_json_objects(store: GraphStore, text: str) -> None:
    rows = table("entities", [entity("a"), entity("b", metadata=text)])
    check_refused(store, "entities", rows, 1, "metadata must be a JSON object")


def test_patching_a_row_that_is_not_there_is_refused(store: GraphStore) -> None:
    put(store, "entities", entity("a"))
    rows = table("entities", [{"_key": "b", "summary": "y"}, {"_key": "a", "summary": "x"}])
    with pytest.raises(BadRows, match="no row to patch") as raised:
        store.patch("entities", rows)
    assert (raised.value.row, raised.value.key) == (0, "b")
    assert store.get("entities", ["a"]).column("summary").to_pylist() == [""]


def test_the_ends_of_an_edge_cannot_be_patched(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    put(store, "relations", relation("a", "b"))
    with pytest.raises(BadRows, match="ends of an edge"):
        store.patch("relations", table("relations", [{"_key": relation("a", "b")["_key"], "_to": "entities/a"}]))


def test_a_bad_batch_leaves_earlier_batches_and_drops_itself(store: GraphStore) -> None:
    batches = [
        table("entities", [entity("a"), entity("b")]).to_batches()[0],
        table("entities", [entity("c"), entity("not legal", name="n")]).to_batches()[0],
    ]
    with pytest.raises(BadRows):
        store.upsert("entities", iter(batches))
    assert store.count("entities") == 2


@pytest.mark.parametrize(
    ("terms", "rule"),
    [
        ([Term("colour", "==", "red")], "no column 'colour'"),
        ([Term("deg_out", "==", "three")], "cannot be compared"),
        ([Term("name", "==", None)], "cannot be compared"),
        ([Term("name", "like", "a%")], "not an operator"),  # type: ignore[arg-type]
        ([Term("name", "in", "abc")], "wants a list"),
        ([Term("deg_out", "starts_with", "3")], "wants a text column"),
        ([Term("embedding", "==", [1.0])], "nested"),
    ],
)
def test_a_bad_predicate_names_the_term(store: GraphStore, terms: list[Term], rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        store.count("entities", where=terms)


def test_a_number_to_compare_with_is_finite(store: GraphStore) -> None:
    with pytest.raises(BadQuery, match="finite"):
        store.count("relations", where=[Term("weight", "<", float("nan"))])


def test_quotes_and_query_text_are_only_values(store: GraphStore) -> None:
    nasty = "x' OR 1=1; -- ` @@c } RETURN"
    put(store, "entities", entity("a", name=nasty), entity("b"))
    assert store.count("entities", where=[Term("name", "==", nasty)]) == 1
    assert store.count("entities", where=[Term("name", "==", "' OR 1==1")]) == 0
    assert store.get("entities", ["' OR 1==1"]).num_rows == 0
