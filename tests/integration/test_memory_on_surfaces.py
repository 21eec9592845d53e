"""Memory on every surface: what holds now or at a mask, certificates of erasure, ratings, and
tenants, all the same.

Histories are random; a plain oracle says which version holds. One home, no snapshot: memory alone
answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door
from hades.surfaces.cli.commands import whole_app
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_memory
from schemas.memory import MemoryState
from tests.homes import settings_of
from tests.integration.rest_site import serving
from tests.mcp_client import call_tool

DAY = timedelta(days=1)
TOPICS = 3


class Surfaces:
    """One home asked by command, over HTTP and by tool."""

    def __init__(self, settings: Settings, rest: Any, server: Any) -> None:
        self.settings, self.rest, self._server = settings, rest, server

    def command(self, *words: str) -> dict[str, Any]:
        done = CliRunner(
            env={"HADES_HOME": str(self.settings.home), "HADES_EMBEDDER": "hashing"}
        ).invoke(whole_app(), [*words, "--json"])
        document: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        return document

    def tool(self, tool: str, /, **given: Any) -> dict[str, Any]:
        document: dict[str, Any] = call_tool(self._server, tool, given).structured_content
        return document


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    home = tmp_path_factory.mktemp("surfaces") / "home"
    settings = settings_of(home)
    with open_memory(settings) as memory:
        memory.add("first/topic", "Memory begins here.")
    service = ToolService(settings, Door(Mode.ADMIN))
    with serving(settings, Door(Mode.ADMIN)) as running:
        yield Surfaces(settings, running.client, build_server(service))
    service.close()


@pytest.mark.parametrize("seed", range(TOPICS))
def test_every_surface_shows_the_version_that_holds(surfaces: Surfaces, seed: int) -> None:
    chance = random.Random(seed)
    word = f"zq{seed}word"
    topic = f"case/{word}"
    now = datetime.now(UTC)
    written: list[MemoryState] = []
    with open_memory(surfaces.settings) as memory:
        for number in range(chance.randint(2, 6)):
            start = now + chance.randint(-40, 10) * DAY
            until = start + chance.randint(1, 30) * DAY if chance.random() < 0.5 else None
            written.append(
                memory.add(topic, f"{word} was {number}", valid_from=start, valid_until=until)
            )
    for as_of in (None, now + chance.randint(-45, 15) * DAY):
        for known in (None, chance.choice(written).timestamp):
            expected = oracle(written, as_of, known)
            shown = answers(surfaces, topic, word, as_of, known)
            assert shown == dict.fromkeys(shown, expected), (as_of, known)


def oracle(
    versions: list[MemoryState], as_of: datetime | None, known: datetime | None
) -> str | None:
    """Of what was known and in force, what began last, then what was said last."""
    moment = as_of or known or datetime.now(UTC)
    holding = [
        one
        for one in versions
        if (known is None or one.timestamp <= known)
        and one.valid_from is not None
        and one.valid_from <= moment
        and (one.valid_until is None or moment < one.valid_until)
    ]
    return max(holding, key=lambda one: (one.valid_from, one.version)).key if holding else None


def answers(
    surfaces: Surfaces, topic: str, word: str, as_of: datetime | None, known: datetime | None
) -> dict[str, str | None]:
    """The id that each way to ask shows for the topic."""
    given = {
        name: at.isoformat()
        for name, at in (("as_of", as_of), ("known_at", known))
        if at is not None
    }
    flags = [part for name, at in given.items() for part in (f"--{name.replace('_', '-')}", at)]
    searched = surfaces.rest.post("/v1/memory/search", json={"query": word, **given}).json()
    latest = surfaces.rest.get(f"/v1/memory/{topic}/latest", params=given)
    asked = surfaces.rest.post("/v1/query", json={"query": f"what was {word}?", **given}).json()
    return {
        "hades memory latest": _id(
            surfaces.command("memory", "latest", topic, *flags).get("state")
        ),
        "hades memory search": _found(surfaces.command("memory", "search", word, *flags), topic),
        "hades query": _remembered(surfaces.command("query", f"what was {word}?", *flags), topic),
        "GET latest": _id(latest.json()) if latest.status_code == 200 else None,
        "POST search": _found(searched, topic),
        "POST query": _remembered(asked, topic),
        "memory_latest": _id(surfaces.tool("memory_latest", topic=topic, **given).get("state")),
        "memory_search": _found(surfaces.tool("memory_search", query=word, **given), topic),
    }


def _id(state: Mapping[str, Any] | None) -> str | None:
    return None if state is None else str(state["id"])


def _found(document: Mapping[str, Any], topic: str) -> str | None:
    return next(
        (one["state"]["id"] for one in document["results"] if one["state"]["topic"] == topic), None
    )


def _remembered(document: Mapping[str, Any], topic: str) -> str | None:
    shown = (one for one in document.get("passages", ()) if one["title"].startswith(f"{topic},"))
    return next((one["id"].rpartition("/")[2] for one in shown), None)


def test_every_surface_erases_with_the_same_certificate(surfaces: Surfaces) -> None:
    with open_memory(surfaces.settings) as memory:
        for way in ("command", "rest", "tool"):
            memory.add(f"secret/{way}", f"The pin of {way} is 4711{way}.")
    surfaces.command("memory", "search", "pin")
    certificates = {
        "command": surfaces.command(
            "memory", "erase", "secret/command", "--why", "asked", "--who", "ana"
        ),
        "rest": surfaces.rest.post(
            "/v1/memory/erase", json={"names": ["secret/rest"], "why": "asked"}
        ).json(),
        "tool": surfaces.tool("memory_erase", names=["secret/tool"], why="asked"),
    }
    assert certificates["tool"].pop("success") is True
    assert {way: sorted(one) for way, one in certificates.items()} == dict.fromkeys(
        certificates, sorted(certificates["command"])
    )
    assert [one["complete"] for one in certificates.values()] == [True, True, True], certificates
    for path in (path for path in surfaces.settings.home.rglob("*") if path.is_file()):
        held = (
            path.read_bytes()
        )  # keys are hexadecimal, so four digits alone may stand in one by chance
        assert [way for way in certificates if f"4711{way}".encode() in held] == [], path


def test_planned_recall_and_renewal_are_reachable(surfaces: Surfaces) -> None:
    with open_memory(surfaces.settings) as memory:
        memory.add("plan/bridge", "The bridge needs steel.")
        memory.add("plan/steel", "Steel arrives in May.")
        memory.link("plan/bridge", "plan/steel", "relates_to")
        memory.add("plan/steel", "Steel arrives in June.")
    for document in (
        surfaces.command("memory", "recall", "what is the status of the bridge?"),
        surfaces.rest.post(
            "/v1/memory/recall", json={"query": "what is the status of the bridge?"}
        ).json(),
        surfaces.tool("memory_recall", query="what is the status of the bridge?"),
    ):
        assert "The bridge needs steel." in document["text"]
        assert document["grounded"] is True
        assert document["steps"] == ["latest", "related"]
    renewed = surfaces.command("memory", "reconsolidate", "plan/bridge", "--who", "ana")
    assert renewed["state"]["version"] == 2
    assert (
        surfaces.rest.post("/v1/memory/plan/bridge/reconsolidate", json={}).json()["state"] is None
    )
