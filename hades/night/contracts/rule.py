"""Rules, the contracts made of them, and their evaluation: by Great Expectations, or by Arrow where
it is missing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import HadesError
from hades.night.columns import flags
from models.arrays import Flags
from schemas.record import JsonObject

Severity = Literal["stop", "warn"]
Arguments = Mapping[str, Any]  # of an expectation, by name


@dataclass(frozen=True)
class Expectation:
    """One expectation of Great Expectations: the name of its class and its arguments."""

    kind: str
    arguments: dict[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads: the arguments whose names begin so."""
        columns: list[str] = []
        for name, value in self.arguments.items():
            if name.startswith("column"):
                columns += [value] if isinstance(value, str) else value

        return tuple(columns)


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
    severity: Severity = "stop"


@dataclass(frozen=True)
class Contract:
    """Rules that must hold after a stage, in the order in which they are reported."""

    name: str
    about: str
    rules: tuple[Rule, ...]


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
    severity: Severity = "stop"


@dataclass(frozen=True)
class ContractResult:
    """What the rules of one contract said, and which engine evaluated them; `rules` and `rows` were
    checked.

    `warnings` are broken rules that stop nothing.
    """

    contract: str
    rules: int
    findings: tuple[Finding, ...]
    rows: int
    seconds: float
    notes: tuple[str, ...] = ()
    engine: str = ""
    warnings: tuple[Finding, ...] = ()
    rule_ids: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Whether no rule is broken."""
        return not self.findings

    def as_dict(self) -> JsonObject:
        """As JSON."""
        return {
            **asdict(self),
            "is_green": self.is_green,
        }


# The rule's name, its sentence, its expectation, then the columns that show why. Without an
# expectation the column that is called as the rule is true in every row.
Row = tuple[Any, ...]


def contract(
    name: str,
    about: str,
    repair: str,
    frames: Mapping[str, Sequence[Row]],
    repairs: Mapping[str, str] = {},
) -> Contract:
    """A contract from rows of rules by frame; `repairs` are of rules that need another one."""
    rules = []
    for frame, rows in frames.items():
        for key, sentence, *details in rows:
            has_expectation = bool(details) and isinstance(details[0], Expectation)
            if has_expectation:
                expectation = details.pop(0)
            else:
                expectation = holds(key)

            next_step = repairs.get(key, repair)
            shown = tuple(details)
            rule = Rule(
                f"{name}.{key}",
                frame,
                sentence,
                expectation,
                shown,
                next_step,
            )
            rules.append(rule)

    return Contract(name, about, tuple(rules))


def holds(column: str) -> Expectation:
    """Every row has true in a column that was computed for the purpose."""
    return one_of(column, [True])


def give(column: str) -> Expectation:
    """No value is missing."""
    return Expectation("ExpectColumnValuesToNotBeNull", {"column": column})


def one_of(column: str, values: Iterable[object]) -> Expectation:
    """Every value is one of these, or of an enumeration; absent ones are not looked at."""
    value_set = []
    for value in values:
        value_set.append(value.value if isinstance(value, Enum) else value)

    return Expectation(
        "ExpectColumnValuesToBeInSet",
        {
            "column": column,
            "value_set": value_set,
        },
    )


def between(
    column: str,
    low: float | None = None,
    high: float | None = None,
) -> Expectation:
    """Every number lies in [low, high]; absent ones are not looked at."""
    return Expectation(
        "ExpectColumnValuesToBeBetween",
        {
            "column": column,
            "min_value": low,
            "max_value": high,
        },
    )


def has_text(column: str) -> Expectation:
    """Every text has something that is no blank."""
    return Expectation(
        "ExpectColumnValuesToMatchRegex",
        {"column": column, "regex": r"\S"},
    )


def unique(*columns: str) -> Expectation:
    """No two rows agree in these columns."""
    if len(columns) == 1:
        return Expectation("ExpectColumnValuesToBeUnique", {"column": columns[0]})
    return Expectation("ExpectCompoundColumnsToBeUnique", {"column_list": list(columns)})


def equal(first: str, right: str) -> Expectation:
    """Two columns agree in every row."""
    return Expectation(
        "ExpectColumnPairValuesToBeEqual",
        {"column_A": first, "column_B": right},
    )


def later(later_column: str, earlier_column: str) -> Expectation:
    """One column is greater than the other wherever both are given."""
    arguments = {
        "column_A": later_column,
        "column_B": earlier_column,
        "ignore_row_if": "either_value_is_missing",
    }
    return Expectation("ExpectColumnPairValuesAToBeGreaterThanB", arguments)


def some_rows() -> Expectation:
    """The frame is not empty."""
    return Expectation(_ROW_COUNT, {"min_value": 1})


Tables = Mapping[str, pa.Table]  # by frame
Suites = Mapping[str, tuple[pa.Table, Sequence[Rule]]]  # frames with their rules
NAMED_ROWS = 20
Engine = Literal["great_expectations", "arrow"]
_ROW_COUNT = "ExpectTableRowCountToBeBetween"

# By rule the positions of the rows that break it; none for a rule of the whole table, of which what
# was observed tells.
BrokenRows = tuple[list[int], object]
Broken = dict[str, BrokenRows]


class UncheckableRule(HadesError, ValueError):
    """A rule that could not be evaluated, which is a mistake in the rule or its frame and never a
    pass.
    """


def default_engine() -> Engine:
    """Great Expectations where it is installed (extra `flows`), else the Arrow evaluation of the
    same rules.
    """
    if find_spec("great_expectations"):
        return "great_expectations"
    return "arrow"


def validate(
    contract: Contract,
    frames: Tables,
    engine: Engine | None = None,
) -> list[Finding]:
    """The broken rules of a contract, in its order. Rules of a frame that is not given are not
    checked.

    A frame is an Arrow table with `_key`; keys of broken rows come in its order, at most
    `NAMED_ROWS`.
    """
    broken = find_broken_rows(contract, frames, engine)

    findings = []
    for rule in contract.rules:
        if rule.id in broken:
            findings.append(_finding(rule, frames[rule.frame], broken[rule.id]))

    return findings


def find_broken_rows(
    contract: Contract,
    frames: Tables,
    engine: Engine | None = None,
) -> Broken:
    """Which rows break which rules; a rule that holds is left out."""
    rules_by_frame: dict[str, list[Rule]] = {name: [] for name in frames}
    for rule in contract.rules:
        if rule.frame in frames:
            _require_columns(rule, frames[rule.frame])
            rules_by_frame[rule.frame].append(rule)

    if (engine or default_engine()) == "arrow":
        broken: Broken = {}
        for rule in chain.from_iterable(rules_by_frame.values()):
            rows = _evaluate(rule, frames[rule.frame])
            if rows is not None:
                broken[rule.id] = rows

        return broken

    suites = {name: (frames[name], rules) for name, rules in rules_by_frame.items()}
    return _by_great_expectations(contract.name, suites)


def _require_columns(rule: Rule, frame: pa.Table) -> None:
    needed = ("_key", *rule.expectation.columns, *rule.shows)
    missing = []
    for column in needed:
        if column not in frame.column_names:
            missing.append(column)

    if missing:
        raise UncheckableRule(
            f"{rule.id}: frame {rule.frame!r} has no column {', '.join(missing)}; compute it first"
        )


def _by_great_expectations(name: str, frames: Suites) -> Broken:
    """One validation a frame, all in one context; the only door to the library."""
    import great_expectations as gx

    broken: Broken = {}

    with _quiet():
        context: Any = gx.get_context(mode="ephemeral")
        context.enable_analytics(False)
        context.variables.progress_bars = {"globally": False}
        source = context.data_sources.add_pandas(name)

        for frame, (table, rules) in frames.items():
            asset = source.add_dataframe_asset(frame)
            definition = gx.ValidationDefinition(
                name=frame,
                data=asset.add_batch_definition_whole_dataframe("all rows"),
                suite=context.suites.add(_suite(frame, rules)),
            )
            validation = context.validation_definitions.add(definition)
            batch = {"dataframe": _columns_read(table, rules).to_pandas()}
            checked = validation.run(batch_parameters=batch, result_format="COMPLETE")

            for result in checked.results:
                rule_id = result.expectation_config.meta["rule"]
                observed = result.result
                if "unexpected_count" not in observed and "observed_value" not in observed:
                    why = _exception_message(result.exception_info)
                    raise UncheckableRule(f"{rule_id} could not be evaluated: {why}")

                if not result.success:
                    rows = map(int, observed.get("unexpected_index_list") or ())
                    broken[rule_id] = list(rows), observed.get("observed_value")

    return broken


def _exception_message(exception_info: JsonObject) -> object:
    """The message of an expectation that raised; some are told by metric, each in a dictionary."""
    by_metric = []
    for value in exception_info.values():
        if isinstance(value, dict):
            by_metric.append(value)

    return (by_metric or [exception_info])[0].get("exception_message")


@dataclass(frozen=True)
class Reference:
    """What a column of booleans says of rows in other collections, so that anybody can compute it
    again from their ids.

    `ends` are columns of ids by the collections they may be of; or `span` lies inside the document
    of `ends`.
    """

    column: str
    ends: Mapping[str, Sequence[str]]
    span: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        if self.span:
            return (*self.ends, self.span)
        return tuple(self.ends)


def write_gx_project(
    folder: Path,
    frames: Suites,
    references: Mapping[str, Sequence[Reference]],
    keys: Tables,
) -> None:
    """A project of Great Expectations over Parquet files of these frames; its checkpoint `hades`
    checks all of them.

    `keys` are the ids of collections, with the length of each document: the project compares the
    `references` of its frames with them.
    """
    import great_expectations as gx
    import pyarrow.parquet as pq

    data_folder = folder / "data"
    config = folder / "gx" / "great_expectations.yml"
    data_folder.mkdir(parents=True)

    with _quiet():
        context: Any = gx.get_context(mode="file", project_root_dir=folder)
        context.variables.analytics_enabled = False
        context.variables.progress_bars = {"globally": False}
        context.variables.save()
        source = context.data_sources.add_pandas_filesystem(
            "hades",
            base_directory=data_folder.resolve(),
        )

        validations = []
        for name, (table, rules) in frames.items():
            ends = chain.from_iterable(reference.columns for reference in references.get(name, ()))
            pq.write_table(
                _columns_read(table, rules, "_key", *ends),
                data_folder / f"{name}.parquet",
            )
            batch = source.add_parquet_asset(name).add_batch_definition_path(
                "all rows",
                path=f"{name}.parquet",
            )
            suite = context.suites.add(_suite(name, rules))
            definition = gx.ValidationDefinition(
                name=name,
                data=batch,
                suite=suite,
            )
            validations.append(context.validation_definitions.add(definition))

        shown = {
            "result_format": "COMPLETE",
            "unexpected_index_column_names": ["_key"],
        }
        context.checkpoints.add(
            gx.Checkpoint(
                name="hades",
                validation_definitions=validations,
                result_format=shown,
            )
        )

    # Relative, so that the folder can be moved; the library itself wants a path that exists from
    # where it is called.
    absolute = config.read_text(encoding="utf-8")
    relative = absolute.replace(str(data_folder.resolve()), data_folder.name)
    config.write_text(relative, encoding="utf-8")
    (folder / "check.py").write_text(_CHECK, encoding="utf-8")

    for name, table in keys.items():
        pq.write_table(table, data_folder / f"keys.{name}.parquet")

    listed = {name: list(map(asdict, references.get(name, ()))) for name in frames}
    (folder / "references.json").write_text(
        json.dumps(listed, indent=1),
        encoding="utf-8",
    )


_CHECK = """\"\"\"Check every contract of this project; needs great_expectations, not HADES.\"\"\"

