"""The tools and resources as plain data, for the generated reference; no store is opened, nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from hades.ports.store import Mode
from hades.settings import load_settings
from hades.surfaces.access.callers import Door
from hades.surfaces.mcp.server import build_server
from hades.surfaces.mcp.service import open_service


def describe(mode: Mode) -> dict[str, Any]:
    """What a server of this mode offers: its tools as clients list them, and its resources."""
    settings = load_settings({"HADES_HOME": "nowhere", "HADES_EMBEDDER": "hashing"}, Path("nowhere"))
    service = open_service(settings, Door(mode))
    try:
        server = build_server(service)
        tools = anyio.run(server.list_tools)
        resources = anyio.run(server.list_resource_templates)
    finally:
        service.close()
    return {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        "resources": [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in resources],
    }
