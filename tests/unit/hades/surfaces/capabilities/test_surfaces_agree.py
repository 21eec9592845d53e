"""Every surface accepts the same fields, limits, defaults and choices: those of the capability's
request.
"""

from __future__ import annotations

from typing import Any

import pytest

from docs.generate import command_tree
from hades.ports.store import Mode
from hades.surfaces.capabilities.capability import QUESTION_CHARACTERS, Capability, Cli, Rest
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.surfaces.cli.commands import COMMANDS as HEADINGS
from hades.surfaces.cli.commands import GROUPS, lines_of_help
from hades.surfaces.cli.output import LOCAL_COMMANDS
from hades.surfaces.cli.parameters import shell_of
from hades.surfaces.mcp.server import describe as mcp_described
from hades.surfaces.rest.app import add_routes
from tests.command_line import run

NAMED = {one.name: one for one in CAPABILITIES}

LIMITS = (
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "enum",
    "const",
    "format",
)
OF_EVERY_COMMAND = {"as_json", "quiet", "debug", "help"}
COMMANDS = command_tree()
OPENAPI = add_routes(Mode.ADMIN).openapi()
TOOLS = {tool["name"]: tool for tool in mcp_described(Mode.ADMIN)["tools"]}
UNDECLARED_ROUTES = {
    (
        "get",
        "/health",
    ): "speaks of the process, not of the graph; a supervisor asks it without a token",
    (
        "get",
        "/ready",
    ): "speaks of the process, not of the graph; a load balancer asks it without a token",
    ("get", "/metrics"): "figures of this process in the text format of Prometheus",
    (
        "get",
        "/v1/models",
    ): "the fields are those of the OpenAI protocol, so that its clients can connect",
    (
        "post",
        "/v1/chat/completions",
    ): "the fields are those of the OpenAI protocol; it calls `answer`",
    ("post", "/v1/query/stream"): "the request of `query`, answered as server-sent events",
    ("post", "/v1/answer/stream"): "the request of `answer`, answered as server-sent events",
    ("get", "/v1/uploads"): "how far this service is with the files it was sent",
    (
        "post",
        "/v1/uploads",
    ): "files come in over HTTP only; `hades ingest documents` reads those of this machine",
    ("put", "/v1/uploads/{upload}/files/{path}"): "the body is the content of a file, not JSON",
    ("post", "/v1/uploads/{upload}/finish"): "the last step of an upload",
    (
        "post",
        "/v1/uploads/folder",
    ): "a folder of `hades serve --allow-folder`; `hades ingest documents` reads any",
}


def on(surface: str) -> list[Any]:
    found = [one for one in CAPABILITIES if getattr(one, surface) is not None]
    return [pytest.param(one, id=one.name) for one in found]


def rules(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """The limits, choices and default of a JSON schema, without titles and descriptions."""
    if "$ref" in schema:
        named = schema["$ref"].rpartition("/")[2]
        return {
            **rules(defs[named], defs),
            **({"default": schema["default"]} if "default" in schema else {}),
        }
    found = {name: schema[name] for name in LIMITS if name in schema}
    if schema.get("default") not in (None, [], {}):
        found["default"] = schema["default"]
    for part in schema.get("anyOf", ()):
        found |= rules(part, defs)
    if schema.get("items"):
        found["items"] = rules(schema["items"], defs)
    if "properties" in schema:
        found["properties"] = {name: rules(one, defs) for name, one in schema["properties"].items()}
    return found


def declared(capability: Capability) -> dict[str, dict[str, Any]]:
    schema = capability.request.model_json_schema(by_alias=False)
    return {
        name: rules(one, schema.get("$defs", {}))
        for name, one in schema.get("properties", {}).items()
    }


def test_names_commands_routes_and_tools_are_unique():
    assert len({one.name for one in CAPABILITIES}) == len(CAPABILITIES)
    tools = [one.values[0].mcp.name for one in on("mcp")]
    assert len(tools) == len(set(tools))
    routes = [(one.values[0].rest.method, one.values[0].rest.path) for one in on("rest")]
    assert len(routes) == len(set(routes))


def test_every_command_is_declared():
    words = {one.values[0].words for one in on("cli")} | {words for words, *_ in LOCAL_COMMANDS}
    assert set(COMMANDS) == {f"hades {one}" for one in words}


def test_the_list_of_commands_shows_the_whole_first_sentence_of_each():
    for commands in HEADINGS.values():
        for name in sorted(commands.keys() - GROUPS.keys()):
            sentence = lines_of_help(commands[name])[name]
            assert sentence.endswith(".")
            assert " ".join(COMMANDS[f"hades {name}"].help.split()).startswith(sentence)


def test_the_help_begins_with_what_a_newcomer_needs():
    assert next(iter(HEADINGS)) == "Start here"
    assert list(HEADINGS["Start here"])[:4] == ["demo", "ingest", "watch", "build"]
    shown = run("--help", COLUMNS="80", TERMINAL_WIDTH="80").output
    places = [shown.index(f"─ {heading} ─") for heading in HEADINGS]
    assert places == sorted(places)
    assert max(map(len, shown.splitlines())) <= 80


def test_every_route_is_declared_or_a_named_exception():
    declared_routes = {
        (one.values[0].rest.method.lower(), url(one.values[0].rest)) for one in on("rest")
    }
    also_get = {
        ("get", url(one.values[0].rest)) for one in on("rest") if one.values[0].rest.is_also_get
    }
    offered = {(method, path) for path, methods in OPENAPI["paths"].items() for method in methods}
    assert offered == declared_routes | also_get | set(UNDECLARED_ROUTES)


@pytest.mark.parametrize(
    ("stream", "capability"), [("/v1/query/stream", "query"), ("/v1/answer/stream", "answer")]
)
def test_a_stream_takes_the_body_of_its_capability(stream, capability):
    body = OPENAPI["paths"][stream]["post"]["requestBody"]
    assert body == OPENAPI["paths"][url(NAMED[capability].rest)]["post"]["requestBody"]


def test_every_tool_is_declared():
    assert set(TOOLS) == {one.values[0].mcp.name for one in on("mcp")}


def url(rest: Rest) -> str:
    return "/v1" + rest.path.replace(":path}", "}")


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda one: one.name)
def test_every_field_is_described(capability):
    assert capability.help
    assert [
        name for name, field in capability.request.model_fields.items() if not field.description
    ] == []


