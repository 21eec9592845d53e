"""Each capability on the library, the command line, REST and MCP: a valid call, an unknown field, a
thing not there.

One home with a few pages and a short story in memory; a call that is offered on several surfaces
gives the same fields on each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.access.limits import Door
from hades.surfaces.capabilities.capability import Capability, document_of
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.surfaces.cli.commands import whole_app
from hades.surfaces.cli.parameters import _inputs
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_memory
from tests.integration.rest_site import serving
from tests.mcp_client import call_tool
from tests.unit.hades.surfaces.mcp_home import QUESTION, make_home

NAMED = {one.name: one for one in CAPABILITIES}

STORY = (
    ("design/approach_x", "Approach X was rejected: it triggers bug Y", "2024-01-10"),
    ("bugs/bug_y", "Bug Y corrupts data", "2024-01-10"),
    ("bugs/bug_y", "Bug Y is fixed", "2024-03-05"),
)
NODE = "entities/ada_lovelace"
# Values of a valid call; ids that an earlier call made are filled in by `prepared`.
VALID: dict[str, dict[str, Any]] = {
    "query": {"query": QUESTION},
    "answer": {"query": QUESTION},
    "retrieve_paths": {"query": QUESTION, "max_paths": 2},
    "retrieve_passages": {"query": QUESTION, "limit": 2},
    "query_paths": {"query": QUESTION, "k": 2},
    "explain": {"query_id": "QUERY_ID"},
    "feedback": {"query_id": "QUERY_ID", "good": {"passages": [1]}},
    "queries": {},
    "overview": {},
    "graph.node": {"id": NODE},
    "graph.source": {"id": "PASSAGE_ID"},
    "graph.neighbours": {"id": NODE, "fanout": 2},
    "graph.subgraph": {"id": [NODE], "hops": 1},
    "graph.topics": {"limit": 3},
    "entity.edits": {},
    "entity.update": {"entity_id": "entities/london", "fields": {"summary": "a city"}},
    "standing.add": {"question": QUESTION},
    "standing.list": {},
    "standing.run": {},
    "standing.remove": {"id": "STANDING_ID"},
    "snapshots": {},
    "log": {"limit": 2},
    "blame": {"question": QUESTION},
    "runs": {"limit": 1},
    "memory.add": {"topic": "plan/ferry", "content": "The ferry runs daily.", "tags": ["ferry"]},
    "memory.topics": {"prefix": "bugs/"},
    "memory.latest": {"topic": "bugs/bug_y"},
    "memory.history": {"topic": "bugs/bug_y"},
    "memory.at": {"topic": "bugs/bug_y", "moment": "2024-02-01"},
    "memory.trace": {"topic": "bugs/bug_y"},
    "memory.link": {"source": "design/approach_x", "relation": "relates_to", "target": "plan/boat"},
    "memory.close": {"edge_id": "EDGE_ID", "why": "opened"},
    "memory.edges": {"topic": "design/approach_x", "types": ["rejected_because"]},
    "memory.why": {"topic": "design/approach_x"},
    "memory.when": {
        "topic": "design/approach_x",
        "from_rel": "rejected_because",
        "to_rel": "works_with",
    },
    "memory.audit": {"topic": "bugs/bug_y"},
    "memory.promote": {"topic": "plan/boat", "reason": "reviewed"},
    "memory.change": {"old_state_id": "plan/boat", "change_description": "The boat was sold."},
    "memory.fact": {"subject": "plan/boat", "relation": "works_with", "object": "bugs/bug_y"},
    "memory.conflicts": {"open_only": True},
    "memory.check": {},
    "memory.compact": {},
    "memory.search": {"query": "bug Y corrupts data", "limit": 1},
    "memory.context": {"query": "Why was approach X rejected?", "max_tokens": 300},
    "memory.working": {"topic": "design/approach_x"},
    "memory.consolidate": {"level": 1, "as_of": "2027-01-01"},
    "memory.rate": {"name": "bugs/bug_y", "importance": 0.9},
    "memory.trust": {"source": "wiki", "trust": 0.8},
    "memory.learn": {"limit": 10},
    "memory.groups": {},
    "memory.recall": {"query": "why was X rejected?"},
    "memory.reconsolidate": {"topic": "design/approach_x"},
    "memory.undo": {"act_id": "ACT_ID"},
    "memory.drill_down": {"summary": "summary/daily/bugs/2024-01-10"},
    "memory.erase": {"names": ["plan/secret"], "why": "asked to"},
}
ELSEWHERE = {
    "compare": "needs two snapshots: tests/unit/hades/night/release/test_compare.py",
    "diff": "needs two snapshots: tests/unit/hades/night/release/test_compare.py",
    "promote": "needs two snapshots: tests/unit/hades/night/release/test_compare.py",
    "discard": "needs two snapshots: tests/unit/hades/night/release/test_compare.py",
    "rollback": "needs two snapshots: tests/unit/hades/night/release",
    "entity.approve": "needs a second person: tests/unit/hades/curation",
    "entity.undo": "needs an edit: tests/unit/hades/curation",
    "memory.resolve": "needs an open conflict: tests/unit/hades/memory",
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "explain": {"query_id": "q_none"},
    "feedback": {"query_id": "q_none", "good": {"paths": [1]}},
    "graph.node": {"id": "entities/nobody"},
    "graph.source": {"id": "doc_chunks/c_none"},
    "standing.remove": {"id": "s_none"},
    "memory.latest": {"topic": "nobody/knows"},
    "memory.history": {"topic": "nobody/knows"},
    "memory.at": {"topic": "nobody/knows", "moment": "2024-02-01"},
    "memory.close": {"edge_id": "no_such_edge"},
    "memory.promote": {"topic": "nobody/knows", "reason": "x"},
    "memory.link": {"source": "nobody/knows", "relation": "blocked_by", "target": "bugs/bug_y"},
    "memory.drill_down": {"summary": "summary/none"},
}


class Surfaces:
    """One home asked through the library, by command, over HTTP and by tool."""

    def __init__(self, settings: Settings, rest: httpx.Client, server: Any) -> None:
        self.settings, self.rest, self.server = settings, rest, server
        self.ids: dict[str, str] = {}

    def library(self, capability: Capability, values: dict[str, Any]) -> dict[str, Any]:
        context = CallContext(self.settings, "tester")
        try:
            return document_of(capability.call(capability.check(values), context))
        finally:
            context.close()

    def command(self, capability: Capability, values: dict[str, Any], *more: str) -> Any:
        assert capability.cli is not None
        words = [*capability.words.split()]
        for one in _inputs(capability.request, capability.cli.arguments.split()):
            value = values.get(one.name)
            value = (value or {}).get(one.part) if one.part else value
            if value is None:
                continue
            if one.shell.is_list:
                value = [f"{name}={json.dumps(part)}" for name, part in value.items()]
            for text in value if isinstance(value, list) else [value]:
                flags = () if one.place >= 0 else (one.flags[0],)
                words += flags if text is True else (*flags, str(text))
        env = {"HADES_HOME": str(self.settings.home), "HADES_EMBEDDER": "hashing"}
        return CliRunner(env=env).invoke(whole_app(), [*words, *more])

    def http(self, capability: Capability, values: dict[str, Any]) -> httpx.Response:
        rest, given = capability.rest, dict(values)
        assert rest is not None
        if "entity_id" in given:
            given["entity_id"] = given["entity_id"].removeprefix("entities/")
        path = re.sub(r"\{(\w+)(?::path)?\}", lambda found: str(given.pop(found[1], "")), rest.path)
        if rest.method == "GET":
            return self.rest.get(f"/v1{path}", params=given)
        return self.rest.post(f"/v1{path}", json=given)

    def tool(self, name: str, values: dict[str, Any]) -> Any:
        return call_tool(self.server, name, values)


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    settings = make_home(tmp_path_factory.mktemp("each"))
    with open_memory(settings) as memory:
        for topic, content, since in STORY:
            moment = dict(NAMED["memory.at"].check({"topic": topic, "moment": since}))["moment"]
            memory.add(topic, content, valid_from=moment)
        memory.add("plan/boat", "The boat is red.")
        memory.link("design/approach_x", "bugs/bug_y", "rejected_because")
    service = ToolService(settings, Door(Mode.ADMIN))
    with serving(settings, Door(Mode.ADMIN)) as running:
        yield Surfaces(settings, running.client, build_server(service))
    service.close()


def prepared(surfaces: Surfaces, values: dict[str, Any]) -> dict[str, Any]:
    """The values, with what they name made first."""
    made = dict(values)
    if made.get("query_id") == "QUERY_ID" or made.get("id") == "PASSAGE_ID":
        asked = json.loads(surfaces.command(NAMED["query"], VALID["query"], "--json").stdout)
        made |= (
            {"query_id": asked["query_id"]}
            if "query_id" in made
            else {"id": asked["passages"][0]["id"]}
        )
    if made.get("id") == "STANDING_ID":
        made["id"] = surfaces.library(NAMED["standing.add"], VALID["standing.add"])["added"][0][
            "id"
        ]
    if made.get("edge_id") == "EDGE_ID":
        edge = surfaces.library(NAMED["memory.link"], VALID["memory.link"])["edge"]
        made["edge_id"] = edge["id"]
    if made.get("act_id") == "ACT_ID":
        made["act_id"] = surfaces.library(NAMED["memory.promote"], VALID["memory.promote"])["act"]
    if "summary" in made:
        surfaces.library(NAMED["memory.consolidate"], VALID["memory.consolidate"])
    if "plan/secret" in made.get("names", ()):
        surfaces.library(
            NAMED["memory.add"], {"topic": "plan/secret", "content": "Nobody keeps this."}
        )
    return made


def test_every_capability_has_a_case() -> None:
    assert {one.name for one in CAPABILITIES} == {*VALID, *ELSEWHERE}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_call_has_the_same_fields_everywhere(surfaces: Surfaces, name: str) -> None:
    capability = NAMED[name]
    fields: dict[str, set[str]] = {}
    if capability.mcp is None or capability.rest is not None:
        fields["library"] = set(surfaces.library(capability, prepared(surfaces, VALID[name])))
    if capability.cli is not None:
        done = surfaces.command(capability, prepared(surfaces, VALID[name]), "--json")
        assert done.exit_code in (0, 1), done.output
        fields["command"] = set(json.loads(done.stdout))
        shown = surfaces.command(capability, prepared(surfaces, VALID[name]))
        assert shown.exit_code == done.exit_code, shown.output
        assert shown.stdout.strip()
    if capability.rest is not None:
        answer = surfaces.http(capability, prepared(surfaces, VALID[name]))
        assert answer.status_code == capability.rest.status, answer.text
        if capability.rest.part is None:
            fields["REST"] = set(answer.json())
    if capability.mcp is not None:
        told = surfaces.tool(capability.mcp.name, prepared(surfaces, VALID[name]))
        assert told.structured_content["success"], told.structured_content
    assert len({frozenset(one) for one in fields.values()}) <= 1, fields


@pytest.mark.parametrize("name", VALID)
def test_an_unknown_field_is_refused_everywhere(surfaces: Surfaces, name: str) -> None:
    capability, values = NAMED[name], {**VALID[name], "no_such_field": "x"}
    with pytest.raises(ValueError, match="no_such_field"):
        capability.check(values)
    if capability.cli is not None:
        assert surfaces.command(capability, VALID[name], "--no-such-field", "x").exit_code == 2
    if capability.rest is not None and capability.rest.method == "POST" and len(VALID[name]) > 0:
        answer = surfaces.http(capability, values)
        has_body = any(
            f"{{{field}" not in capability.rest.path for field in capability.request.model_fields
        )
        assert answer.status_code == 422 or not has_body, answer.text


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_there_is_said_everywhere(surfaces: Surfaces, name: str) -> None:
    capability, values = NAMED[name], UNKNOWN[name]
    done = surfaces.command(capability, values, "--json")
    assert done.exit_code == 1
    problem = json.loads(done.stdout)["error"]
    assert problem["message"]
    answer = surfaces.http(capability, values)
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"] == problem["type"]
    assert answer.json()["message"]
    if capability.mcp is not None:
        told = surfaces.tool(capability.mcp.name, values).structured_content
        unknown = capability.mcp.null_when_unknown
        assert told[unknown] is None if unknown else not told["success"]
