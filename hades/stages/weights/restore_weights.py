"""Going back to an older night: a registered version's weights written into the store again, byte for byte."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.build_state import ledger
from hades.ports.store import GraphStore
from hades.ports.tracking import Tracker
from hades.stages.weights import weights_file as artifact
from hades.stages.weights.edge_columns import floats, read_mentions, read_relations
from hades.stages.weights.weigh_edges import COLLECTIONS, generation_of, in_batches
from hades.stages.weights.weight_versions import WEIGHTS_MODEL
from hades.stages.weights.weights_file import COLUMNS
from schemas.columns import to_table
from schemas.telemetry import WeightConfig

_READ = {"relations": read_relations, "mentions": read_mentions}


@dataclass(frozen=True)
class WeightRestoreReport:
    """What going back did, over relations and mentions.

    `rows`: edges that hold the version's weight now; `changed`: those of them that held another; `missing`: edges of
    the version that are no longer stored; `newer`: stored edges the version does not know, which keep their weight.
    """

    version: str
    as_of: str
    generation: str
    rows: int
    changed: int
    missing: int
    newer: int

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return asdict(self)


def restore_weights(store: GraphStore, tracker: Tracker, version: str) -> WeightRestoreReport:
    """Put the weights, components, costs and `weight_config` of a version back, in one transaction.

    The ledger says so, and no digest equals what it says: the next build weighs again.
    """
    contents = artifact.read(tracker.fetch(WEIGHTS_MODEL, version))
    counts: Counter[str] = Counter(rows=0, changed=0, missing=0, newer=0)
    changes, after = {}, []
    for name, read in _READ.items():
        stored, old = read(store), contents.rows[name]
        place = pc.index_in(stored.column("_key"), value_set=old.column("_key").combine_chunks())
        known = pc.is_valid(place)
        ours = stored.select(list(COLUMNS[name])).filter(known).combine_chunks()
        wanted = old.take(place.drop_null())
        changes[name] = wanted.filter(_differ(ours, wanted))
        after.append((stored.column("_key"), _weights_after(stored, known, wanted)))
        counts["rows"] += wanted.num_rows
        counts["changed"] += changes[name].num_rows
        counts["missing"] += old.num_rows - wanted.num_rows
        counts["newer"] += stored.num_rows - wanted.num_rows
    generation = generation_of(*after)
    as_of = str(contents.report["as_of"])
    with store.bulk(COLLECTIONS) as inside:
        for name, table in changes.items():
            inside.patch(name, in_batches(table))
        inside.upsert("weight_config", to_table(WeightConfig, contents.config))
        done = ledger.StageCompletion(
            ledger.WEIGHTS,
            f"restored from {WEIGHTS_MODEL} version {version}",
            generation,
            datetime.fromisoformat(as_of),
            dict(contents.report),
        )
        ledger.record(inside, done)
    return WeightRestoreReport(version, as_of, generation, **counts)


def _differ(ours: pa.Table, wanted: pa.Table) -> pa.Array:
    """Which rows are not what they should be, in any column."""
    different = np.zeros(wanted.num_rows, dtype=np.bool_)
    for left, right in zip(_numbers(ours), _numbers(wanted), strict=True):
        different |= ~((left == right) | (np.isnan(left) & np.isnan(right)))
    return pa.array(different)


def _numbers(table: pa.Table) -> list[NDArray[np.float64]]:
    flat = table.drop_columns(["_key"]).flatten()
    return [floats(column) for column in flat.columns]


def _weights_after(stored: pa.Table, known: pa.ChunkedArray, wanted: pa.Table) -> NDArray[np.float64]:
    weights = floats(stored.column("weight")).copy()
    weights[known.to_numpy()] = floats(wanted.column("weight"))
    return weights
