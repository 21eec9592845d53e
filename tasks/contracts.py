"""Contracts as a task: a broken one stops the flow, names the rows, and leaves what serves alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hades.stages.contracts.check_contracts import check_contracts
from tasks import artifacts, policies
from tasks.context import build_context
from tasks.unit import unit


@unit("check contracts", policies.LOCAL, task_run_name="check {contracts}")
def check(contracts: Sequence[str]) -> dict[str, Any]:
    """Check the contracts whose rows changed since they last held; raises when a rule is broken."""
    return _require(contracts, full=False)


@unit("check every row", policies.HEAVY)
def check_fully(contracts: Sequence[str]) -> dict[str, Any]:
    """Check every rule of every row with Great Expectations; raises when a rule is broken."""
    return _require(contracts, full=True)


def _require(contracts: Sequence[str], *, full: bool) -> dict[str, Any]:
    with build_context("contracts") as context:
        outcome = check_contracts(context, contracts, full=full)
    artifacts.table("contracts", outcome.table, "rules by contract and the rows that broke them")
    for rules in outcome.alerts:
        artifacts.event("hades.contract.broken", "contracts", rules=rules, page=str(outcome.page))
    return outcome.require().as_dict()
