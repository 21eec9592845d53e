"""Functions: values that can be checked by hand or against the manual."""

import math
from typing import Any

import pytest

from tests.unit.arango_double.engine import Engine

CASES: list[tuple[str, Any]] = [
    # text
    ("CONCAT('a', null, 1, true, [1, 'b'], {c: 2})", 'a1true[1,"b"]{"c":2}'),
    ("CONCAT(['a', null, 'b'])", "ab"),
    ("CONCAT_SEPARATOR(' -> ', ['a', null, 'b'])", "a -> b"),
    ("CONCAT_SEPARATOR(', ', 'a', 1, null)", "a, 1"),
    ("LENGTH('häl')", 3),
    ("[LENGTH(null), LENGTH(true), LENGTH(123), LENGTH([1, 2]), LENGTH({a: 1})]", [0, 1, 3, 2, 1]),
    ("[LOWER('ÄB'), UPPER('äb'), TRIM('  a '), LTRIM('--a-', '-'), RTRIM('a--', '-')]", ["äb", "ÄB", "a", "a-", "a"]),
    ("[SUBSTRING('hello', 1, 3), SUBSTRING('hello', -3, 2), LEFT('abc', 2), RIGHT('abc', 2)]",
     ["ell", "ll", "ab", "bc"]),
    ("[CONTAINS('abc', 'b'), CONTAINS('abc', 'b', true), CONTAINS('abc', 'x', true)]", [True, 1, -1]),
    ("[FIND_FIRST('abcabc', 'b'), FIND_LAST('abcabc', 'b'), FIND_FIRST('abc', 'x')]", [1, 4, -1]),
    ("[SPLIT('a,b', ','), SPLIT('a-b_c', ['-', '_']), SPLIT('abc', ''), SPLIT('a,b,c', ',', 2)]",
     [["a", "b"], ["a", "b", "c"], ["a", "b", "c"], ["a", "b"]]),
    ("SUBSTITUTE('the quick brown', ['quick', 'brown'], ['slow', 'red'])", "the slow red"),
    ("SUBSTITUTE('a a a', 'a', 'b', 2)", "b b a"),
    ("SUBSTITUTE('ab', {a: 'b', b: 'a'})", "ba"),
    ("[REGEX_TEST('abc', '^A', true), REGEX_TEST('abc', 'd'), REGEX_MATCHES('a1-b2', '([a-z])([0-9])')]",
     [True, False, ["a1", "a", "1"]]),
    ("REGEX_REPLACE('a1b2', '([0-9])', '<$1>')", "a<1>b<2>"),
    ("[STARTS_WITH('abc', 'ab'), STARTS_WITH('abc', ['x', 'a', 'abc'], 2)]", [True, True]),
    ("[MD5('foobar'), SHA1('foobar')]",
     ["3858f62230ac3c915f300c664312c63f", "8843d7f92416211de9ebb963ff4ce28125932878"]),
    ("[LEVENSHTEIN_DISTANCE('foo', 'bar'), TO_HEX('ab'), TO_BASE64('ABC.')]", [3, "6162", "QUJDLg=="]),
    # casts and types
    ("[TO_STRING(null), TO_STRING(1.5), TO_STRING([1, 2]), TO_BOOL([]), TO_BOOL('')]",
     ["", "1.5", "[1,2]", True, False]),
    ("[TO_ARRAY(null), TO_ARRAY('a'), TO_ARRAY({a: 1, b: 2}), TO_NUMBER('3.5')]", [[], ["a"], [1, 2], 3.5]),
    ("[TYPENAME(null), TYPENAME(1), TYPENAME([]), IS_OBJECT({}), IS_STRING(1), IS_KEY('a b')]",
     ["null", "number", "array", True, False, False]),
    # numbers
    ("[FLOOR(-2.5), CEIL(2.1), ROUND(2.5), ROUND(-2.5), ABS(-1), POW(2, 10), SQRT(9)]", [-3, 3, 3, -2, 1, 1024, 3]),
    ("[MIN([3, null, 1]), MAX([1, 'a', 2]), MAX([]), SUM([1, null, 2]), SUM([]), SUM([1, 'x'])]",
     [1, "a", None, 3, 0, None]),
    ("[AVERAGE([1, 2, null]), AVG([]), MEDIAN([1, 2, 3, 10]), MEDIAN([3, 1, 2])]", [1.5, None, 2.5, 2]),
    ("[PERCENTILE([1, 2, 3, 4], 50), PERCENTILE([1, 2, 3, 4], 50, 'interpolation')]", [2, 2.5]),
    ("[VARIANCE([1, 3, 6, 5, 2]), STDDEV_SAMPLE([2, 4]), VARIANCE_SAMPLE([1])]", [3.44, math.sqrt(2), None]),
    ("[RANGE(1, 4), RANGE(1, 4, 2), RANGE(4, 1), RANGE(0, 1, 0.5)]", [[1, 2, 3, 4], [1, 3], [4, 3, 2, 1], [0, 0.5, 1]]),
    # arrays
    ("[FIRST([1, 2]), LAST([1, 2]), NTH([1, 2], 1), FIRST([]), NTH([1], -1)]", [1, 2, 2, None, None]),
    ("[PUSH([1], 1), PUSH([1], 1, true), APPEND([1], [1, 2]), APPEND([1], [1, 2], true), PUSH(null, 1)]",
     [[1, 1], [1], [1, 1, 2], [1, 2], [1]]),
    ("[UNION([1], [1, 2]), UNION_DISTINCT([1], [1, 2]), INTERSECTION([1, 2], [2, 3]), MINUS([1, 2], [2])]",
     [[1, 1, 2], [1, 2], [2], [1]]),
    ("[FLATTEN([1, [2, [3]]]), FLATTEN([1, [2, [3]]], 2), SLICE([1, 2, 3, 4], -2), SLICE([1, 2, 3, 4], 0, -1)]",
     [[1, 2, [3]], [1, 2, 3], [3, 4], [1, 2, 3]]),
    ("[REVERSE([1, 2]), SORTED([3, 'a', 1]), SORTED_UNIQUE([2, 1, 2]), UNIQUE([1, 1.0, 2])]",
     [[2, 1], [1, 3, "a"], [1, 2], [1, 2]]),
    ("[POSITION([1, 2], 2), POSITION([1, 2], 2, true), REMOVE_VALUE([1, 2, 1], 1), REMOVE_NTH([1, 2], 0)]",
     [True, 1, [2], [2]]),
    ("[ZIP(['a', 'b'], [1, 2]), JACCARD([1, 2], [2, 3]), OUTERSECTION([1, 2], [2, 3])]",
     [{"a": 1, "b": 2}, 1 / 3, [1, 3]]),
    # objects
    ("[HAS({a: null}, 'a'), HAS({}, 'a'), HAS(null, 'a')]", [True, False, False]),
    ("[KEEP({a: 1, b: 2, c: 3}, 'a', 'c'), KEEP({a: 1, b: 2}, ['b']), UNSET({a: 1, b: 2}, 'a')]",
     [{"a": 1, "c": 3}, {"b": 2}, {"b": 2}]),
    ("[MERGE({a: 1}, {a: 2, b: 3}), MERGE([{a: 1}, {b: 2}])]", [{"a": 2, "b": 3}, {"a": 1, "b": 2}]),
    ("MERGE_RECURSIVE({a: {b: 1}}, {a: {c: 2}})", {"a": {"b": 1, "c": 2}}),
    ("[ATTRIBUTES({b: 1, _a: 2}, true, true), VALUES({a: 1, b: 2}), MATCHES({a: 1, b: 2}, {a: 1})]",
     [["b"], [1, 2], True]),
    ("[KEEP_RECURSIVE({a: {a: 1, b: 2}, c: 3}, 'a'), TRANSLATE('x', {x: 'y'}), VALUE({a: [{b: 1}]}, ['a', 0, 'b'])]",
     [{"a": {"a": 1}}, "y", 1]),
    ("[JSON_STRINGIFY({a: [1]}), JSON_PARSE('[1,{}]')]", ['{"a":[1]}', [1, {}]]),
    # identifiers
    ("[PARSE_IDENTIFIER('c/k'), PARSE_KEY('c/k'), PARSE_COLLECTION({_id: 'c/k'})]",
     [{"collection": "c", "key": "k"}, "k", "c"]),
    ("[IS_SAME_COLLECTION('c', 'c/k'), IS_SAME_COLLECTION('c', {_id: 'd/k'}), NOT_NULL(null, 0, 1)]", [True, False, 0]),
    # vectors
    ("[COSINE_SIMILARITY([1, 0], [0, 1]), COSINE_SIMILARITY([1, 2], [2, 4]), L2_DISTANCE([0, 0], [3, 4])]", [0, 1, 5]),
    ("[L1_DISTANCE([1, 2], [3, 1]), COSINE_SIMILARITY([1, 0], [[1, 0], [0, 1]])]", [3, [1, 0]]),
    # dates
    ("[DATE_TIMESTAMP('1970-01-02'), DATE_ISO8601(0), DATE_YEAR('2024-05-06T07:08:09Z')]",
     [86400000, "1970-01-01T00:00:00.000Z", 2024]),
    ("[DATE_ADD('2024-01-31', 1, 'day'), DATE_ADD('2024-01-15', 1, 'month'), DATE_SUBTRACT('2024-01-01', 'P1D')]",
     ["2024-02-01T00:00:00.000Z", "2024-02-15T00:00:00.000Z", "2023-12-31T00:00:00.000Z"]),
    ("[DATE_DIFF('2024-01-01', '2024-01-03', 'd'), DATE_DIFF('2024-01-01', '2024-01-02T12:00:00Z', 'd', true)]",
     [2, 1.5]),
    ("[DATE_TRUNC('2024-05-06T07:08:09Z', 'month'), IS_DATESTRING('2024-13-01')]", ["2024-05-01T00:00:00.000Z", False]),
    ("DATE_ISO8601('2024-01-01T01:00:00+01:00')", "2024-01-01T00:00:00.000Z"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[case[0][:40] for case in CASES])
def test_functions_give_the_documented_values(engine: Engine, expression: str, expected: Any) -> None:
    assert _rounded(engine.one(expression)) == _rounded(expected)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(member) for member in value]
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("COSINE_SIMILARITY(null, [1])", 1542),
        ("COSINE_SIMILARITY([1, 2], [1])", 1542),
        ("KEEP(null, 'a')", 1542),
        ("MAX(1)", 1563),
        ("FIRST('x')", 1563),
        ("AVERAGE(['x'])", 1561),
        ("UNION([1], 2)", 1542),
        ("REGEX_TEST('a', '(')", 1543),
        ("DATE_YEAR('yesterday')", 1572),
    ],
)
def test_wrong_arguments_give_null_and_a_warning(engine: Engine, expression: str, warning: int) -> None:
    assert engine.one(expression) is None
    assert engine.warnings() == [warning]
    assert engine.error(f"RETURN {expression}", fail_on_warning=True) == warning


