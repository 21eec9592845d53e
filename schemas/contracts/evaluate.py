"""Evaluating rules over Arrow columns: what Great Expectations would say of each rule, without loading it.

The expectation kinds that `rule.py` can build are covered one by one; a kind that is not raises. Absent values count as
Great Expectations counts them: values of one column that are absent are not looked at, NaN among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.contracts.rule import Expectation

Flags = NDArray[np.bool_]


class UncheckableRule(ValueError):
    """A rule that could not be evaluated, which is a mistake in the rule or its frame and never a pass."""


def find_broken_rows(expectation: Expectation, frame: pa.Table) -> NDArray[np.int64]:
    """Positions of the rows of a frame that break an expectation about rows."""
    evaluate = _ROW_KINDS.get(expectation.kind)
    if evaluate is None:
        raise UncheckableRule(f"{expectation.kind} has no evaluation here; add one to schemas/contracts/evaluate.py")
    return np.flatnonzero(evaluate(frame, expectation.arguments))


def is_about_table(expectation: Expectation) -> bool:
    """Whether the expectation is about the number of rows and not about each row."""
    return expectation.kind == "ExpectTableRowCountToBeBetween"


def row_count_holds(expectation: Expectation, frame: pa.Table) -> bool:
    """Whether the frame has at least as many rows as expected."""
    return bool(frame.num_rows >= expectation.arguments["min_value"])


def _not_in_set(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    column = _column(frame, arguments["column"])
    if pa.types.is_null(column.type):  # a column without any value has nothing outside the set
        return np.zeros(len(column), np.bool_)
    values = pa.array(arguments["value_set"]).cast(column.type)
    return _present(column) & ~_flags(pc.is_in(column, value_set=values))


def _absent(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    return ~_present(_column(frame, arguments["column"]))


def _outside(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    column = _column(frame, arguments["column"])
    outside = np.zeros(len(column), np.bool_)
    if arguments["min_value"] is not None:
        outside |= _flags(pc.less(column, arguments["min_value"]))
    if arguments["max_value"] is not None:
        outside |= _flags(pc.greater(column, arguments["max_value"]))
    return outside & _present(column)


def _no_match(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    """The pattern may match anywhere in the text."""
    column = _column(frame, arguments["column"])
    return _present(column) & ~_flags(pc.match_substring_regex(column, arguments["regex"]))


def _repeat(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    column = _column(frame, arguments["column"])
    return _present(column) & occurs_again([column])


def _repeat_together(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    columns = [_column(frame, name) for name in arguments["column_list"]]
    given: Flags = np.logical_or.reduce([_present(column) for column in columns])
    return given & occurs_again(columns)


def _unequal(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    left, right = _column(frame, arguments["column_A"]), _column(frame, arguments["column_B"])
    looked_at = _present(left) | _present(right)
    return looked_at & ~_flags(pc.equal(left, right))


def _not_greater(frame: pa.Table, arguments: Mapping[str, Any]) -> Flags:
    left, right = _column(frame, arguments["column_A"]), _column(frame, arguments["column_B"])
    return _present(left) & _present(right) & ~_flags(pc.greater(left, right))


_ROW_KINDS: dict[str, Callable[[pa.Table, Mapping[str, Any]], Flags]] = {
    "ExpectColumnValuesToBeInSet": _not_in_set,
    "ExpectColumnValuesToNotBeNull": _absent,
    "ExpectColumnValuesToBeBetween": _outside,
    "ExpectColumnValuesToMatchRegex": _no_match,
    "ExpectColumnValuesToBeUnique": _repeat,
    "ExpectCompoundColumnsToBeUnique": _repeat_together,
    "ExpectColumnPairValuesToBeEqual": _unequal,
    "ExpectColumnPairValuesAToBeGreaterThanB": _not_greater,
}


def _column(frame: pa.Table, name: str) -> pa.Array:
    column = frame.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _present(column: pa.Array) -> Flags:
    present: Flags = pc.invert(pc.is_null(column, nan_is_null=True)).to_numpy(zero_copy_only=False)
    return present


def _flags(values: pa.Array) -> Flags:
    found: Flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return found


def occurs_again(columns: list[pa.Array]) -> Flags:
    """Rows whose values stand in another row too."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
    return np.bincount(codes, minlength=1)[codes] > 1 if len(codes) else np.zeros(0, np.bool_)
