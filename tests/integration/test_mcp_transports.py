"""The server as agents run it: a process behind pipes or a port, and the SDK's own client at the
other end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Tokens
from tests.mcp_client import talk_to
from tests.patience import HANG_SECONDS
from tests.unit.hades.surfaces.mcp_home import QUESTION, READING, WRITING, make_home

ROOT = Path(__file__).resolve().parents[2]
HADES = [
    sys.executable,
    "-m",
    "hades.surfaces.cli.commands",
]  # a new interpreter: what its imports print would be seen
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_home(tmp_path_factory.mktemp("transports"))


def environment(settings: Settings) -> dict[str, str]:
    return {
        **os.environ,
        "HADES_HOME": str(settings.home),
        "HADES_EMBEDDER": "hashing",
        "PYTHONPATH": str(ROOT),
    }


def over_stdio(programs: Path, settings: Settings, mode: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=str(programs / "hades"), args=["mcp", "--mode", mode], env=environment(settings)
    )


@contextmanager
def listening(
    programs: Path, settings: Settings, *arguments: str, **variables: str
) -> Iterator[str]:
    """A server on a port of its own; its address, as the process tells it."""
    command = [programs / "hades", "mcp", "--port", "0", *arguments]
    own = {**environment(settings), **variables}
    process = subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+/mcp", line)
        assert found, line + process.stderr.read()
        yield found.group()
    finally:
        process.terminate()
        process.communicate(timeout=HANG_SECONDS)


def over_http(address: str, token: str | None = None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return streamable_http_client(
        address, http_client=httpx.AsyncClient(headers=headers, timeout=HANG_SECONDS)
    )


def test_over_stdio_an_agent_lists_asks_and_remembers(programs: Path, settings: Settings) -> None:
    told: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def talk(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert sorted(names) == sorted([*READING, *WRITING])
        answer = await client.call_tool(
            "pathrag_retrieve", {"query": QUESTION}, progress_callback=heard
        )
        assert answer.structured_content["count"] > 0
        added = await client.call_tool("memory_add", {"topic": "a", "content": "b"})
        assert added.structured_content["state"]["version"] == 1
        latest = await client.call_tool("memory_latest", {"topic": "a"})
        assert latest.structured_content["state"]["content"] == "b"

    talk_to(over_stdio(programs, settings, "rw"), talk)
    assert any(message.startswith("seeds") for message in told)


def test_stdout_carries_the_protocol_and_nothing_else(settings: Settings) -> None:
    """Every line is one JSON-RPC message, also when the process warns or fails."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "pathrag_retrieve", "arguments": {"query": QUESTION}},
        },
        {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "tools/call",
            "params": {
                "name": "pathrag_retrieve",
                "arguments": {"query": QUESTION, "as_of_version": "g0"},
            },
        },
        {
            "jsonrpc": "2.0",
            "id": 5,
            "method": "tools/call",
            "params": {"name": "memory_add", "arguments": {}},
        },
    ]
    process = subprocess.Popen(
        [*HADES, "mcp"],
        env=environment(settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = {}
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if "id" in message:
            line = json.loads(process.stdout.readline())
            assert line["jsonrpc"] == "2.0"
            answers[line["id"]] = line
    process.stdin.close()
    assert process.stdout.read() == ""
    assert process.wait(HANG_SECONDS) == 0
    assert sorted(answers) == [1, 2, 3, 4, 5]
    assert answers[3]["result"]["structuredContent"]["success"]
    assert answers[5]["result"]["isError"]


def test_without_a_store_the_command_says_what_to_do_on_stderr(
    programs: Path, tmp_path: Path
) -> None:
    env = {
        **os.environ,
        "HADES_HOME": str(tmp_path / "none"),
        "HADES_EMBEDDER": "nonsense",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [programs / "hades", "mcp"],
        env=env,
        input="",
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "HADES_EMBEDDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_over_http_a_token_says_who_comes_and_what_they_may(
    programs: Path, settings: Settings
) -> None:
    tokens = Tokens(settings.home)
    reader, _ = tokens.add("reader", Mode.READ_ONLY, utc_now())
    writer, _ = tokens.add("writer", Mode.READ_WRITE, utc_now())
    refused = {"success": False, "error": "Not authenticated"}

    async def as_nobody(client: Client) -> None:
        with pytest.raises(Exception, match="Not authenticated"):
            await client.list_tools()
        for tool, arguments in (
            ("pathrag_retrieve", {"query": QUESTION}),
            ("memory_latest", {"topic": "a"}),
            ("memory_add", {"topic": "a", "content": "b"}),
            ("graph_entity_update", {"entity_id": "entities/london", "fields": {"summary": "x"}}),
        ):
            result = await client.call_tool(tool, arguments)
            assert (result.is_error, result.structured_content) == (True, refused)
        with pytest.raises(Exception, match="Not authenticated"):
            await client.read_resource("hades://snapshot/current")

    async def as_reader(client: Client) -> None:
        assert (await client.list_tools()).tools
        assert (await client.call_tool("pathrag_retrieve", {"query": QUESTION})).structured_content[
            "success"
        ]
        denied = await client.call_tool("memory_add", {"topic": "http", "content": "b"})
        assert "needs 'rw'" in denied.structured_content["error"]
        assert (await client.read_resource("hades://snapshot/current")).contents

    async def as_writer(client: Client) -> None:
        told: list[float] = []

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)

        question = {"query": "Who wrote the first compiler?"}
        assert (
            await client.call_tool("hipporag_retrieve", question, progress_callback=heard)
        ).structured_content
        assert told == sorted(told) != []
        added = await client.call_tool("memory_add", {"topic": "http", "content": "b"})
        assert added.structured_content["state"]["version"] == 1

    with listening(programs, settings, "--mode", "rw") as address:
        talk_to(over_http(address), as_nobody)
        talk_to(over_http(address, "hades_00000000_" + "x" * 43), as_nobody)
        talk_to(over_http(address, reader), as_reader)
        talk_to(over_http(address, writer), as_writer)
        tokens.revoke("writer")
        talk_to(over_http(address, writer), as_nobody)
    lines = (settings.home / "logs" / "audit_rw.jsonl").read_text() + (
        settings.home / "logs" / "audit_ro.jsonl"
    ).read_text()
    assert reader not in lines
    assert writer not in lines
    assert '"who": "writer"' in lines
    assert '"status": "CallRefused"' in lines


def test_over_http_without_tokens_only_this_machine_by_its_own_name(
    programs: Path, settings: Settings
) -> None:
    async def talk(client: Client) -> list[str]:
        assert (await client.call_tool("memory_latest", {"topic": "a"})).structured_content[
            "success"
        ]
        return [tool.name for tool in (await client.list_tools()).tools]

    with listening(programs, settings, "--no-token") as address:
        assert sorted(talk_to(over_http(address), talk)) == sorted(READING)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accepts = {"Accept": "application/json, text/event-stream"}
        foreign = httpx.post(
            address, json=body, headers={**accepts, "Host": "evil.example"}, timeout=HANG_SECONDS
        )
        assert foreign.status_code == 421
        page = httpx.post(
            address,
            json=body,
            headers={**accepts, "Origin": "https://evil.example"},
            timeout=HANG_SECONDS,
        )
        assert page.status_code == 403
        headers = {**accepts, "Content-Type": "application/json"}
        large = httpx.post(address, content=b"x" * 1_000_000, headers=headers, timeout=HANG_SECONDS)
        assert large.status_code == 413
    done = subprocess.run(
        [programs / "hades", "mcp", "--port", "0", "--host", "0.0.0.0", "--no-token"],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "callers need tokens" in done.stderr


def test_over_http_a_client_above_its_rate_is_refused_and_others_are_answered(
    programs: Path, settings: Settings
) -> None:
    tokens = Tokens(settings.home)
    busy, _ = tokens.add("busy", Mode.READ_ONLY, utc_now())
    calm, _ = tokens.add("calm", Mode.READ_ONLY, utc_now())

    async def call(client: Client) -> dict[str, Any]:
        return dict((await client.call_tool("memory_latest", {"topic": "a"})).structured_content)

    async def call_often(client: Client) -> list[dict[str, Any]]:
        return [await call(client) for _ in range(6)]

    # One permit in a million seconds: what is refused does not depend on the speed of this machine.
    with listening(
        programs, settings, HADES_SERVE_RATE="0.000001", HADES_SERVE_BURST="4"
    ) as address:
        replies = talk_to(over_http(address, busy), call_often)
        assert replies[0]["success"]
        assert re.fullmatch(r"Rate limit exceeded; retry in \d+ s\.", replies[-1]["error"])
        assert talk_to(over_http(address, calm), call)["success"]
