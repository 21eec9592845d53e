"""The record of acts: who did what to which state or edge, when and why, and what it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hades.memory.history import rows as records
from hades.memory.history.names import AUDIT, UnknownMemory, audit_key, key_of, legal
from hades.ports.store import RowStore, Term
from schemas.memory import MemoryAudit
from schemas.record import canonical_json


@dataclass
class Act:
    """One act of one person. Its steps are recorded together and, when they belong together, undone together."""

    who: str
    why: str
    at: datetime
    is_one: bool = True  # a bulk load is many acts at one time
    steps: list[MemoryAudit] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The id of the act: that of its first step."""
        return self.steps[0].key if self.steps else ""

    def note(self, action: str, subject: str, detail: Mapping[str, Any] | None = None, *, why: str = "") -> None:
        """Record a step; written by `keep`."""
        told = dict(detail or {})
        step = len(self.steps) if self.is_one else 0
        key = audit_key(self.at, step, self.who, action, subject, canonical_json(told), self.key)
        self.steps.append(
            MemoryAudit(
                key=key, subject=subject, action=action, who=self.who, at=self.at, why=why or self.why, detail=told
            )
        )

    def keep(self, rows: RowStore) -> None:
        """Write the steps, inside the transaction that did them."""
        if self.is_one and len(self.steps) > 1:
            first, *rest = self.steps
            all_steps = {**first.detail, "steps": [step.key for step in rest]}
            self.steps = [first.model_copy(update={"detail": all_steps})]
            self.steps += [step.model_copy(update={"detail": {**step.detail, "act": first.key}}) for step in rest]
        records.put(rows, AUDIT, self.steps)


def acts_on(rows: RowStore, subjects: Sequence[str]) -> list[MemoryAudit]:
    """What was done to these states, edges or topics, oldest first."""
    found = [
        one
        for batch in rows.scan(AUDIT, where=[Term("subject", "in", [key_of(name) for name in subjects])])
        for one in records.read(batch, MemoryAudit)
    ]
    return sorted(found, key=lambda one: one.key)


def act_of(rows: RowStore, audit_id: str) -> list[MemoryAudit]:
    """The steps of an act, in the order they were taken; any of them names it."""
    found = records.fetch(rows, AUDIT, [legal("record of an act", audit_id)], MemoryAudit)
    if not found:
        raise UnknownMemory(f"memory holds no act {audit_id}; `hades memory history TOPIC --json` prints their ids")
    first = found[audit_id]
    if "act" in first.detail:
        first = records.fetch(rows, AUDIT, [first.detail["act"]], MemoryAudit)[first.detail["act"]]
    keys = [str(key) for key in first.detail.get("steps", ())]
    rest = records.fetch(rows, AUDIT, keys, MemoryAudit)
    return [first, *(rest[key] for key in keys)]
