"""Publishing and going back, as tasks."""

from __future__ import annotations

from typing import Any

from hades.stages.release import publish_snapshot as publishing
from hades.stages.release import rollback
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("publish snapshot", policies.LOCAL)
def release(night: Night, keep: int) -> dict[str, Any]:
    """Write the read index, check it, move the pointer, let the registry's champion be what serves."""
    with opened_site("publish") as site:
        released = publishing.release(site, night.as_of, keep).as_dict()
    artifacts.table("snapshot", [released], "what serves from now on")
    return released


@unit("publish what changed", policies.LOCAL)
def release_if(changed: bool, night: Night, keep: int) -> dict[str, Any] | None:
    """Publish if something that serves has changed; None where nothing has."""
    with opened_site("publish") as site:
        return publishing.release(site, night.as_of, keep).as_dict() if changed else None


@unit("roll back", policies.LOCAL)
def roll_back(what: str, to: str | None) -> dict[str, Any]:
    """Let an older graph, or older weights, serve again."""
    with opened_site("rollback") as site:
        return rollback.roll_back(site, what, to).as_dict()
