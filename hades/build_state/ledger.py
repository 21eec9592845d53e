"""The ledger of stages: a stage whose inputs hash to what its record says has nothing to do.

A record is written in the transaction that writes the stage's rows: a stage that was killed has not happened, and the
next build goes on from the last one that has.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa

from hades.ports.store import RowStore
from schemas.columns import to_table
from schemas.record import canonical_json
from schemas.runs import StageRecord

HIERARCHY, WEIGHTS, BRIDGES = "hierarchy", "weights", "bridges"


@dataclass(frozen=True)
class StageCompletion:
    """One stage as it last completed."""

    stage: str
    digest: str
    generation: str = ""
    as_of: datetime | None = None
    report: dict[str, Any] = field(default_factory=dict)


def complete(store: RowStore, stage: str) -> StageCompletion | None:
    """The last completion of a stage, or None when it never completed."""
    rows = store.get("build_stages", [stage]).to_pylist()
    if not rows:
        return None
    row = rows[0]
    return StageCompletion(stage, row["digest"], row["generation"], row["as_of"], orjson.loads(row["report"]))


def record(store: RowStore, done: StageCompletion) -> None:
    """Say that a stage completed; call it inside the stage's transaction, which names `build_stages`."""
    row = StageRecord(
        key=done.stage,
        stage=done.stage,
        digest=done.digest,
        generation=done.generation,
        as_of=done.as_of,
        report=done.report,
    )
    store.upsert("build_stages", to_table(StageRecord, [row]))


def forget(store: RowStore, stage: str) -> None:
    """Let the next build do a stage again."""
    store.delete("build_stages", keys=[stage])


def reopen(store: RowStore) -> None:
    """Let the next build do every stage again, from what each left: for whoever took away rows that stages wrote."""
    keys = [key for batch in store.scan("build_stages", columns=["_key"]) for key in batch.column("_key").to_pylist()]
    if keys:
        store.patch("build_stages", pa.table({"_key": keys, "digest": [""] * len(keys)}))


def digest_of(*parts: object) -> str:
    """One hash over several things."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()
