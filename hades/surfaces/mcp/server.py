"""The server of one mode: a tool that the mode does not cover is not there."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer

from hades.surfaces.mcp.graph_tools import add_graph_tools
from hades.surfaces.mcp.memory_tools import add_memory_tools
from hades.surfaces.mcp.notes import auditing
from hades.surfaces.mcp.resources import add_resources
from hades.surfaces.mcp.service import Service

INSTRUCTIONS = """A knowledge graph of documents, papers and code that answers with short, cited paths.

Ask pathrag_retrieve how things are connected, hipporag_retrieve for passages, graph_query_paths for bare paths with
citations. The memory_* tools keep what is learned about topics, with its history. Answers say which snapshot they come
from. Cite documents by the ids given; an answer with no path is an honest answer.
"""


def build_server(service: Service) -> MCPServer[Any]:
    """A server over an open service; whoever opened the service closes it."""
    server: MCPServer[Any] = MCPServer(
        "hades",
        title=f"HADES ({service.door.mode.value})",
        instructions=INSTRUCTIONS,
        version=version("hades-graphrag"),
        log_level="WARNING",
        subscriptions=False,
        middleware=[auditing(service.audit)],
    )
    add_graph_tools(server, service)
    add_memory_tools(server, service)
    add_resources(server, service)
    return server
