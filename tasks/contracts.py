"""Contracts as a task: a red one stops the flow, says which rows broke which rule, and leaves what serves alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.events import emit_event

from hades.stages.contracts.check_contracts import STORE_BOUNDARIES, check_boundaries
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.unit import progress_here, unit


@unit("check contracts", policies.LOCAL, task_run_name="check {boundaries}")
def check(boundaries: list[str]) -> dict[str, Any]:
    """Every rule of these boundaries; raises when one is broken."""
    return _checked(boundaries)


@unit("check every contract", policies.LOCAL)
def check_everything() -> dict[str, Any]:
    """Every rule of the store; raises when one is broken."""
    return _checked(STORE_BOUNDARIES)


def _checked(boundaries: Sequence[str]) -> dict[str, Any]:
    with opened_site("contracts") as site:
        outcome = check_boundaries(site, boundaries)
    artifacts.table("contracts", outcome.table, "rules by boundary and the rows that broke them")
    if outcome.is_broken and progress_here() is None:
        resource = {"prefect.resource.id": "hades.contracts", "hades.rules": ",".join(outcome.broken_rules)}
        emit_event("hades.contract.broken", resource=resource, payload={"page": str(outcome.page)})
    return outcome.require().as_dict()
