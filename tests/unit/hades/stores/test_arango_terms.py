"""A predicate becomes one condition an index answers and a list of terms the query walks."""

from datetime import UTC, datetime

import pytest

from hades.errors import BadQuery
from hades.ports.store import Term
from hades.stores.arango.encode import Condition, condition
from schemas.catalogue import Collection, collection_named

AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def named(name: str) -> Collection:
    found = collection_named(name)
    assert found is not None
    return found


def test_no_term_is_the_whole_collection() -> None:
    assert condition(named("entities"), ()) == Condition("all", {})


def test_an_equality_on_an_indexed_column_goes_first() -> None:
    where = [Term("name", "==", "x"), Term("type", "==", "concept"), Term("domain", "is_null")]
    assert condition(named("entities"), where) == Condition(
        "among",
        {
            "column": "type",
            "values": ["concept"],
            "terms": [
                {"column": "name", "op": "==", "value": "x"},
                {"column": "domain", "op": "is_null"},
            ],
        },
    )


def test_in_on_the_key_or_an_end_of_an_edge_goes_first() -> None:
    assert condition(named("entities"), [Term("_key", "in", ["a", "b"])]).binds["values"] == [
        "a",
        "b",
    ]
    assert condition(named("relations"), [Term("_from", "==", "entities/a")]).kind == "among"


def test_texts_are_ordered_by_their_bytes_not_by_the_servers_collation() -> None:
    assert condition(named("entities"), [Term("name", "<", "b é")]).binds["terms"] == [
        {"column": "name", "op": "text <", "value": "b é".encode().hex()}
    ]
    assert condition(named("entities"), [Term("name_lower", ">=", "m")]).kind == "where"


def test_times_are_compared_as_texts_and_objects_not_at_all() -> None:
    where = [Term("valid_from", "<", AT)]
    assert (
        condition(named("memory_edges"), where).binds["terms"][0]["value"]
        == "2024-01-02T03:04:05.000000Z"
    )
    with pytest.raises(BadQuery, match="only be asked for null"):
        condition(named("entities"), [Term("metadata", "==", "{}")])
