"""Expressions: the traps of operators, accesses, expansions and binds."""

import pytest

from tests.unit.arango_double.engine import Engine


def test_or_returns_an_operand_so_a_stored_zero_is_lost(engine: Engine) -> None:
    assert engine.run("FOR w IN [0, 0.5, null] RETURN w || 1.0") == [1, 0.5, 1]
    assert engine.run("FOR w IN [0, 0.5, null] RETURN NOT_NULL(w, 1.0)") == [0, 0.5, 1]
    assert engine.run("FOR w IN [0, 0.5] RETURN w ? w : 1") == [1, 0.5]
    assert engine.one("0 ?: 'x'") == "x"
    assert engine.one("1 && 'b'") == "b"
    assert engine.one("'' && 'b'") == ""


def test_null_counts_as_zero_in_arithmetic_and_sorts_first(engine: Engine) -> None:
    assert engine.one("null + 1") == 1
    assert engine.one("'a' * 2") == 0
    assert engine.run("FOR x IN [1, null, 'a', true, [], {}] SORT x RETURN x") == [None, True, 1, "a", [], {}]
    assert engine.run("FOR x IN [1, null] SORT x DESC RETURN x") == [1, None]


def test_division_by_zero_is_null_with_a_warning(engine: Engine) -> None:
    assert engine.one("1 / 0") is None
    assert engine.warnings() == [1562]
    assert engine.one("5 % 0") is None
    assert engine.error("RETURN 1 / 0", fail_on_warning=True) == 1562


def test_whole_results_are_integers_and_modulo_keeps_the_sign(engine: Engine) -> None:
    assert engine.one("4 / 2") == 2
    assert isinstance(engine.one("4 / 2"), int)
    assert engine.one("7 / 2") == 3.5
    assert engine.one("-7 % 3") == -1


def test_logarithms_of_nothing_are_null(engine: Engine) -> None:
    assert engine.one("[LOG(0), LOG(-1), LOG(1), SQRT(-1)]") == [None, None, 0, None]


def test_quantified_comparisons(engine: Engine) -> None:
    assert engine.one("[] ALL == 1") is True
    assert engine.one("[] ANY == 1") is False
    assert engine.one("[] NONE == 1") is True
    assert engine.one("[1, 2, 3] ANY IN [3, 4]") is True
    assert engine.one("[1, 2, 3] ALL IN [1, 2, 3, 4]") is True
    assert engine.one("[1, 2, 3] NONE > 3") is True
    assert engine.one("[1, 2, 3] AT LEAST (2) >= 2") is True
    assert engine.one("[1, 2, 3] AT LEAST (3) >= 2") is False
    assert engine.one("null ALL == 1") is False


def test_in_and_not_in(engine: Engine) -> None:
    assert engine.one("2 IN [1, 2]") is True
    assert engine.one("2 IN 'no array'") is False
    assert engine.one("'x' NOT IN @list", list=["x"]) is False
    assert engine.one("true IN [1]") is False


def test_text_matching(engine: Engine) -> None:
    assert engine.one("'abc' LIKE 'a%'") is True
    assert engine.one("'aBc' LIKE 'a_c'") is True
    assert engine.one("'a%c' LIKE 'a\\\\%c'") is True
    assert engine.one("'abc' =~ 'b'") is True
    assert engine.one("'abc' !~ '^b'") is True


def test_accesses_to_what_is_not_there_are_null(engine: Engine) -> None:
    assert engine.one("{a: {b: 1}}.a.b") == 1
    assert engine.one("{a: 1}.b.c.d") is None
    assert engine.one("[1, 2, 3][-1]") == 3
    assert engine.one("[1, 2][7]") is None
    assert engine.one("('abc')[0]") is None
    assert engine.one("{`a b`: 1}['a b']") == 1


def test_attributes_and_keys_may_be_bound(engine: Engine) -> None:
    document = {"a": {"b": 5}, "x": 1}
    assert engine.one("@d.@name", d=document, name="x") == 1
    assert engine.one("@d.@path", d=document, path=["a", "b"]) == 5
    assert engine.one("@d[@name]", d=document, name="x") == 1
    assert engine.one("{@k: 1, [CONCAT('a', 'b')]: 2}", k="key") == {"key": 1, "ab": 2}