import json
import os
import sys
from pathlib import Path

import great_expectations as gx
import pandas as pd


def ids_of(collections):
    return pd.concat([pd.read_parquet(f"data/keys.{name}.parquet")["id"] for name in collections])


def refers(frame, reference):
    \"\"\"Which rows lead to rows that are stored; of a span, which lie inside their document.\"\"\"
    holds = pd.Series(True, index=frame.index)
    for column, collections in reference["ends"].items():
        if not reference["span"]:
            holds &= frame[column].isna() | frame[column].isin(ids_of(collections))
            continue
        documents = pd.read_parquet("data/keys.documents.parquet").set_index("id")["length"]
        lengths, spans = frame[column].map(documents), frame[reference["span"]]
        start, end = spans.str[0], spans.str[1]
        holds &= lengths.isna() | ((start >= 0) & (start <= end) & (end <= lengths))
    return holds


os.chdir(Path(__file__).parent)
for name, references in json.loads(Path("references.json").read_text()).items():
    frame = pd.read_parquet(f"data/{name}.parquet")
    for reference in references:
        frame[reference["column"]] = refers(frame, reference)
    if references:
        frame.to_parquet(f"data/{name}.parquet")
context = gx.get_context(mode="file", project_root_dir=".")
result = context.checkpoints.get("hades").run()
stops = False
for suite in result.run_results.values():
    for one in suite.results:
        if not one.success:
            config = one.expectation_config.to_json_dict()
            count = one.result.get("unexpected_count", "")
            print(config["severity"], config["meta"]["rule"], count)
            stops |= config["severity"] == "critical"
