"""What a relation turns into when its reason is gone. The table is closed: what is not in it turns into nothing."""

from __future__ import annotations

from types import MappingProxyType

from schemas.memory import MemoryRelation

INVERSIONS = MappingProxyType(
    {
        str(MemoryRelation.REJECTED_BECAUSE): str(MemoryRelation.VIABLE_AFTER_FIX),
        str(MemoryRelation.BLOCKED_BY): str(MemoryRelation.ENABLED_BY),
        str(MemoryRelation.CONTRADICTS): str(MemoryRelation.SUPPORTS),
    }
)
# That a contradiction is gone does not mean that there is support: this one must be said.
STATED_ONLY = frozenset({str(MemoryRelation.CONTRADICTS)})


def inverse_of(relation: str) -> str | None:
    """The relation that takes the place of this one when its reason is gone, or None."""
    return INVERSIONS.get(relation)


def find_inverse(relation: str) -> tuple[str | None, str]:
    """The relation that follows from the change alone, or None, and why."""
    inverse = inverse_of(relation)
    if inverse is None:
        return None, f"{relation} has no inversion; state the new fact to have an edge for it"
    if relation in STATED_ONLY:
        return None, f"that {relation} ended does not imply {inverse}; state the new fact to have an edge for it"
    return inverse, f"{relation} ended, so {inverse}"
