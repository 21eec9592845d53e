"""What the nightly builds did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query

from hades.stages.forecast import last_runs
from hades.surfaces.rest.services import Served, Services

reading = APIRouter(tags=["runs"])


@reading.get("/runs", summary="Nightly builds")
async def runs(services: Served, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> dict[str, Any]:
    """The newest builds with the seconds of each stage, and what each stage last completed."""
    return await services.work(_runs, services, limit)


def _runs(services: Services, limit: int) -> dict[str, Any]:
    rows = [row for batch in services.readable.scan("build_stages") for row in batch.to_pylist()]
    stages = [{**row, "report": orjson.loads(row["report"])} for row in rows]
    return {"runs": [asdict(run) for run in last_runs(services.home, limit)], "stages": stages}
