"""Publishing and rolling back as tasks."""

from __future__ import annotations

from typing import Any

from hades.stages.night import Night
from hades.stages.release import publish_snapshot as publishing
from hades.stages.release import rollback
from tasks import policies
from tasks.context import build_context
from tasks.unit import unit


@unit("publish what changed", policies.LOCAL)
def release_if(changed: bool, night: Night) -> dict[str, Any] | None:
    """Publish if something that serves has changed; None where nothing has."""
    with build_context("publish") as context:
        return publishing.release_if(changed, context, night.as_of, night.keep)


@unit("roll back", policies.LOCAL)
def roll_back(what: str, to: str | None) -> dict[str, Any]:
    """Let an older graph, or older weights, serve again."""
    with build_context("rollback") as context:
        return rollback.roll_back(context, what, to).as_dict()
