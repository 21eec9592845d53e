"""The REST service as a page, read from its own OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hades.ports.store import Mode
from hades.surfaces.docs.markdown import NOTICE, code, page, table
from hades.surfaces.rest.app import describe

Schema = dict[str, Any]
_BOUNDS = (
    ("minimum", ">="),
    ("maximum", "<="),
    ("minLength", "characters >="),
    ("maxLength", "characters <="),
    ("minItems", "items >="),
    ("maxItems", "items <="),
)


def rest_page() -> str:
    """`docs/reference/rest.md`."""
    specs = {mode: describe(mode) for mode in Mode}
    whole = specs[Mode.ADMIN]
    routes = list(_routes(whole))
    least = {
        (method, path): next(mode for mode in Mode if method in specs[mode]["paths"].get(path, {}))
        for method, path, _ in routes
    }
    lines = [
        NOTICE,
        "# REST",
        "",
        "What `hades serve` offers; how to connect is in [docs/rest.md](../rest.md). The column `mode` is the least",
        "mode of a service that has the route. The same as OpenAPI: `GET /v1/openapi.json` of a running service.",
        "",
        "Errors are `application/problem+json`: `status`, `error` (a name for programs), `message`, `expectation` and",
        "`next`.",
        "",
        *table(
            ("route", "mode", "what it does"),
            (
                (code(f"{method.upper()} {path}"), least[method, path].value, route["summary"])
                for method, path, route in routes
            ),
        ),
    ]
    for method, path, route in routes:
        lines += ["", f"## `{method.upper()} {path}`", "", route.get("description", ""), ""]
        lines += _parameters(whole, route)
        lines += _body(whole, route)
        lines += _result(whole, route)
    return page(_without_double_blanks(lines))


def _routes(spec: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in spec["paths"].items():
        for method, route in methods.items():
            yield method, path, route


def _parameters(spec: Schema, route: Schema) -> list[str]:
    rows = [
        (
            code(one["name"]),
            one["in"],
            "yes" if one.get("required") else "",
            _kind(spec, one["schema"]),
            _default(one["schema"]),
            one.get("description", one["schema"].get("description", "")),
        )
        for one in route.get("parameters", ())
    ]
    return [*table(("parameter", "in", "required", "type", "default", "meaning"), rows), ""] if rows else []


def _body(spec: Schema, route: Schema) -> list[str]:
    content = route.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    body = _resolve(spec, content["schema"])
    required = set(body.get("required", ()))
    rows = [
        (code(name), "yes" if name in required else "", _kind(spec, one), _default(one), one.get("description", ""))
        for name, one in body["properties"].items()
    ]
    lines = [*table(("body", "required", "type", "default", "meaning"), rows), ""]
    for example in body.get("examples", ())[:1]:
        lines += ["```json", json.dumps(example, indent=2), "```", ""]
    return lines


def _result(spec: Schema, route: Schema) -> list[str]:
    status = next(code for code in route["responses"] if code.startswith("2"))
    answer = route["responses"][status]
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    named = schema.get("$ref", "").rpartition("/")[2]
    shape = f" of shape `{named}`" if named else ""
    about = answer["description"].replace("Successful Response", "")
    return [f"Answers {status}{shape}. {about}".rstrip()]


def _kind(spec: Schema, schema: Schema) -> str:
    """A type in a few words, with its bounds."""
    if "$ref" in schema:
        return _kind(spec, _resolve(spec, schema)) if "enum" in _resolve(spec, schema) else _name(schema)
    if "anyOf" in schema:
        return " or ".join(_kind(spec, one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if "const" in schema:
        return code(str(schema["const"]))
    kind = str(schema.get("format", schema.get("type", "anything")))
    if schema.get("type") == "array":
        inner = schema.get("items", {})
        kind = f"list of {_kind(spec, inner)}" if inner else "list"
    bounds = [f"{sign} {schema[name]:g}" for name, sign in _BOUNDS if name in schema]
    return f"{kind}, {', '.join(bounds)}" if bounds else kind


def _name(schema: Schema) -> str:
    return code(schema["$ref"].rpartition("/")[2])


def _default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else code(json.dumps(default))


def _resolve(spec: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _without_double_blanks(lines: list[str]) -> list[str]:
    return [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
