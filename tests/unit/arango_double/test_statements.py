"""Statements: loops, filters, grouping, limits, results, and the limits on a running query."""

import pytest

from tests.unit.arango_double.engine import Engine

PEOPLE = [
    {"_key": "a", "name": "Ann", "city": "Bonn", "age": 30},
    {"_key": "b", "name": "Bob", "city": "Bonn", "age": 20},
    {"_key": "c", "name": "Cid", "city": "Aachen", "age": None},
    {"_key": "d", "name": "Dan", "city": "Aachen", "age": 50},
]


@pytest.fixture
def people(engine: Engine) -> Engine:
    engine.collection("people", *PEOPLE)
    return engine


def test_loops_nest_and_ranges_run_both_ways(engine: Engine) -> None:
    assert engine.run("FOR a IN 1..2 FOR b IN 2..1 RETURN [a, b]") == [[1, 2], [1, 1], [2, 2], [2, 1]]


def test_a_loop_over_something_else_is_an_error(engine: Engine) -> None:
    assert engine.error("FOR x IN null RETURN x") == 1563
    assert engine.error("FOR x IN @c RETURN x", {"c": "people"}) == 1563


def test_a_let_with_a_subquery_is_always_an_array(people: Engine) -> None:
    query = "LET one = (FOR p IN people FILTER p._key == 'a' RETURN p.name) RETURN [one, FIRST(one), one[0]]"
    assert people.run(query) == [[["Ann"], "Ann", "Ann"]]


def test_sorting_by_several_keys_with_ties(people: Engine) -> None:
    query = "FOR p IN people SORT p.city DESC, p.age, p._key RETURN p._key"
    assert people.run(query) == ["b", "a", "c", "d"]


def test_a_sort_by_key_alone_is_the_order_of_the_primary_index_and_any_other_is_by_collation(engine: Engine) -> None:
    keys = ["a_b", "a-b", "Ab", "B", "10", "9", "a"]
    engine.collection("mixed", *({"_key": key, "name": key} for key in keys))
    assert engine.run("FOR d IN mixed SORT d._key RETURN d._key") == sorted(keys)
    by_name = engine.run("FOR d IN mixed SORT d.name RETURN d._key")
    assert by_name != sorted(keys)
    assert engine.run("FOR d IN mixed SORT d._key, d.name RETURN d._key") == by_name


def test_limit_takes_offset_and_count(engine: Engine) -> None:
    assert engine.run("FOR x IN 1..9 LIMIT 2, 3 RETURN x") == [3, 4, 5]
    assert engine.run("FOR x IN 1..9 LIMIT @n RETURN x", {"n": 2}) == [1, 2]
    assert engine.run("FOR x IN 1..9 LIMIT 0 RETURN x") == []
    assert engine.run("FOR x IN 1..3 LIMIT 1, null RETURN x") == [2, 3]
    assert engine.run("FOR x IN 1..3 LIMIT null, 1 RETURN x") == [1]


@pytest.mark.parametrize("limit", ["x", "LENGTH([1])", "-1", "'1'", "[1]", "x.y, 3"])
def test_limit_must_be_a_constant_number(engine: Engine, limit: str) -> None:
    assert engine.error(f"FOR x IN 1..3 LIMIT {limit} RETURN x") == 1504


def test_collect_groups_in_order_of_the_group_value(people: Engine) -> None:
    query = "FOR p IN people COLLECT city = p.city INTO g RETURN {city, names: g[*].p.name}"
    assert people.run(query) == [
        {"city": "Aachen", "names": ["Cid", "Dan"]},
        {"city": "Bonn", "names": ["Ann", "Bob"]},
    ]