def test_at_most_ten_warnings_are_kept(engine: Engine) -> None:
    engine.run("FOR x IN 1..50 RETURN 1 / 0")
    assert len(engine.warnings()) == 10


def test_date_now_is_one_moment_in_milliseconds(engine: Engine) -> None:
    first, second = engine.one("[DATE_NOW(), SLEEP(0.02) || DATE_NOW()]")
    assert first == second > 1_600_000_000_000


def test_documents_are_found_by_id_by_key_and_in_lists(engine: Engine) -> None:
    engine.collection("c", {"_key": "a", "n": 1}, {"_key": "b", "n": 2})
    assert engine.one("DOCUMENT('c/a').n") == 1
    assert engine.one("DOCUMENT(c, 'b').n") == 2
    assert engine.one("DOCUMENT('c', ['a', 'x', 'b'])[*].n") == [1, 2]
    assert engine.one("DOCUMENT(['c/b', 'c/none'])[*].n") == [2]
    assert engine.one("DOCUMENT('c/none')") is None
    assert engine.one("[DOCUMENT(null), DOCUMENT('nowhere/x'), DOCUMENT(c, 'other/a')]") == [None, None, None]
    assert engine.warnings() == []
    assert engine.run("RETURN DOCUMENT(@@c, @key).n", {"@c": "c", "key": "a"}) == [1]


def test_the_server_knows_its_version_and_who_asks(engine: Engine) -> None:
    assert engine.one("[VERSION(), CURRENT_USER(), CURRENT_DATABASE()]") == ["3.12.8", "root", "db"]
