"""Server, resources, run."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.transport_security import TransportSecuritySettings

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.ports.view import GraphView
from hades.retrieval.walks.neighbourhood import UnknownNode, node_shown
from hades.retrieval.warm_up import load_kernels
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, Limits
from hades.surfaces.mcp.tools import WRITING_TOOLS, Service, add_tools, admitting, auditing, caller_of, open_service

# What an agent may read without asking a question: the published snapshot, and a node of it.


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


# The server of one mode: it has the tools that the mode covers.


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


# Running the server: over the streams of this process, or on a socket that is open already.


PATH = "/mcp"
SESSIONS = 256
IDLE_SECONDS = 1800.0


def serve_stdio(settings: Settings, door: Door) -> None:
    """Answer on stdin and stdout until the client closes them; everything else of this process goes to stderr."""
    load_kernels()
    service = open_service(settings, door)
    try:
        made = build_server(service)
        made.run("stdio")
    finally:
        service.close()


def serve_http(settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits()) -> None:
    """Answer streamable HTTP on the socket until the process is told to stop."""
    from hades.surfaces.rest.app import server_of

    load_kernels()
    service = open_service(settings, door, limits)
    try:
        app = build_server(service).streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=SESSIONS,
            transport_security=_security(door),
        )
        server_of(app, limits).run(sockets=[listening])
    finally:
        service.close()


def _security(door: Door) -> TransportSecuritySettings:
    """A door without tokens answers to its own names only, so that no page of another site can talk through it."""
    if door.hosts is None:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = sorted(f"[{host}]" if ":" in host else host for host in door.hosts)
    return TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names], allowed_origins=[f"http://{name}:*" for name in names]
    )


# The tools and resources as plain data, for the generated reference; no store is opened, nothing is written.


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