print("broken" if stops else "every rule holds")
sys.exit(stops)
"""


def _suite(name: str, rules: Sequence[Rule]) -> Any:
    """The rules as a suite of Great Expectations; each expectation says which rule it is."""
    import great_expectations as gx

    suite = gx.ExpectationSuite(name=name)

    for rule in rules:
        kind = getattr(gx.expectations, rule.expectation.kind, None)
        if rule.severity == "stop":
            severity = "critical"
        else:
            severity = "warning"

        if kind is None:
            raise UncheckableRule(
                f"{rule.id}: Great Expectations has no {rule.expectation.kind}; check its type"
            )

        try:
            expectation = kind(
                **rule.expectation.arguments,
                severity=severity,
                meta={"rule": rule.id},
                notes=rule.sentence,
            )
        except ValueError as error:
            raise UncheckableRule(
                f"{rule.id}: Great Expectations refuses its arguments: {error}"
            ) from error

        suite.add_expectation(expectation)

    return suite


def _columns_read(table: pa.Table, rules: Sequence[Rule], *extra_columns: str) -> pa.Table:
    """The columns that expectations read; moments as plain UTC, which pandas compares without a
    word.
    """
    columns = chain(extra_columns, *(rule.expectation.columns for rule in rules))
    chosen = table.select(list(dict.fromkeys(columns)) or ["_key"])
    schema = chosen.schema

    for place, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            schema = schema.set(place, field.with_type(pa.timestamp(field.type.unit)))

    return chosen.cast(schema)


@contextmanager
def _quiet() -> Iterator[None]:
    """The library logs every step at INFO."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _finding(
    rule: Rule,
    frame: pa.Table,
    broken: BrokenRows,
) -> Finding:
    shown = rule.shows or rule.expectation.columns
    positions, observed_whole = broken
    columns = list(dict.fromkeys(("_key", *shown)))
    keys: list[str] = []
    observed: list[str] = []
    places = pa.array(positions[:NAMED_ROWS], pa.int64())

    for row in frame.select(columns).take(places).to_pylist():
        keys.append(str(row["_key"]))
        observed.append(", ".join(f"{name} {_short(row[name])}" for name in shown))

    return Finding(
        rule=rule.id,
        frame=rule.frame,
        sentence=rule.sentence,
        failed=len(positions) or 1,
        rows=frame.num_rows,
        keys=tuple(keys),
        observed=tuple(observed or [_short(observed_whole)]),
        repair=rule.repair,
        severity=rule.severity,
    )