def test_expansions_map_filter_limit_and_project(engine: Engine) -> None:
    rows = [{"n": 1, "t": ["a"]}, {"n": 2, "t": ["b", "c"]}, {"n": 3}]
    assert engine.one("@r[*].n", r=rows) == [1, 2, 3]
    assert engine.one("@r[* FILTER CURRENT.n > 1 RETURN CURRENT.n * 10]", r=rows) == [20, 30]
    assert engine.one("@r[* FILTER CURRENT.n > 0 LIMIT 1, 1 RETURN CURRENT.n]", r=rows) == [2]
    assert engine.one("@r[*].t[*]", r=rows) == [["a"], ["b", "c"], []]
    assert engine.one("@r[*].t[**]", r=rows) == ["a", "b", "c", None]
    assert engine.one("(null)[*].a") == []
    assert engine.one("@r[* RETURN CURRENT.t[* RETURN UPPER(CURRENT)]]", r=rows) == [["A"], ["B", "C"], []]


def test_an_index_after_an_expansion_belongs_to_each_item_unless_in_parentheses(engine: Engine) -> None:
    assert engine.one("[{a: [1, 2]}, {a: [3]}][*].a[0]") == [1, 3]
    assert engine.one("([{a: [1, 2]}, {a: [3]}][*].a)[0]") == [1, 2]


def test_questions_about_arrays(engine: Engine) -> None:
    assert engine.one("[1, 2, 3][? FILTER CURRENT > 2]") is True
    assert engine.one("[1, 2, 3][? ALL FILTER CURRENT > 0]") is True
    assert engine.one("[1, 2, 3][? NONE FILTER CURRENT > 3]") is True
    assert engine.one("[1, 2, 3][? 2 FILTER CURRENT > 1]") is True
    assert engine.one("[1, 2, 3][? 3..4 FILTER CURRENT > 1]") is False
    assert engine.one("[][?]") is False


def test_current_exists_only_inside_an_expansion(engine: Engine) -> None:
    assert engine.error("RETURN CURRENT") == 1203
    assert engine.error("RETURN [1][* RETURN (FOR x IN [2] RETURN x + CURRENT)]") == 1203
    assert engine.one("[1, 2][* RETURN CURRENT + SUM(FOR x IN [5] RETURN x)]") == [6, 7]


@pytest.mark.parametrize(
    ("query", "binds", "number"),
    [
        ("RETURN @a", {}, 1551),
        ("RETURN 1", {"a": 1}, 1552),
        ("FOR d IN @@c RETURN d", {"@c": 1}, 1553),
        ("FOR d IN @@c RETURN d", {"@c": "nope"}, 1203),
        ("FOR d IN @@c RETURN d", {"c": "nope"}, 1551),
        ("RETURN {a: 1}.@n", {"n": 3}, 1553),
        ("FOR x IN [1] SORT x @dir RETURN x", {"dir": "sideways"}, 1553),
    ],
)
def test_binds_must_be_exactly_the_declared_ones(
    engine: Engine, query: str, binds: dict[str, object], number: int
) -> None:
    assert engine.error(query, binds) == number


def test_sort_direction_may_be_bound(engine: Engine) -> None:
    assert engine.run("FOR x IN [1, 2] SORT x @d RETURN x", {"d": "desc"}) == [2, 1]
    assert engine.run("FOR x IN [1, 2] SORT x @d RETURN x", {"d": True}) == [1, 2]


def test_a_collection_is_never_an_operand(engine: Engine) -> None:
    engine.collection("c", {"_key": "a"})
    for query in ("RETURN c", "RETURN c[*]", "FOR d IN c RETURN c + 1", "RETURN NOOPT(c)", "RETURN APPEND(c, 1)"):
        assert engine.error(query) == 1568
    assert engine.run("RETURN [LENGTH(c), COUNT(c), COLLECTION_COUNT(c)]") == [[1, 1, 1]]
    assert engine.run("RETURN DOCUMENT(c, 'a')._key") == ["a"]


def test_unknown_names_are_missing_collections(engine: Engine) -> None:
    assert engine.error("FOR d IN missing RETURN d") == 1203
    assert engine.error("RETURN typo + 1") == 1203
