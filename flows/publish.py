"""Let readers see what the store holds now, if every contract holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from hades.night.contracts.check import rules_accepted
from hades.night.stage import begin
from hades.night.stages import STORE_CONTRACTS
from tasks.build import check_or_ask, run_alone
from tasks.unit import build_flow


@build_flow("publish")
def publish(
    keep: Annotated[int, Field(ge=1)] = 7,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """Check every contract, write a snapshot beside the serving one and move the pointer.

    Args:
        keep: how many of the newest snapshots to keep
        as_of: the moment noted beside the snapshot; empty: today
    """
    contracts = check_or_ask(STORE_CONTRACTS)
    night = replace(
        begin(as_of, keep=keep),
        accepted=rules_accepted(contracts),
    )
    return {
        "contracts": contracts,
        **run_alone("released", night),
    }
