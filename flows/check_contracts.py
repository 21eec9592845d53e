"""Every contract of the store, without a build."""

from __future__ import annotations

from typing import Any

from hades.night.stages import STORE_CONTRACTS
from tasks import policies
from tasks.build import check
from tasks.unit import graph_flow


@graph_flow("check_contracts", policies.BUILD)
def check_contracts() -> dict[str, Any]:
    """Check every rule of every row; nothing is built and nothing is published."""
    return check(STORE_CONTRACTS)
