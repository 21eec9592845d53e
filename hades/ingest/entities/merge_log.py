"""The log of names folded into others. Each row can be undone alone: put its (alias, canonical) into `kept_apart`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from hades.ingest.entities.aliases import Alias
from hades.ingest.entities.resolve import SenseResolution
from hades.ingest.entities.tables import fill
from schemas.ids import content_key

Row = tuple[str, str, str]  # alias, canonical, rule


def log_rows(
    folded: Sequence[Alias], resolved: SenseResolution, shown: Sequence[str], written: Mapping[int, Mapping[str, int]]
) -> Iterator[tuple[str, str, str, float]]:
    """Every decision that let one spelling stand for another: names folded, qualifiers dropped, documents consulted."""
    senses = resolved.senses
    for one in folded:
        yield shown[one.alias], senses[resolved.of_name[one.canonical]].name, one.rule, one.score
    for row, spellings in written.items():
        name = senses[resolved.of_name[row]].name
        for text in spellings:
            if text != shown[row]:
                yield text, name, "spelling", 1.0
    for sense in senses:
        if sense.stem != sense.name:
            yield sense.stem, sense.name, "qualifier", 1.0
    for text, meant, rule in resolved.decisions:
        yield text, senses[meant].name, rule, 1.0


def merge_log_table(rows: Iterable[tuple[str, str, str, float]]) -> pa.Table:
    """Rows (alias, canonical, rule, score) as a table, sorted; one said twice keeps its better score."""
    best: dict[Row, float] = {}
    for alias, canonical, rule, score in rows:
        if alias != canonical:
            best[alias, canonical, rule] = max(score, best.get((alias, canonical, rule), 0.0))
    ordered = sorted(best)
    return fill(
        "merge_log",
        len(ordered),
        {
            "_key": pa.array([content_key("merge", *row) for row in ordered], pa.string()),
            "alias": pa.array([row[0] for row in ordered], pa.string()),
            "canonical": pa.array([row[1] for row in ordered], pa.string()),
            "rule": pa.array([row[2] for row in ordered], pa.string()),
            "score": pa.array([best[row] for row in ordered], pa.float64()),
        },
    )
