"""The graphs that were published, and going back to one of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from hades.snapshot.retention import snapshots
from hades.surfaces.rest.services import Served, Services
from hades.surfaces.rest.shapes import RollbackBody
from hades.wiring import open_build_context

reading = APIRouter(tags=["snapshots"])
writing = APIRouter(tags=["snapshots"])


@reading.get("/snapshots", summary="The published graphs")
async def listed(services: Served) -> dict[str, Any]:
    """Which graphs there are and which one serves, newest first."""
    return {"snapshots": [asdict(held) for held in await services.work(snapshots, services.home)]}


@writing.post("/snapshots/rollback", summary="Let an older graph serve")
async def roll_back(body: RollbackBody, services: Served) -> dict[str, Any]:
    """At once for readers; the store then gets the weights that belong to it."""
    return await services.change(_rolled_back, services, body)


def _rolled_back(services: Services, body: RollbackBody) -> dict[str, Any]:
    from hades.stages.release.rollback import roll_back as go_back

    with open_build_context(services.settings) as context:
        return go_back(context, body.what, body.to).as_dict()