def test_collect_with_projection_keep_and_count(people: Engine) -> None:
    assert people.run("FOR p IN people COLLECT c = p.city INTO ks = p._key RETURN ks") == [["c", "d"], ["a", "b"]]
    query = "FOR p IN people LET n = p.name LET o = 1 COLLECT c = p.city INTO g KEEP n RETURN g"
    assert people.run(query) == [[{"n": "Cid"}, {"n": "Dan"}], [{"n": "Ann"}, {"n": "Bob"}]]
    assert people.run("FOR p IN people COLLECT c = p.city WITH COUNT INTO n RETURN [c, n]") == [
        ["Aachen", 2],
        ["Bonn", 2],
    ]
    assert people.run("FOR p IN people COLLECT WITH COUNT INTO n RETURN n") == [4]


def test_aggregates_skip_null_and_of_nothing_are_null(people: Engine) -> None:
    query = """
        FOR p IN people
          COLLECT AGGREGATE n = COUNT(), s = SUM(p.age), a = AVG(p.age), lo = MIN(p.age), hi = MAX(p.age),
                            u = COUNT_DISTINCT(p.city), v = SORTED_UNIQUE(p.city), d = STDDEV(p.age)
          RETURN {n, s, a, lo, hi, u, v, d: ROUND(d)}
    """
    row = people.run(query)[0]
    assert row == {"n": 4, "s": 100, "a": 100 / 3, "lo": 20, "hi": 50, "u": 2, "v": ["Aachen", "Bonn"], "d": 12}
    empty = "FOR p IN [] COLLECT AGGREGATE n = LENGTH(1), s = SUM(p), m = MAX(p), u = UNIQUE(p) RETURN [n, s, m, u]"
    assert people.run(empty) == [[0, None, None, []]]
    assert people.run("FOR p IN [] COLLECT c = p AGGREGATE n = LENGTH(1) RETURN n") == []
    assert people.run("FOR p IN ['x', 1] COLLECT AGGREGATE s = SUM(p) RETURN s") == [None]


def test_collect_hides_the_variables_of_its_loops(people: Engine) -> None:
    assert people.error("FOR p IN people COLLECT c = p.city RETURN p") == 1203
    assert people.error("FOR p IN people LET x = 1 COLLECT c = p.city RETURN x") == 1203
    assert people.run("LET k = 7 FOR p IN people COLLECT c = p.city RETURN k") == [7, 7]
    assert people.run("FOR k IN [1] RETURN (FOR p IN people COLLECT c = p.city RETURN k)") == [[1, 1]]


def test_return_distinct_keeps_first_occurrences(engine: Engine) -> None:
    assert engine.run("FOR x IN [1, 1.0, '1', true, 1, null, null] RETURN DISTINCT x") == [1, "1", True, None]


def test_only_the_taken_branch_of_a_ternary_runs(engine: Engine) -> None:
    assert engine.run("RETURN true ? (RETURN 1) : (RETURN FAIL('no'))") == [[1]]


def test_fail_assert_and_warn(engine: Engine) -> None:
    assert engine.error("RETURN FAIL('x')") == 1569
    assert engine.error("RETURN ASSERT(1 == 2, 'wrong')") == 1593
    assert engine.one("WARN(false, 'careful')") is False
    assert engine.warnings() == [1594]
    assert engine.error("RETURN WARN(false, 'careful')", fail_on_warning=True) == 1594


def test_an_equality_filter_uses_an_index_and_another_scans(people: Engine) -> None:
    people.database.add_index("people", {"type": "persistent", "fields": ["city", "age"]})
    assert people.run("FOR p IN people FILTER p.city == 'Bonn' AND p.age == 20 RETURN p._key") == ["b"]
    assert (people.last.stats.scanned_index, people.last.stats.scanned_full) == (1, 0)  # type: ignore[union-attr]
    people.run("FOR p IN people FILTER p.city == 'Bonn' RETURN p")
    assert people.last.stats.scanned_index == 2  # type: ignore[union-attr]
    people.run("FOR p IN people FILTER p.name == 'Ann' RETURN p")
    assert (people.last.stats.scanned_index, people.last.stats.scanned_full) == (0, 4)  # type: ignore[union-attr]
    assert people.last.stats.filtered == 3  # type: ignore[union-attr]
    people.run("FOR p IN people FILTER p.@field == 'Bonn' RETURN p", {"field": "city"})
    assert people.last.stats.scanned_full == 0  # type: ignore[union-attr]
    people.run("FOR k IN ['a', 'b'] FOR p IN people FILTER p._key == k RETURN p")
    assert (people.last.stats.scanned_index, people.last.stats.scanned_full) == (2, 0)  # type: ignore[union-attr]


