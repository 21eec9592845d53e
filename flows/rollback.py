"""Go back to an older graph, older weights or an older ranker."""

from __future__ import annotations

from typing import Any, Literal

from tasks.build import approve_rollback, roll_back
from tasks.unit import build_flow


@build_flow("rollback")
def rollback(
    what: Literal["graph", "weights", "ranker"] = "graph",
    to: str | None = None,
) -> dict[str, Any]:
    """Let an older graph serve again at once, and give the store the weights that belong to it.

    Args:
        what: the whole graph, or its weights or its ranker alone
        to: snapshot id, or version; empty: the one before
    """
    approve_rollback(what, to)
    return roll_back(what, to)
