"""The store's chores as tasks: reports come back, rows do not."""

from __future__ import annotations

from prefect import task

from hades.ports.store import Mode, ProvisionReport
from tasks import policies
from tasks.context import opened_store


@task(name="provision store", **policies.NETWORK)
def provision_store(only: str | None = None) -> ProvisionReport:
    """Create what the catalogue, or a part of it, declares and is not there."""
    with opened_store(Mode.ADMIN) as store:
        return store.provision(only)


@task(name="check store", **policies.HEAVY)
def check_store() -> list[str]:
    """What is wrong with the store, in sentences; reads everything."""
    with opened_store(Mode.READ_ONLY) as store:
        return store.check()
