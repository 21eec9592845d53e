"""The server of one mode: it has the tools that the mode covers."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer

from hades.surfaces.mcp.calls import admitting
from hades.surfaces.mcp.notes import auditing
from hades.surfaces.mcp.resources import add_resources
from hades.surfaces.mcp.service import Service
from hades.surfaces.mcp.tools import WRITING_TOOLS, add_tools

INSTRUCTIONS = """A knowledge graph of documents, papers and code that answers with short, cited paths.

Ask pathrag_retrieve how things are connected, hipporag_retrieve for passages, graph_query_paths for bare paths with
citations. The memory_* tools store what is learned about topics, with its history. Every answer names its snapshot.
Cite documents by the ids given. An answer without paths is valid.
"""


def build_server(service: Service) -> MCPServer[Any]:
    """A server over an open service; the caller closes the service."""
    server: MCPServer[Any] = MCPServer(
        "hades",
        title=f"HADES ({service.door.mode.value})",
        instructions=INSTRUCTIONS,
        version=version("hades-graphrag"),
        log_level="WARNING",
        subscriptions=False,
        middleware=[auditing(service.audit, WRITING_TOOLS), admitting(service)],
    )
    add_tools(server, service)
    add_resources(server, service)
    return server
