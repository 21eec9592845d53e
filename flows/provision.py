"""Create the database objects; the one flow that needs the admin credential."""

from __future__ import annotations

from typing import Literal

from hades.errors import StoreDamaged
from hades.ports.store import ProvisionReport
from tasks.build import check_store, provision_store
from tasks.unit import graph_flow


@graph_flow("provision", {})
def provision(
    check: bool = False,
    only: Literal["all", "memory"] | None = None,
) -> ProvisionReport:
    """Create every collection, index and view that is declared and not there; safe to repeat.

    Args:
        check: also read the whole store afterwards and fail when something in it is wrong
        only: memory for a smaller database, all for everything; empty: what the database was
            made for
    """
    report = provision_store(only)
    if check and (problems := check_store()):
        raise StoreDamaged("; ".join(problems))

    return report
