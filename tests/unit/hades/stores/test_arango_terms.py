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
            "terms": [{"column": "name", "op": "==", "value": "x"}, {"column": "domain", "op": "is_null"}],
        },
    )


def test_in_on_the_key_or_an_end_of_an_edge_goes_first() -> None:
    assert condition(named("entities"), [Term("_key", "in", ["a", "b"])]).binds["values"] == ["a", "b"]
    assert condition(named("relations"), [Term("_from", "==", "entities/a")]).kind == "among"


def test_ranges_on_an_indexed_number_become_one_interval_and_stay_as_terms() -> None:
    where = [Term("deg_out", ">", 3), Term("deg_out", "<=", 9), Term("deg_out", ">=", 2)]
    narrowed = condition(named("entities"), where)
    assert narrowed.kind == "within"
    assert (narrowed.binds["column"], narrowed.binds["low"], narrowed.binds["high"]) == ("deg_out", 3, 9)
    assert [term["op"] for term in narrowed.binds["terms"]] == [">", "<=", ">="]


def test_an_open_side_of_an_interval_leaves_null_out() -> None:
    narrowed = condition(named("memory_edges"), [Term("valid_from", "<", AT)])
    assert narrowed.binds["low"] is False
    assert narrowed.binds["high"] == "2024-01-02T03:04:05.000000Z"
    assert condition(named("memory_edges"), [Term("valid_from", ">", AT)]).binds["high"] == []


def test_texts_are_ordered_by_their_bytes_not_by_the_servers_collation() -> None:
    assert condition(named("entities"), [Term("name", "<", "b é")]).binds["terms"] == [
        {"column": "name", "op": "text <", "value": "b é".encode().hex()}
    ]
    assert condition(named("entities"), [Term("name_lower", ">=", "m")]).kind == "where"


def test_a_json_column_is_compared_as_an_object() -> None:
    assert condition(named("entities"), [Term("metadata", "==", '{"a": 1}')]).binds["terms"] == [
        {"column": "metadata", "op": "==", "value": {"a": 1}}
    ]
    with pytest.raises(BadQuery, match="has no order"):
        condition(named("entities"), [Term("metadata", "<", "{}")])
    with pytest.raises(BadQuery, match="JSON object"):
        condition(named("entities"), [Term("metadata", "==", "no")])


def test_bad_terms_are_refused_as_everywhere() -> None:
    with pytest.raises(BadQuery, match="no column 'colour'"):
        condition(named("entities"), [Term("colour", "==", "red")])
