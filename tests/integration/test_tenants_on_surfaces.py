"""Two tenants under one home: over HTTP and by tool, as on the command line, neither ever sees a
word of the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_hades, open_memory
from tests.integration.rest_site import RIVERS, serving, write_pages
from tests.mcp_client import call_tool, talk_to

SECRET = {"north": "Quorvenheron", "south": "Zelmarotter"}
OTHER = {"north": "south", "south": "north"}
TOPIC = "code/word"


@dataclass(frozen=True)
class Site:
    """What one tenant's services answer on."""

    tenant: str
    settings: Settings
    rest: httpx.Client
    tools: Any

    @property
    def own(self) -> str:
        return SECRET[self.tenant]

    @property
    def other(self) -> str:
        return SECRET[OTHER[self.tenant]]

    def call(self, tool: str, given: dict[str, Any]) -> str:
        return str(call_tool(self.tools, tool, given).model_dump_json())

    def names_of_tools(self) -> list[str]:
        return [tool.name for tool in talk_to(self.tools, lambda client: client.list_tools()).tools]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """Each tenant has pages, a published graph and memory that hold its own word."""
    root = tmp_path_factory.mktemp("tenants")
    with ExitStack() as stack:
        sites = {}
        for tenant, secret in SECRET.items():
            env = {
                "HADES_HOME": str(root / "home"),
                "HADES_EMBEDDER": "hashing",
                "HADES_TENANT": tenant,
            }
            settings = load_settings(env, root)
            write_pages(root / tenant, RIVERS, note=f"Captain {secret} sails there.")
            with open_hades(settings) as hades:
                hades.ingest.documents(root / tenant)
                hades.publish()
            with open_memory(settings) as memory:
                memory.add(TOPIC, f"The code word is {secret}.", why=f"{secret} asked for it")
                memory.add("code/book", f"The book of {secret} holds the code.")
                memory.link(TOPIC, "code/book", "references", description=f"as {secret} wrote")
            service = ToolService(settings, Door(Mode.ADMIN, tenant=tenant))
            stack.callback(service.close)
            running = stack.enter_context(serving(settings, Door(Mode.ADMIN, tenant=tenant)))
            sites[tenant] = Site(tenant, settings, running.client, build_server(service))
        yield sites


@pytest.fixture(params=list(SECRET))
def site(request: pytest.FixtureRequest, sites: dict[str, Site]) -> Site:
    return sites[request.param]


QUESTION = "what is the code word of the captain?"
POSTS = [
    ("/v1/query", {"query": QUESTION}),
    ("/v1/query", {"query": QUESTION, "recipe": "memory"}),
    ("/v1/answer", {"query": QUESTION}),
    ("/v1/memory/search", {"query": "code word"}),
    ("/v1/memory/context", {"query": "code word"}),
    ("/v1/memory/recall", {"query": "code word"}),
]
GETS = [
    f"/v1/memory/{TOPIC}/{what}"
    for what in ("latest", "history", "trace", "working", "edges", "why", "audit")
]


@pytest.mark.parametrize(("path", "body"), POSTS)
def test_a_question_over_http_reads_only_the_tenants_own(
    site: Site, path: str, body: dict[str, Any]
) -> None:
    said = site.rest.post(path, json=body)
    assert said.status_code == 200, said.text
    assert site.own in said.text
    assert site.other not in said.text


def test_asking_for_the_others_word_finds_none_of_its_texts(site: Site) -> None:
    for path in ("/v1/query", "/v1/memory/search", "/v1/memory/context"):
        said = site.rest.post(path, json={"query": f"who is {site.other}?"}).json()
        said.pop("query")
        absence = said.pop("absence", None) or {"names": [], "unknown_words": [site.other]}
        assert (absence["names"], absence["unknown_words"]) == ([], [site.other])
        echoes = (f"who is {site.other}?", f"no passage names {site.other}")
        reply = json.dumps(said)
        for echo in echoes:
            reply = reply.replace(echo, "")
        assert site.other not in reply


def test_no_page_of_the_explorer_shows_the_other(site: Site) -> None:
    """Every route that is read with GET, with ids of the tenant's own graph."""
    overview = site.rest.get("/v1/hierarchy").json()
    assert site.own in site.rest.get(f"/v1/memory/{TOPIC}/latest").text
    assert site.own in site.rest.get("/v1/graph/subgraph", params={"id": _entity(site)}).text
    paths = site.rest.get("/v1/openapi.json").json()["paths"]
    reads = [path for path, ways in paths.items() if "get" in ways]
    assert len(reads) > 20
    ids = [_entity(site), TOPIC, *(str(one) for one in _ids(overview))]
    for path in [*reads, *GETS]:
        for name in ids[:6]:
            filled = (
                path.replace("{topic}", TOPIC).replace("{id}", name).replace("{query_id}", name)
            )
            said = site.rest.get(
                filled.replace("{summary}", name), params={"id": name, "query": "code"}
            )
            assert said.status_code < 500, (filled, said.text)
            assert site.other not in said.text, filled


def test_no_tool_shows_the_other(site: Site) -> None:
    named = f"where does Captain {site.own} sail?"
    calls: dict[str, dict[str, Any]] = {
        "pathrag_retrieve": {"query": named},
        "hipporag_retrieve": {"query": named},
        "graph_query_paths": {"query": f"{named} and the Rhine"},
        "memory_search": {"query": "code word"},
        "memory_latest": {"topic": TOPIC},
        "memory_at": {"topic": TOPIC, "moment": datetime(2999, 1, 1, tzinfo=UTC).isoformat()},
        "memory_recall": {"query": "code word"},
    }
    assert calls.keys() <= set(site.names_of_tools())
    for tool, given in calls.items():
        said = site.call(tool, given)
        assert site.own in said, tool
        assert site.other not in said, tool


def test_a_token_of_one_tenant_opens_no_door_of_the_other(sites: dict[str, Site]) -> None:
    south = sites["south"]
    with serving(south.settings, Door(Mode.READ_ONLY, needs_token=True, tenant="south")) as running:
        tokens = running.services.tokens
        foreign, _ = tokens.add("guest", Mode.READ_ONLY, datetime.now(UTC), tenant="north")
        own, _ = tokens.add("local", Mode.READ_ONLY, datetime.now(UTC), tenant="south")
        ask = {"query": "code word"}
        refused = running.client.post(
            "/v1/memory/search", json=ask, headers={"Authorization": f"Bearer {foreign}"}
        )
        assert refused.status_code == 403
        assert SECRET["south"] not in refused.text
        answered = running.client.post(
            "/v1/memory/search", json=ask, headers={"Authorization": f"Bearer {own}"}
        )
        assert SECRET["south"] in answered.text


def _entity(site: Site) -> str:
    """The node of the tenant's captain."""
    with open_hades(site.settings) as hades:
        rows = [row for batch in hades.store.scan("entities") for row in batch.to_pylist()]
    return next(f"entities/{row['_key']}" for row in rows if site.own in row["name"])


def _ids(document: Any) -> Iterator[str]:
    """Every id in a document."""
    if isinstance(document, dict):
        yield from (
            value for name, value in document.items() if name == "id" and isinstance(value, str)
        )
        document = list(document.values())
    if isinstance(document, list):
        for one in document:
            yield from _ids(one)
