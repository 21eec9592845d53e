"""A contract over frames: what holds says nothing, what is broken says how often, where and what
stood there.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hades.night.contracts import rule as rules
from hades.night.contracts.check import CONTRACT_NAMES, RULES, contract_named
from hades.night.contracts.rule import (
    NAMED_ROWS,
    Contract,
    Expectation,
    Finding,
    Rule,
    UncheckableRule,
    validate,
)

EARLY, LATE = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


def broken(expectation: Expectation, *shows: str, **columns: object) -> list[Finding]:
    """The findings of one rule over one frame, about which both engines agree."""
    rows = len(next(iter(columns.values())))  # type: ignore[call-overload]
    frame = pa.table({"_key": [f"k{row}" for row in range(rows)], **columns})
    contract = Contract("toy", "", (Rule("toy.rule", "rows", "it holds", expectation, shows),))
    found = validate(contract, {"rows": frame})
    assert found == validate(contract, {"rows": frame}, engine="great_expectations")
    return found


@pytest.mark.parametrize(
    ("expectation", "good", "bad"),
    [
        (rules.holds("x"), [True, True], [True, False]),
        (rules.give("x"), ["a", "b"], ["a", None]),
        (rules.one_of("x", ["a", "b"]), ["a", "b"], ["a", "c"]),
        (rules.between("x", 0, 1), [0.0, 1.0], [0.5, 1.1]),
        (rules.between("x", 1), [1, 2], [1, 0]),
        (rules.has_text("x"), ["a", " b"], ["a", " "]),
        (rules.unique("x"), ["a", "b", None, None], None),
    ],
)
def test_each_kind_of_rule_passes_the_good_and_names_the_bad(
    expectation: Expectation, good: list[object], bad: list[object] | None
) -> None:
    assert broken(expectation, x=good) == []
    if bad is not None:
        found = broken(expectation, x=bad)
        assert [(one.rule, one.failed, one.rows, one.keys) for one in found] == [
            ("toy.rule", 1, 2, ("k1",))
        ]


def test_rules_over_two_columns_compare_row_by_row() -> None:
    assert broken(rules.equal("x", "y"), x=[1, 2], y=[1, 2]) == []
    assert broken(rules.equal("x", "y"), x=[1, 2], y=[1, 3])[0].keys == ("k1",)
    assert broken(rules.later("x", "y"), x=[LATE, None], y=[EARLY, EARLY]) == []
    assert broken(rules.later("x", "y"), x=[EARLY, None], y=[LATE, EARLY])[0].keys == ("k0",)
    assert broken(rules.unique("x", "y"), x=["a", "a"], y=[1, 2]) == []
    assert broken(rules.unique("x", "y"), x=["a", "a", "b"], y=[1, 1, 1])[0].keys == ("k0", "k1")


def test_an_empty_frame_breaks_only_the_rule_that_wants_rows() -> None:
    nothing = pa.array([], pa.string())
    assert broken(rules.give("x"), x=nothing) == []
    assert [(one.failed, one.observed) for one in broken(rules.some_rows(), x=nothing)] == [
        (1, ("0",))
    ]


def test_a_finding_counts_all_rows_names_the_first_and_shows_what_stood_there() -> None:
    found = broken(rules.holds("ok"), "seen", ok=[False] * 50, seen=[row / 2 for row in range(50)])[
        0
    ]
    assert (found.failed, len(found.keys), found.keys[1], found.observed[1]) == (
        50,
        NAMED_ROWS,
        "k1",
        "seen 0.5",
    )


def test_rules_of_a_frame_that_is_not_there_are_not_checked() -> None:
    assert validate(contract_named("hierarchy"), {}) == []


def test_a_rule_that_cannot_be_evaluated_is_an_error_and_never_green() -> None:
    with pytest.raises(UncheckableRule, match=r"toy\.rule: frame 'rows' has no column y"):
        broken(rules.holds("y"), x=[True])
    with pytest.raises(UncheckableRule, match=r"toy\.rule could not be evaluated"):
        broken(rules.between("x", 0, 1), x=["a", "b"])


def test_rule_ids_are_distinct_and_begin_with_their_boundary() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    for contract in CONTRACT_NAMES:
        assert all(rule.id.startswith(f"{contract}.") for rule in contract_named(contract).rules)
        assert len(contract_named(contract).rules) >= 7


def test_an_unknown_boundary_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match="there is no contract 'edge'; there are nodes, chunks"):
        contract_named("edge")
