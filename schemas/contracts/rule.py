"""Rules, contracts made of rules, and findings: declarations that are read without loading Great Expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Expectation:
    """One expectation of Great Expectations: the name of its class, the columns it reads, its other arguments."""

    kind: str
    columns: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """One thing that must hold of every row of a frame.

    `shows` names columns that tell why a row broke it; `repair` says what a person does next.
    """

    id: str
    frame: str
    sentence: str
    expectation: Expectation
    shows: tuple[str, ...] = ()
    repair: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the frame must have for this rule."""
        return tuple(dict.fromkeys((*self.expectation.columns, *self.shows)))


@dataclass(frozen=True)
class Contract:
    """Rules that must hold after a stage, in the order in which they are reported."""

    name: str
    about: str
    rules: tuple[Rule, ...]

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames its rules read, in order."""
        return tuple(dict.fromkeys(rule.frame for rule in self.rules))


@dataclass(frozen=True)
class Finding:
    """A broken rule: how many rows of how many, the first of them by key, and what stood there."""

    rule: str
    frame: str
    sentence: str
    failed: int
    rows: int
    keys: tuple[str, ...]
    observed: tuple[str, ...]
    repair: str = ""


def holds(column: str) -> Expectation:
    """Every row has true in a column that was computed for the purpose."""
    return Expectation("ExpectColumnValuesToBeInSet", (column,), {"column": column, "value_set": [True]})


def give(column: str) -> Expectation:
    """No value is missing."""
    return Expectation("ExpectColumnValuesToNotBeNull", (column,), {"column": column})


def one_of(column: str, values: Sequence[object]) -> Expectation:
    """Every value is one of these; absent ones are not looked at."""
    return Expectation("ExpectColumnValuesToBeInSet", (column,), {"column": column, "value_set": list(values)})


def between(column: str, low: float | None = None, high: float | None = None) -> Expectation:
    """Every number lies in [low, high]; absent ones are not looked at."""
    return Expectation(
        "ExpectColumnValuesToBeBetween", (column,), {"column": column, "min_value": low, "max_value": high}
    )


def matches(column: str, pattern: str) -> Expectation:
    """Every text matches the regular expression."""
    return Expectation("ExpectColumnValuesToMatchRegex", (column,), {"column": column, "regex": pattern})


def unique(*columns: str) -> Expectation:
    """No two rows agree in these columns."""
    if len(columns) == 1:
        return Expectation("ExpectColumnValuesToBeUnique", columns, {"column": columns[0]})
    return Expectation("ExpectCompoundColumnsToBeUnique", columns, {"column_list": list(columns)})


def equal(left: str, right: str) -> Expectation:
    """Two columns agree in every row."""
    return Expectation("ExpectColumnPairValuesToBeEqual", (left, right), {"column_A": left, "column_B": right})


def later(after: str, before: str) -> Expectation:
    """One column is greater than the other wherever both are given."""
    arguments = {"column_A": after, "column_B": before, "ignore_row_if": "either_value_is_missing"}
    return Expectation("ExpectColumnPairValuesAToBeGreaterThanB", (after, before), arguments)


def some_rows() -> Expectation:
    """The frame is not empty."""
    return Expectation("ExpectTableRowCountToBeBetween", (), {"min_value": 1})
