"""What an agent may read without asking a question: the published snapshot, and a node of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from hades.errors import HadesError
from hades.ports.view import GraphView
from hades.retrieval.walks.explore import UnknownNode, node_shown
from hades.surfaces.mcp.calls import caller_of
from hades.surfaces.mcp.service import Service


def add_resources(server: MCPServer[Any], service: Service) -> None:
    """Register `hades://snapshot/{version}` and `hades://nodes/{collection}/{key}`."""

    @server.resource(
        "hades://snapshot/{version}",
        title="The published graph",
        description="Sizes, models and id of a snapshot; `current` is the one that serves.",
        mime_type="application/json",
    )
    def snapshot(version: str, context: Context[Any, Any]) -> str:
        with _read(service, context) as view:
            if version not in ("current", view.info.snapshot):
                raise ResourceNotFoundError(f"snapshot {version} does not serve; read hades://snapshot/current")
            return json.dumps(asdict(view.info), default=str)

    @server.resource(
        "hades://nodes/{collection}/{key}",
        title="A node of the graph",
        description="Its facts, degrees and topic, and its text where it has one; ids are as paths show them.",
        mime_type="application/json",
    )
    def node(collection: str, key: str, context: Context[Any, Any]) -> str:
        with _read(service, context) as view:
            return json.dumps(node_shown(view, f"{collection}/{key}"), default=str)


@contextmanager
def _read(service: Service, context: Context[Any, Any]) -> Iterator[GraphView]:
    """The published graph for a caller who may read it; failures in the words of the protocol."""
    try:
        caller_of(service, context)
        with service.answers.lease() as view:
            yield view
    except UnknownNode as error:
        raise ResourceNotFoundError(str(error)) from error
    except HadesError as error:
        raise ResourceError(str(error)) from error
