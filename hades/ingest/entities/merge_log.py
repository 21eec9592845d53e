"""The log of names folded into others. Each row can be undone alone: put its (alias, canonical) into `kept_apart`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.aliases import Alias
from hades.ingest.entities.names import Names
from hades.ingest.entities.resolve import SenseResolution
from hades.ingest.entities.tables import fill
from hades.ingest.increment.former_derivation import OWNER
from schemas.ids import content_key

LogRow = tuple[int, str, str, str, float]  # a name that it hangs on (identity), alias, canonical, rule, score
_SAID = ("alias", "canonical", "rule")


def log_rows(
    names: Names,
    owners: Sequence[int],
    folded: Sequence[Alias],
    resolved: SenseResolution,
    shown: Sequence[str],
    written: Mapping[int, Mapping[str, int]],
) -> Iterator[LogRow]:
    """Every decision that let one spelling stand for another: names folded, qualifiers dropped, documents consulted.

    `owners` are the identities of the names that the senses hang on.
    """
    senses, identity = resolved.senses, names.identity.tolist()
    for one in folded:
        yield identity[one.alias], shown[one.alias], senses[resolved.of_name[one.canonical]].name, one.rule, one.score
    for row, spellings in written.items():
        name = senses[resolved.of_name[row]].name
        for text in spellings:
            if text != shown[row]:
                yield identity[row], text, name, "spelling", 1.0
    for number, sense in enumerate(senses):
        if sense.stem != sense.name:
            yield owners[number], sense.stem, sense.name, "qualifier", 1.0
    for text, meant, rule in resolved.decisions:
        yield owners[meant], text, senses[meant].name, rule, 1.0


def log_table(rows: Iterable[LogRow]) -> pa.Table:
    """The rows with their keys; one that several names lead to stands there several times."""
    listed = [row for row in rows if row[1] != row[2]]
    return pa.table(
        {
            OWNER: pa.array([row[0] for row in listed], pa.uint64()),
            "_key": pa.array([content_key("merge", *row[1:4]) for row in listed], pa.string()),
            "alias": pa.array([row[1] for row in listed], pa.string()),
            "canonical": pa.array([row[2] for row in listed], pa.string()),
            "rule": pa.array([row[3] for row in listed], pa.string()),
            "score": pa.array([row[4] for row in listed], pa.float64()),
        }
    )


def merge_log_table(logged: pa.Table) -> pa.Table:
    """What was logged as a table of the catalogue, sorted; what is said twice keeps its better score."""
    order = [*((name, "ascending") for name in _SAID), ("score", "descending")]
    rows = logged.take(pc.sort_indices(logged, sort_keys=order)).combine_chunks()
    keys = rows.column("_key").combine_chunks()
    fresh = np.ones(len(keys), dtype=np.bool_)
    if len(keys) > 1:
        fresh[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
    rows = rows.filter(pa.array(fresh))
    columns = {name: rows.column(name).combine_chunks() for name in ("_key", *_SAID, "score")}
    return fill("merge_log", rows.num_rows, columns)
