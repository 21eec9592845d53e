"""Whether the service lives, whether it can answer, and its figures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from hades.ports.clock import utc_now
from hades.snapshot.retention import snapshots
from hades.surfaces.access.metrics import CONTENT_TYPE
from hades.surfaces.rest.problems import Problem
from hades.surfaces.rest.services import Served, Services

reading = APIRouter(tags=["service"])


@reading.get("/health", summary="Whether the process lives")
async def health() -> dict[str, str]:
    """Always the same while the process answers at all."""
    return {"status": "ok"}


@reading.get(
    "/ready", summary="Whether questions can be answered", responses={409: {"model": Problem}, 503: {"model": Problem}}
)
async def ready(services: Served) -> dict[str, Any]:
    """Opens what would answer the next question; an error says why it cannot."""
    return await services.work(_ready, services)


@reading.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(services: Served) -> Response:
    """Requests, turns, reasons, the snapshot and its age."""
    return Response(await services.work(_write_metrics, services), media_type=CONTENT_TYPE)


def _ready(services: Services) -> dict[str, Any]:
    with services.answers.lease() as view:
        info = view.info
    return {"status": "ready", "snapshot": info.snapshot, "degraded": info.degraded_from, "nodes": info.nodes}


def _write_metrics(services: Services) -> bytes:
    serving = next((held for held in snapshots(services.home) if held.serves), None)
    published = None if serving is None or serving.created_at is None else datetime.fromisoformat(serving.created_at)
    services.exposition.serves(serving.snapshot if serving else "", published, utc_now())
    return services.exposition.text()
