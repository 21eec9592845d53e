"""Create the database objects; the one flow that needs the admin credential."""

from __future__ import annotations

from prefect import flow

from hades.errors import StoreDamaged
from hades.ports.store import ProvisionReport
from tasks.store import check_store, provision_store


@flow(name="provision")
def provision(check: bool = False) -> ProvisionReport:
    """Create every collection, index and view that is declared and not there; safe to repeat.

    Args:
        check: also read the whole store afterwards and fail when something in it is wrong
    """
    report = provision_store()
    if check and (problems := check_store()):
        raise StoreDamaged("; ".join(problems))
    return report
