"""Go back to an older graph or older weights."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from prefect import flow
from pydantic import Field

from tasks.snapshot import roll_back


@flow(name="rollback")
def rollback(
    what: Annotated[Literal["graph", "weights"], Field(description="the whole graph, or its weights alone")] = "graph",
    to: Annotated[str | None, Field(description="snapshot id or weights version; empty: the one before")] = None,
) -> dict[str, Any]:
    """Let an older graph serve again at once, and give the store the weights that belong to it.

    Args:
        what: the whole graph, or its weights alone
        to: snapshot id or weights version; empty: the one before
    """
    return roll_back(what, to)
