"""The ledger of stages: what a build completed, and from what inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hades.ports.store import RowStore, scan_values
from schemas.builds import StageRecord
from schemas.record import canonical_json, from_rows, to_table

# The ledger of stages: a stage whose inputs hash to what its record says has nothing to do. A
# record is written in the transaction that writes the stage's rows: a stage that was killed has not
# happened, and the next build goes on from the last one that has.

HIERARCHY = "hierarchy"
WEIGHTS = "weights"
BRIDGES = "bridges"


def last_completion(store: RowStore, stage: str) -> StageRecord | None:
    """The last completion of a stage, or None when it never completed."""
    records = from_rows(StageRecord, store.get("build_stages", [stage]).to_pylist())
    return records[0] if records else None


def record(
    store: RowStore,
    stage: str,
    digest: str,
    generation: str = "",
    as_of: datetime | None = None,
    report: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Say that a stage completed; call it inside the stage's transaction, which names
    `build_stages`.
    """
    completion = StageRecord(
        key=stage,
        stage=stage,
        digest=digest,
        generation=generation,
        as_of=as_of,
        report=dict(report),
    )
    store.upsert("build_stages", to_table(StageRecord, [completion]))


def forget(store: RowStore, stage: str) -> None:
    """Let the next build do a stage again."""
    store.delete("build_stages", keys=[stage])


def reopen(store: RowStore) -> None:
    """Let the next build do every stage again, from what each left: for whoever took away rows that
    stages wrote.
    """
    keys = list(scan_values(store, "build_stages", "_key"))
    if keys:
        store.patch(
            "build_stages",
            pa.table(
                {
                    "_key": keys,
                    "digest": [""] * len(keys),
                }
            ),
        )


def digest_of(*parts: object) -> str:
    """One hash over several things."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()
