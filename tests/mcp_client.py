"""The client of the MCP SDK, for one session at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp.client.client import Client

from tests.patience import HANG_SECONDS


def talk_to(server: Any, talk: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """What a client finds in a session with a server: one of this process, a program, or a
    transport.
    """

    async def session() -> Any:
        with anyio.fail_after(HANG_SECONDS):
            async with Client(server, **options) as client:
                return await talk(client)

    return anyio.run(session)


def call_tool(server: Any, tool: str, given: dict[str, Any]) -> Any:
    """The result of one call."""
    return talk_to(server, lambda client: client.call_tool(tool, given))
