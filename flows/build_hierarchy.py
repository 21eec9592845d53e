"""Topics alone."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Literal

from hades.night.stage import begin
from tasks.artifacts import pay_or_ask
from tasks.build import check, run_alone
from tasks.unit import build_flow


@build_flow("build_hierarchy")
def build_hierarchy(
    as_of: datetime | None = None,
    mode: Literal["auto", "full", "incremental"] = "auto",
) -> dict[str, Any]:
    """Group entities into topics and super-topics, and check the result; readers see it after
    `publish`.

    Args:
        as_of: the moment the build stands at; empty: today, UTC
        mode: auto: build when the inputs changed; full: always
    """
    report = pay_or_ask(partial(run_alone, "topics"), begin(as_of, mode=mode))
    return {
        "topics": report,
        "contracts": check(["hierarchy"]),
    }
