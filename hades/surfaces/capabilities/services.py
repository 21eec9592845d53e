"""Commands that start a process of this machine (serve, mcp, watch) and manage its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hades.surfaces.capabilities.capability import AccessMode, LocalCommand, Request, Shell

STARTS_A_PROCESS = "starts a process on this machine that runs until it is stopped"
OPENS_THE_SERVICE = "decides who may use the services, so only a user of this machine may call it"
MODES = "ro: read; rw: also judge, remember and roll back; admin: also erase."
Port = Annotated[int, Field(ge=0, le=65535)]


class ServeRequest(Request):
    """Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1, for callers with a token."""

    uds: Annotated[Path | None, Shell(metavar="PATH")] = Field(
        None, description="Listen on a Unix socket, with file mode 0660 or 0600."
    )
    port: Port | None = Field(None, description="Listen on TCP; 0 takes a free port.")
    host: str = Field("127.0.0.1", description="Address for --port; with 0.0.0.0 other machines can connect.")
    mode: AccessMode = Field("ro", description=MODES)
    no_token: bool = Field(False, description="On TCP of this machine only: accept every local user without a token.")
    workers: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Processes that answer; they share one memory-mapped snapshot."
    )

    @model_validator(mode="after")
    def a_socket_has_no_port(self) -> Self:
        """The rights of the socket's file decide who may connect."""
        if self.uds is not None and (self.port is not None or self.no_token):
            raise ValueError("--uds takes neither --port nor --no-token: the rights of its file decide who may connect")
        return self


class McpRequest(Request):
    """Serve the tools of the Model Context Protocol, over stdio or streamable HTTP at /mcp; read-only by default."""

    mode: Literal["ro", "rw", "admin"] = Field(
        "ro", description="ro: only tools that read; rw: also tools that write; admin: also memory_erase."
    )
    port: Port | None = Field(None, description="Streamable HTTP on this port; by default stdin and stdout.")
    host: str = Field("127.0.0.1", description="With --port: the address to listen on.")
    no_token: bool = Field(
        False, description="With --port, on this machine only: accept every local user without a token."
    )


class WatchRequest(Request):
    """Keep a folder up to date: ingest, build and publish now and after each change, until Ctrl-C."""

    path: Path = Field(description="Folder of documents or code.")
    kind: Literal["auto", "documents", "workspace"] = Field(
        "auto", description="documents, workspace, or auto: workspace where there is code."
    )
    quiet_seconds: Annotated[float, Field(ge=0.1, le=600)] = Field(
        1.0, description="Update when nothing has changed for this time."
    )
    once: bool = Field(False, description="Update once and stop.")


class AddTokenRequest(Request):
    """Create a token and show it; it cannot be shown again."""

    name: str = Field(description="Whose token it is; recorded in the audit log.")
    mode: AccessMode = Field("ro", description=MODES)


class ListTokensRequest(Request):
    """List the tokens: name, mode and id. The text of a token is not stored."""


class RevokeTokenRequest(Request):
    """Revoke a token; running services refuse it from the next request on."""

    name: str = Field(description="Name or id of the token.")


_SERVE = "hades.surfaces.cli.serve_views"
SERVICE_COMMANDS = (
    LocalCommand(("serve",), ServeRequest, f"{_SERVE}:run_serve", STARTS_A_PROCESS),
    LocalCommand(("mcp",), McpRequest, f"{_SERVE}:run_mcp", STARTS_A_PROCESS),
    LocalCommand(("watch",), WatchRequest, "hades.surfaces.cli.watch_views:run_watch", STARTS_A_PROCESS, ("path",)),
    LocalCommand(("token", "add"), AddTokenRequest, f"{_SERVE}:add_token", OPENS_THE_SERVICE, ("name",)),
    LocalCommand(("token", "list"), ListTokensRequest, f"{_SERVE}:list_tokens", OPENS_THE_SERVICE),
    LocalCommand(("token", "revoke"), RevokeTokenRequest, f"{_SERVE}:revoke_token", OPENS_THE_SERVICE, ("name",)),
)