def _short(value: object) -> str:
    if value is None:
        return "absent"

    if isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = str(value)

    return text if len(text) <= 80 else f"{text[:77]}..."


def _evaluate(rule: Rule, frame: pa.Table) -> BrokenRows | None:
    """The rows that break a rule, or None where it holds, for an installation without Great
    Expectations.

    Absent values count as they do there: those of a single column, NaN among them, are not looked
    at.
    """
    expectation = rule.expectation
    if expectation.kind == _ROW_COUNT:
        if frame.num_rows >= expectation.arguments["min_value"]:
            return None
        return ([], frame.num_rows)

    if expectation.kind not in _KINDS or not _ARGUMENTS.issuperset(expectation.arguments):
        raise UncheckableRule(
            f"{rule.id} needs Great Expectations; run `pip install 'hades-graphrag[flows]'`"
        )

    columns = [frame.column(name).combine_chunks() for name in expectation.columns]
    try:
        rows = np.flatnonzero(_KINDS[expectation.kind](columns, expectation.arguments)).tolist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UncheckableRule(f"{rule.id} could not be evaluated: {error}") from error

    return (rows, None) if rows else None


def _not_in_set(columns: list[pa.Array], arguments: Arguments) -> Flags:
    (column,) = columns
    if pa.types.is_null(column.type):  # a column without any value has nothing outside the set
        return np.zeros(len(column), np.bool_)

    values = pa.array(arguments["value_set"]).cast(column.type)
    return _present(column) & ~flags(pc.is_in(column, value_set=values))


