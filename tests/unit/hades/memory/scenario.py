"""Approach X, rejected because of bug Y until a refactoring fixed it: the story that several tests
tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from hades.memory.memory import Memory
from schemas.memory import MemoryEdge, MemoryState
from tests.unit.hades.memory.kept import T1, T2, T3, Clock

X, Y, REFACTORING = "design/approach_x", "bugs/bug_y", "refactoring/2024_q1"


@dataclass(frozen=True)
class Told:
    """What the story wrote."""

    x1: MemoryState
    x2: MemoryState
    rejection: MemoryEdge
    viable: MemoryEdge


def tell(memory: Memory, clock: Clock) -> Told:
    """T1: rejected. T2: fixed and viable. The clock stands at T3 afterwards."""
    clock.at = T1
    x1 = memory.add(
        X, "Looked at approach X and rejected it: it triggers bug Y", who="ana", why="design review"
    )
    memory.add(Y, "Bug Y corrupts data when approach X is used", who="ana")
    rejection = memory.link(
        x1.id,
        Y,
        "rejected_because",
        valid_from=T1,
        description="approach X triggers bug Y",
        who="ana",
    )
    clock.at = T2
    memory.add(REFACTORING, "The data layer was rewritten; bug Y no longer occurs", who="ben")
    memory.promote(
        Y,
        "fixed by the refactoring",
        "Bug Y is fixed: the rewritten data layer prevents the corruption",
    )
    memory.close(rejection.id, at=T2, who="ben", why="bug Y is fixed")
    x2 = memory.promote(X, "bug Y fixed", "Approach X is viable now that bug Y is fixed").state
    viable = memory.link(
        x2.id,
        REFACTORING,
        "viable_after_fix",
        valid_from=T2,
        description="the refactoring fixed bug Y",
        who="ben",
    )
    memory.close(rejection.id, superseded_by=viable.id, who="ben", why="the reason is gone")
    clock.at = T3
    return Told(x1, x2, rejection, viable)
