"""Values: one order over all types, truth, and how numbers and strings convert."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arango_double.collation import collation_key
from tests.arango_double.values import compare, equal, hash_key, normal, sort_key, to_number, truthy

scalars = st.none() | st.booleans() | st.integers(-50, 50) | st.floats(-9, 9) | st.text("aB1_é", max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2)
)


def test_types_come_before_values() -> None:
    ordered: list[Any] = [None, False, True, -1, 0, 10, "", "0", "a", [], [0], {}, {"a": 0}]
    assert all(compare(left, right) < 0 for left, right in itertools.pairwise(ordered))


def test_missing_members_and_attributes_count_as_null() -> None:
    assert equal([], [None])
    assert equal({}, {"a": None})
    assert not equal([None, 1], [])


def test_true_is_not_one_but_one_is_one_point_zero() -> None:
    assert not equal(True, 1)
    assert equal(1, 1.0)


@given(values, values, values)
def test_the_order_is_total_and_transitive(a: Any, b: Any, c: Any) -> None:
    assert compare(a, b) == -compare(b, a)
    if compare(a, b) <= 0 and compare(b, c) <= 0:
        assert compare(a, c) <= 0


@given(values, values)
def test_equal_values_have_equal_keys(a: Any, b: Any) -> None:
    if not isinstance(a, str) and not isinstance(b, str):
        assert equal(a, b) == (hash_key(a) == hash_key(b))
    assert (sort_key(a) < sort_key(b)) == (compare(a, b) < 0)


def test_strings_sort_by_letter_before_case_and_punctuation_before_digits() -> None:
    words = ["b", "B", "a1", "A", "a", "a_1", "ä", "é", "e", "f", "10", "9"]
    assert sorted(words, key=collation_key) == ["10", "9", "a", "A", "ä", "a_1", "a1", "b", "B", "e", "é", "f"]


@pytest.mark.parametrize(("value", "expected"), [(None, False), (0, False), ("", False), ([], True), ({}, True)])
def test_only_null_false_zero_and_empty_text_are_false(value: Any, expected: bool) -> None:
    assert truthy(value) is expected


@pytest.mark.parametrize(
    ("value", "number"),
    [(None, 0), (True, 1), (" 42 ", 42), ("1e3", 1000), ("x", 0), ([], 0), ([7], 7), ([1, 2], 0), ({"a": 1}, 0)],
)
def test_casts_to_numbers(value: Any, number: float) -> None:
    assert to_number(value) == number


def test_whole_doubles_are_shown_as_integers_and_infinity_as_null() -> None:
    assert isinstance(normal(2.0), int)
    assert normal(float("inf")) is None
    assert normal(0.5) == 0.5
