"""Rule, Contract, Finding; evaluation by Arrow or Great Expectations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Rules, contracts made of rules, and findings: declarations that are read without loading Great Expectations.


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


# Evaluating rules over Arrow columns: what Great Expectations would say of each rule, without loading it. The
# expectation kinds that `rule.py` can build are covered one by one; a kind that is not raises. Absent values count
# as Great Expectations counts them: values of one column that are absent are not looked at, NaN among them.


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


# Checking frames against a contract: by Arrow each night, by Great Expectations in a full check; its only door.


NAMED_ROWS = 20
_LIBRARY = "great_expectations"
Engine = Literal["arrow", "great_expectations"]


def validate(contract: Contract, frames: Mapping[str, pa.Table], *, engine: Engine = "arrow") -> list[Finding]:
    """The broken rules of a contract, in its order. Rules of a frame that is not given are not checked.

    A frame is an Arrow table with `_key`; keys of broken rows come in its order, at most `NAMED_ROWS`. The engine
    `arrow` evaluates the same rules over whole columns in milliseconds; `great_expectations` loads that library, which
    takes seconds, and hands it the frames.
    """
    checked = [name for name in contract.frames if name in frames]
    for name in checked:
        _require_columns(name, frames[name], [rule for rule in contract.rules if rule.frame == name])
    if not checked:
        return []
    broken = _by_arrow(contract, frames) if engine == "arrow" else _by_library(contract, frames, checked)
    return [broken[rule.id] for rule in contract.rules if rule.id in broken]


def _by_arrow(contract: Contract, frames: Mapping[str, pa.Table]) -> dict[str, Finding]:
    broken: dict[str, Finding] = {}
    for rule in contract.rules:
        frame = frames.get(rule.frame)
        if frame is None:
            continue
        if is_about_table(rule.expectation):
            if not row_count_holds(rule.expectation, frame):
                broken[rule.id] = _finding_of_table(rule, frame, frame.num_rows)
            continue
        try:
            rows = find_broken_rows(rule.expectation, frame)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UncheckableRule(f"{rule.id} could not be evaluated: {error}") from error
        if len(rows):
            broken[rule.id] = _finding(rule, frame, len(rows), rows[:NAMED_ROWS].tolist())
    return broken


def _by_library(contract: Contract, frames: Mapping[str, pa.Table], checked: Sequence[str]) -> dict[str, Finding]:
    import great_expectations as gx  # five seconds: only for a full check

    broken: dict[str, Finding] = {}
    with _quiet():
        context: Any = gx.get_context(mode="ephemeral")
        context.enable_analytics(False)
        context.variables.progress_bars = {"globally": False}
        source = context.data_sources.add_pandas(contract.name)
        for name in checked:
            rules = [rule for rule in contract.rules if rule.frame == name]
            batch = _batch(source, name, frames[name], rules)
            for rule, result in zip(rules, _results(gx, batch, rules), strict=True):
                if not result.success:
                    broken[rule.id] = _finding_of_result(rule, frames[name], result)
    return broken


def _require_columns(name: str, frame: pa.Table, rules: Sequence[Rule]) -> None:
    for rule in rules:
        missing = [column for column in ("_key", *rule.columns) if column not in frame.column_names]
        if missing:
            raise UncheckableRule(f"{rule.id}: frame {name!r} has no column {', '.join(missing)}; compute it first")


def _batch(source: Any, name: str, frame: pa.Table, rules: Sequence[Rule]) -> Any:
    """The columns that expectations read, as pandas: the library hashes all it is given, so it is given no more."""
    read = dict.fromkeys(column for rule in rules for column in rule.expectation.columns)
    chosen = frame.select(list(read) or ["_key"])
    pandas = chosen.cast(pa.schema([_without_zone(field) for field in chosen.schema])).to_pandas()
    whole = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all rows")
    return whole.get_batch({"dataframe": pandas})


def _without_zone(field: pa.Field) -> pa.Field:
    """Moments as plain UTC, which pandas compares without a word."""
    return field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field


def _results(gx: Any, batch: Any, rules: Sequence[Rule]) -> list[Any]:
    """One result a rule, in their order."""
    expectations = [
        getattr(gx.expectations, rule.expectation.kind)(**rule.expectation.arguments, meta={"rule": rule.id})
        for rule in rules
    ]
    contract = gx.ExpectationSuite(name="rules", expectations=expectations)
    told = batch.validate(contract, result_format={"result_format": "SUMMARY", "partial_unexpected_count": NAMED_ROWS})
    by_rule = {result.expectation_config.meta["rule"]: result for result in told.results}
    for rule in rules:
        if "unexpected_count" not in by_rule[rule.id].result and "observed_value" not in by_rule[rule.id].result:
            raise UncheckableRule(f"{rule.id} could not be evaluated: {_problem(by_rule[rule.id].exception_info)}")
    return [by_rule[rule.id] for rule in rules]


def _finding_of_result(rule: Rule, frame: pa.Table, result: Any) -> Finding:
    if "unexpected_count" not in result.result:  # an expectation of the table as a whole
        return _finding_of_table(rule, frame, result.result["observed_value"])
    positions = result.result["partial_unexpected_index_list"][:NAMED_ROWS]
    return _finding(rule, frame, int(result.result["unexpected_count"]), positions)


def _finding_of_table(rule: Rule, frame: pa.Table, observed: object) -> Finding:
    return Finding(rule.id, rule.frame, rule.sentence, 1, frame.num_rows, (), (str(observed),), rule.repair)


def _finding(rule: Rule, frame: pa.Table, failed: int, positions: Sequence[int]) -> Finding:
    shown = rule.shows or rule.expectation.columns
    rows = frame.select(["_key", *(name for name in shown if name != "_key")]).take(pa.array(positions, pa.int64()))
    listed = rows.to_pylist()
    return Finding(
        rule=rule.id,
        frame=rule.frame,
        sentence=rule.sentence,
        failed=failed,
        rows=frame.num_rows,
        keys=tuple(str(row["_key"]) for row in listed),
        observed=tuple(", ".join(f"{name} {_short(row[name])}" for name in shown) for row in listed),
        repair=rule.repair,
    )


def _short(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else "absent" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _problem(told: Mapping[str, Any]) -> str:
    messages = [one["exception_message"] for one in told.values() if isinstance(one, dict)]
    return str(messages[0]) if messages else str(told.get("exception_message"))


@contextmanager
def _quiet() -> Iterator[None]:
    """The library tells its own story at INFO; the findings are ours to tell."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == _LIBRARY]
    loggers = [logging.getLogger(name) for name in (_LIBRARY, *names)]  # some of its modules set a level of their own
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
