"""Checking frames against a contract: by Arrow each night, by Great Expectations in a full check; its only door."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa

from schemas.contracts.evaluate import UncheckableRule, find_broken_rows, is_about_table, row_count_holds
from schemas.contracts.rule import Contract, Finding, Rule

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
