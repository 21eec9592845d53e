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


VECTOR = entity("a", embedding=[1.0, 0.0, 0.0], embedding_model=MODEL)
EDGE = relation("a", "b")
REFUSED: list[tuple[str, pa.Table | list[dict[str, Any]], int | None, str]] = [
    *(
        ("entities", [entity("fine"), entity(key, name="n")], 1, "_key must be")
        for key in ILLEGAL_KEYS
    ),
    ("entities", [entity("c"), entity("d"), entity("c")], 2, "twice"),
    (
        "entities",
        table("entities", [entity("c")]).set_column(1, "name", pa.array([3])),
        0,
        "is int64, expected string",
    ),
    ("entities", pa.table({"_key": ["c"]}), None, "'name' is missing"),
    (
        "entities",
        table("entities", [entity("c")]).append_column("hue", pa.array(["red"])),
        None,
        "column 'hue'",
    ),
    ("entities", [entity("c"), {**entity("d"), "type": None}], 1, "type is missing"),
    ("entities", [entity("c", type="animal")], 0, "type must be one of paper"),
    *(
        ("entities", [VECTOR, entity("c", embedding=vector, embedding_model=MODEL)], 1, rule)
        for vector, rule in (
            ([1.0, float("nan"), 0.0], "NaN"),
            ([1.0, 2.0], "dimension 3"),
            ([], "empty"),
        )
    ),
    (
        "entities",
        [entity("c", embedding=[1.0, 0.0], embedding_model=None)],
        0,
        "without embedding_model",
    ),
    ("entities", [entity("c"), entity("d", summary="x" * 10_000_000)], 1, "summary is larger than"),
    *(
        ("entities", [entity("c"), entity("d", metadata=text)], 1, "metadata must be a JSON object")
        for text in ("{", "[1]", "null", "plain")
    ),
    *(
        ("relations", [relation("a", "b", sim=float(one))], 0, "sim must be a finite")
        for one in ("nan", "inf")
    ),
    ("relations", [relation("a", "b", weight=1.5)], 0, "weight must be <= 1"),
    *(
        (
            "relations",
            [EDGE, {**relation("a", "b", "extends"), end: "entities/nobody"}],
            1,
            "entities/nobody.*not stored",
        )
        for end in ("_from", "_to")
    ),
    ("relations", [{**EDGE, "_to": "clusters/c"}], 0, "_to must be in entities"),
    ("relations", [{**EDGE, "_from": "entities/a' || true"}], 0, "_from must be an id"),
]


@pytest.mark.parametrize(
    ("collection", "given", "row", "rule"),
    REFUSED,
    ids=[f"{n}-{one[3]}" for n, one in enumerate(REFUSED)],
)
def test_a_row_that_breaks_a_rule_is_named_and_nothing_is_written(
    store: GraphStore, collection: str, given: Any, row: int | None, rule: str
) -> None:
    put(store, "entities", entity("a"), entity("b"))
    before = store.counts()
    with pytest.raises(BadRows, match=rule) as raised:
        store.upsert(collection, given if isinstance(given, pa.Table) else table(collection, given))
    assert (raised.value.row, raised.value.collection) == (row, collection)
    assert store.counts() == before


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
        store.patch(
            "relations",
            table("relations", [{"_key": relation("a", "b")["_key"], "_to": "entities/a"}]),
        )


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