@pytest.mark.parametrize("capability", on("rest"))
def test_rest_accepts_what_the_request_declares(capability):
    assert isinstance(capability.rest, Rest)
    route = OPENAPI["paths"][url(capability.rest)][capability.rest.method.lower()]
    defs = OPENAPI["components"]["schemas"]
    accepted = {one["name"]: rules(one["schema"], defs) for one in route.get("parameters", ())}
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        accepted |= rules(body, defs)["properties"]
    assert accepted == declared(capability)


@pytest.mark.parametrize("capability", on("mcp"))
def test_a_tool_accepts_what_the_request_declares(capability):
    schema = TOOLS[capability.mcp.name]["inputSchema"]
    accepted = {
        name: rules(one, schema.get("$defs", {})) for name, one in schema["properties"].items()
    }
    assert accepted == declared(capability)
    assert set(schema.get("required", ())) == {
        name for name, field in capability.request.model_fields.items() if field.is_required()
    }


@pytest.mark.parametrize("capability", on("cli"))
def test_the_command_line_accepts_what_the_request_declares(capability):
    assert isinstance(capability.cli, Cli)
    command = COMMANDS[f"hades {capability.words}"]
    by_name = {parameter.name: parameter for parameter in command.params}
    for name, field in capability.request.model_fields.items():
        shell = shell_of(field)
        parts = [f"{name}__{part}" for part, _ in shell.parts] or [name]
        for key in parts:
            assert key in by_name, f"{capability.name} lacks {key} on the command line"
        if len(parts) == 1 and shell.read is None:
            assert_same_rules(by_name[name], declared(capability)[name])
    extra = set(capability.cli.options.model_fields) if capability.cli.options else set()
    known = {
        *capability.request.model_fields,
        *extra,
        *OF_EVERY_COMMAND,
        "_who",
        "_as_user",
        "_groups",
    }
    assert [
        name for name in by_name if name.partition("__")[0] not in known and name not in known
    ] == []


def assert_same_rules(parameter: Any, rule: dict[str, Any]) -> None:
    """Choices, numeric limits and default of a click parameter; lengths are checked by the request
    itself.
    """
    item = rule.get("items", rule)
    written = str(parameter.type_descriptor.annotation)
    if "enum" in item:
        assert all(f"'{one}'" in written for one in item["enum"]), written
    else:
        assert "Literal" not in written
    for limit, name in (("minimum", "min"), ("maximum", "max")):
        assert getattr(parameter, name, None) == item.get(limit), (parameter.name, limit)
    default = parameter.default
    if default is not None and default is not False and default != []:
        assert default == rule.get("default", default if default == "" else None), parameter.name


def test_a_value_outside_its_limits_is_refused_on_the_command_line_with_exit_code_2():
    assert run("query", "x" * (QUESTION_CHARACTERS + 1)).exit_code == 2
    assert run("query", "x", "--paths", "101").exit_code == 2
