"""What a stage of the night declares, and the parameters of one night."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, validate_call

from hades.ingest.ingest import Ingest
from hades.night.context import BuildContext, Mode, default_moment
from schemas.record import JsonObject
from schemas.sources import SourceSpec

KEEP_SNAPSHOTS = 7
# Where a build may begin: every stage of `hades/night/stages.py`.
FirstStage = Literal[
    "sources",
    "embeddings",
    "edges",
    "topics",
    "weights",
    "bridges",
    "exam",
    "ranker",
    "released",
]
Report = Mapping[str, Any]
Rows = list[JsonObject]  # of a table that people read


@dataclass(frozen=True)
class Night:
    """The parameters of one build: small and plain, so that tasks in other processes can take it.

    `as_of` is the moment the build stands at. `began` and `ends` are seconds since 1970; `ends` is
    None without a time box. `sources` are the corpora to read, None for all that were ingested
    before. `learns`: rankers are trained. `is_dated`: somebody named the moment; `is_past`: sources
    are read as they were then. `accepted` are the rules that rows break and that a person accepted.
    """

    as_of: datetime
    began: float
    ends: float | None = None
    sources: tuple[SourceSpec, ...] | None = None
    mode: Mode = "auto"
    keep: int = KEEP_SNAPSHOTS
    from_stage: FirstStage = "sources"
    learns: bool = True
    is_dated: bool = False
    is_past: bool = False
    accepted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the build's files and its run are called, to the microsecond; later ones sort
        last.
        """
        return f"nightly-{datetime.fromtimestamp(self.began, UTC):%Y%m%dT%H%M%S%f}"

    def seconds_left(self) -> float | None:
        """What is left of the time box; None without one, 0 when it is over."""
        if self.ends is None:
            return None
        return max(0.0, self.ends - time.time())

    @property
    def is_over(self) -> bool:
        """Whether the time box is spent."""
        return self.seconds_left() == 0.0


@validate_call
def begin(
    as_of: datetime | None = None,
    time_box_minutes: Annotated[float | None, Field(gt=0)] = None,
    *,
    sources: list[SourceSpec] | None = None,
    mode: Mode = "auto",
    keep: Annotated[int, Field(ge=1)] = KEEP_SNAPSHOTS,
    from_stage: FirstStage = "sources",
) -> Night:
    """A night that begins now, at the moment given or at the beginning of today (UTC), as people
    ask for it.
    """
    now = time.time()
    moment = as_of or default_moment(datetime.fromtimestamp(now, UTC))

    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)  # a form of the UI may send a time without a zone

    if time_box_minutes is None:
        ends = None
    else:
        ends = now + 60.0 * time_box_minutes

    corpora = tuple(sources) if sources else None
    return Night(
        moment,
        now,
        ends,
        corpora,
        mode,
        keep,
        from_stage,
        is_dated=as_of is not None,
    )


@dataclass(frozen=True)
class NightStage:
    """One stage of the night.

    `name` is its key in the report and in the forecast. `describe` turns its report into a
    sentence, `rows` names the part of it that is its table in the Prefect UI. `needs` are the
    stages whose rows it works from: it is stale when one of them is. `reads` and `writes` name the
    collections, for lineage. `contracts` are checked after it. `ledger` is its record in the store,
    empty for a stage that keeps none. `figures` are the paths in its report that become metrics,
    beside the seconds it took: a number, or a part with all its numbers; docs/operations.md lists
    them. `made_of` names, for a column that it writes, the columns that it is made of.
    """

    name: str
    title: str
    run: Callable[[BuildContext, Ingest, Night], JsonObject]
    describe: Callable[[Report], str]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    ledger: str = ""
    figures: tuple[str, ...] = ()
    rows: str = ""
    made_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_light: bool = False

    def metrics(self, report: Report) -> dict[str, float]:
        """The figures of the stage and the seconds it took, by their path in its report."""
        figures: dict[str, float] = {}
        for path, number in numbers_of(report).items():
            if any(f"{path}.".startswith(f"{figure}.") for figure in (*self.figures, "took")):
                figures[path] = number

        return figures

    def table(self, report: Report) -> Rows:
        """What the Prefect UI shows of a report: a row for each of its rows, else one of what it
        says in a word.
        """
        part = report.get(self.rows)
        if isinstance(part, Mapping):
            return [_row({"name": name, "count": value}) for name, value in part.items()]
        if part:
            return list(map(_row, part))

        return [
            {name: value for name, value in report.items() if not isinstance(value, Mapping | list)}
        ]


def _row(values: Report) -> JsonObject:
    """A row of a table: of a part that has parts these stand in the row."""
    row: JsonObject = {}
    for name, value in values.items():
        row |= value if isinstance(value, Mapping) else {name: value}

    return row


def leaves_of(values: Report, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values that are no parts, with their dotted paths."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def numbers_of(report: Report) -> dict[str, float]:
    """The numbers of a report by their path in it."""
    numbers: dict[str, float] = {}
    for path, value in leaves_of(report):
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers[path] = float(value)

    return numbers


def describe_figures(report: Report) -> str:
    """The numbers of a report that are not 0, in a line."""
    counts = []
    for name, number in numbers_of(report).items():
        if number:
            counts.append(f"{name} {number:,g}")

    return ", ".join(counts) or "nothing to do"


TEXTS = ("documents", "papers_raw", "files", "funcs", "doc_chunks")
EDGES = (
    "entities",
    "mentions",
    "relations",
    "references",
    "contains",
    "imports",
    "chunk_code_edges",
)
TOPICS = ("clusters", "cluster_edges", "cluster_membership_journal")
