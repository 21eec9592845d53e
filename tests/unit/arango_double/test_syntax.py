"""Parsing: what is AQL, what is not, and what the error says."""

import pytest

from tests.arango_double.errors import ServerError
from tests.arango_double.language import Language
from tests.arango_double.parser import parse
from tests.unit.arango_double.engine import Engine


def parse_error(query: str) -> ServerError:
    with pytest.raises(ServerError) as caught:
        parse(query, Language())
    return caught.value


@pytest.mark.parametrize(
    "query",
    [
        "RETURN 1;",
        "FOR x IN [1] RETURN",
        "FOR x IN [1] x",
        "LET x 1 RETURN x",
        "RETURN 1 RETURN 2",
        "FOR d IN c RETURN d.graph",
        "RETURN { for: 1 }",
        "FOR x IN [1,2] SORT x @@dir RETURN x",
        "RETURN 'unterminated",
        "RETURN 1 /* open",
        "RETURN @_",
        "FOR x IN [1] LIMIT 1, 2, 3 RETURN x",
        "INSERT {} INTO @c",
        "FOR v IN 1..2 OUTBOUND 'c/a' GRAPH RETURN v",
        "FOR v, e, p, q IN 1..2 OUTBOUND 'c/a' e RETURN v",
        "FOR a, b IN [1] RETURN a",
        "FOR v, e, p IN OUTBOUND SHORTEST_PATH 'c/a' TO 'c/b' GRAPH 'g' RETURN p",
        "FOR p, q IN OUTBOUND K_SHORTEST_PATHS 'c/a' TO 'c/b' GRAPH 'g' RETURN p",
        "FOR p IN 1..3 OUTBOUND K_SHORTEST_PATHS 'c/a' TO 'c/b' GRAPH 'g' RETURN p",
        "FOR v IN OUTBOUND SHORTEST_PATH 'c/a' UNTIL 'c/b' GRAPH 'g' RETURN v",
        "FOR v, e, p IN 1..2 OUTBOUND 'c/a' e OPTIONS {} PRUNE v.x RETURN v",
        "FOR v IN 1..2 OUTBOUND 'c/a' e PRUNE LENGTH(FOR i IN 1..2 RETURN i) > 1 RETURN v",
        "FOR d IN v OPTIONS {} SEARCH d.x == 1 RETURN d",
        "FOR d IN [1] SEARCH d == 1 RETURN d",
        "FOR x IN [1] COLLECT y = x KEEP x RETURN y",
        "FOR x IN [1] COLLECT y = x WITH SIZE INTO n RETURN y",
        "FOR x IN [1] COLLECT AGGREGATE y = x RETURN y",
        "RETURN DISTINCT 1",
        "UPSERT { [1]: 2 } INSERT {} UPDATE {} IN c",
        "FOR x IN [1] FILTER x",
        "RETURN [1, 2][* ANY FILTER CURRENT]",
    ],
)
def test_what_the_grammar_does_not_know_is_a_parse_error(query: str) -> None:
    assert parse_error(query).number == 1501


def test_parse_errors_quote_the_query_and_the_position() -> None:
    error = parse_error("FOR x IN [1] FILTER x\n  RETURM x")
    assert "near 'RETURM x' at position 2:3" in error.message
    assert error.message.startswith("AQL: ")
    assert error.status == 400


def test_an_empty_query_has_its_own_error() -> None:
    assert parse_error("  \n ").number == 1502


def test_keywords_and_functions_ignore_case_but_variables_do_not(engine: Engine) -> None:
    assert engine.run("for x in [1, 2] filter x > 1 return length([x])") == [1]
    assert engine.error("LET a = 1 RETURN A") == 1203


def test_comments_and_backticks(engine: Engine) -> None:
    query = "LET `for` = 1 // one\n RETURN /* two\n lines */ `for` + {`in`: 2}.`in`"
    assert engine.run(query) == [3]


def test_a_trailing_comma_is_fine_in_literals_but_not_in_calls() -> None:
    parse("RETURN [1, 2, {a: 1,},]", Language())
    assert parse_error("RETURN MAX([1],)").number == 1501


@pytest.mark.parametrize("name", ["NVL", "GREATEST", "LEAST", "COALESCE", "IFNULL", "LN", "NOW", "COSINE_DISTANCE"])
def test_functions_of_other_dialects_are_unknown(engine: Engine, name: str) -> None:
    assert engine.error(f"RETURN {name}(1, 2)") == 1540


def test_a_known_function_with_a_wrong_count_is_named_with_its_limits() -> None:
    error = parse_error("RETURN LENGTH(1, 2)")
    assert error.number == 1541
    assert "minimum: 1, maximum: 1" in error.message


def test_what_the_double_lacks_says_so_and_is_not_a_parse_error() -> None:
    assert parse_error("RETURN GEO_DISTANCE([0, 0], [1, 1])").number == 9
    assert parse_error("FOR x IN [1] WINDOW {preceding: 1} AGGREGATE s = SUM(x) RETURN s").number == 9


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("LET a = 1 LET a = 2 RETURN a", 1511),
        ("FOR a IN [1] FOR a IN [2] RETURN a", 1511),
        ("FOR a IN [1] COLLECT a = a RETURN a", 1511),
        ("LET _a = 1 RETURN _a", 1510),
        ("RETURN {a}", 1512),
        ("FOR x IN [1] COLLECT a = x AGGREGATE b = SUM(a) RETURN b", 1512),
        ("FOR x IN [1] COLLECT a = x INTO g = a RETURN g", 1512),
        ("FOR x IN [1] COLLECT AGGREGATE m = MEDIAN(x) RETURN m", 1574),
        ("FOR x IN [1] COLLECT AGGREGATE m = PERCENTILE(x, 50) RETURN m", 1574),
        ("FOR x IN [1] OPTIONS {indexHint: x} RETURN x", 1575),
        ("LET o = 1 FOR v IN 1..1 OUTBOUND 'a/b' e OPTIONS {order: CONCAT('b', 'fs')} RETURN v", 1575),
    ],
)
def test_names_aggregates_and_options_are_checked_while_parsing(query: str, number: int) -> None:
    assert parse_error(query).number == number


def test_push_is_an_aggregate_from_3_12_4() -> None:
    query = "FOR x IN [1, 2] COLLECT AGGREGATE p = PUSH(x) RETURN p"
    assert Engine("3.12.4").run(query) == [[1, 2]]
    assert Engine("3.12.3").error(query) == 1541


def test_a_subquery_may_stand_bare_only_as_a_function_argument(engine: Engine) -> None:
    assert engine.run("RETURN SUM(FOR x IN [1, 2] RETURN x)") == [3]
    assert engine.error("LET s = FOR x IN [1] RETURN x RETURN s") == 1501


def test_operator_precedence_is_the_servers(engine: Engine) -> None:
    assert engine.one("1 + 2 * 3 == 7 && !false") is True
    assert engine.one("false || true && false") is False
    assert engine.one("2 IN [1, 2] == true") is True
    assert engine.one("-2 * -3") == 6
    assert engine.one("1..2 + 1") == [1, 2, 3]
    assert engine.one("NOT 1 IN [2]") is False
    assert engine.one("[1, 2] ALL == 1 OR true") is True
    assert engine.one("true ? false ? 1 : 2 : 3") == 2
    assert engine.one("'abc' NOT LIKE 'a%'") is False