def _outside(columns: list[pa.Array], arguments: Arguments) -> Flags:
    (column,) = columns
    outside = np.zeros(len(column), np.bool_)
    if (low := arguments.get("min_value")) is not None:
        outside |= flags(pc.less(column, low))
    if (high := arguments.get("max_value")) is not None:
        outside |= flags(pc.greater(column, high))

    return outside & _present(column)


def _repeats(columns: list[pa.Array], arguments: Arguments) -> Flags:
    """Rows whose values stand in another row too; rows without any value are not looked at."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        column_codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(
            codes * (len(encoded.dictionary) + 1) + column_codes,
            return_inverse=True,
        )

    again: Flags = np.bincount(codes, minlength=1)[codes] > 1
    has_value: Flags = np.logical_or.reduce([_present(column) for column in columns])
    return again & has_value


_KINDS: Mapping[str, Callable[[list[pa.Array], Arguments], Flags]] = {
    "ExpectColumnValuesToBeInSet": _not_in_set,
    "ExpectColumnValuesToNotBeNull": lambda columns, _: ~_present(columns[0]),
    "ExpectColumnValuesToBeBetween": _outside,
    "ExpectColumnValuesToMatchRegex": lambda columns, arguments: (
        _present(columns[0]) & ~flags(pc.match_substring_regex(columns[0], arguments["regex"]))
    ),
    "ExpectColumnValuesToBeUnique": _repeats,
    "ExpectCompoundColumnsToBeUnique": _repeats,
    "ExpectColumnPairValuesToBeEqual": lambda columns, _: (
        (_present(columns[0]) | _present(columns[1])) & ~flags(pc.equal(*columns))
    ),
    "ExpectColumnPairValuesAToBeGreaterThanB": lambda columns, _: (
        _present(columns[0]) & _present(columns[1]) & ~flags(pc.greater(*columns))
    ),
}
_ARGUMENTS = frozenset(
    """
    column column_A column_B column_list value_set min_value max_value regex ignore_row_if
    """.split()  # noqa: SIM905
)


def _present(column: pa.Array) -> Flags:
    present: Flags = pc.invert(pc.is_null(column, nan_is_null=True)).to_numpy(zero_copy_only=False)
    return present
