"""Change the embedding model: embed everything again, swap, build, publish."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from flows.nightly import nightly
from tasks.build import embed_again
from tasks.memory import embed_memory_again
from tasks.unit import build_flow, run_flow


@build_flow("reembed")
def reembed(keep: Annotated[int, Field(ge=1)] = 7) -> dict[str, Any]:
    """Every vector by the model that HADES_EMBEDDER names; readers see the old ones until all are
    new.

    Args:
        keep: how many of the newest snapshots to keep
    """
    report = embed_again()
    states = embed_memory_again()
    night_report = run_flow(
        nightly,
        mode="full",
        keep=keep,
    )
    return {
        "embedded": report,
        "memory": states,
        **night_report,
    }