def test_indexes_change_the_cost_but_never_the_answer(people: Engine) -> None:
    conditions = [
        "p.age == null", "p.age IN [20, 50]", "p.age > 20", "p.age <= 30", "p.city == 'Bonn' AND p.age >= 30",
        "p.age == 20 OR p.city == 'Aachen'", "20 == p.age", "p.city IN ['Bonn'] AND p.age != 30",
    ]  # fmt: skip
    queries = [f"FOR p IN people FILTER {condition} SORT p._key RETURN p._key" for condition in conditions]
    before = [people.run(query) for query in queries]
    people.database.add_index("people", {"type": "persistent", "fields": ["age"], "sparse": True})
    people.database.add_index("people", {"type": "persistent", "fields": ["city", "age"]})
    assert [people.run(query) for query in queries] == before
    assert before[0] == ["c"]
    assert before[3] == ["a", "b", "c"]


def test_a_forced_hint_that_does_not_fit_is_an_error(people: Engine) -> None:
    people.database.add_index("people", {"type": "persistent", "fields": ["age"], "name": "by_age"})
    query = (
        "FOR p IN people OPTIONS {indexHint: 'by_age', forceIndexHint: true} FILTER p.@attribute == 20 RETURN p._key"
    )
    assert people.run(query.replace("@attribute", "age")) == ["b"]
    assert people.error(query.replace("@attribute", "name")) == 1577


def test_an_array_index_serves_membership(people: Engine) -> None:
    people.collection("tagged", {"_key": "x", "tags": ["red", "blue"]}, {"_key": "y", "tags": []}, {"_key": "z"})
    people.database.add_index("tagged", {"type": "persistent", "fields": ["tags[*]"]})
    assert people.run("FOR t IN tagged FILTER 'red' IN t.tags RETURN t._key") == ["x"]
    assert people.last.stats.scanned_index == 1  # type: ignore[union-attr]


def test_strict_options_are_refused_and_loose_ones_only_warned_about() -> None:
    query = "FOR x IN [1] COLLECT y = x OPTIONS {methd: 'hash'} RETURN y"
    assert Engine().error(query) == 1539
    loose = Engine(strict=False)
    assert loose.run(query) == [1]
    assert loose.warnings() == [1539]
    assert loose.run("FOR x IN [1] COLLECT y = x OPTIONS {method: 'hsh'} RETURN y") == [1]
    assert loose.warnings() == []


def test_a_query_that_runs_too_long_is_killed(engine: Engine) -> None:
    assert engine.error("RETURN SLEEP(5)", max_runtime=0.05) == 1500
    assert engine.error("FOR x IN 1..100000000 FILTER x < 0 RETURN x", max_runtime=0.05) == 1500


def test_a_query_that_holds_too_much_is_stopped(engine: Engine) -> None:
    query = "FOR x IN 1..2000 RETURN {x, text: 'some longer text'}"
    assert engine.error(query, memory_limit=32768) == 32
    assert len(engine.run(query, memory_limit=10_000_000)) == 2000


def test_full_count_is_what_the_last_limit_cut(engine: Engine) -> None:
    assert engine.run("FOR x IN 1..9 FILTER x > 2 LIMIT 1, 2 RETURN x", full_count=True) == [4, 5]
    assert engine.last.stats.full_count == 7  # type: ignore[union-attr]
