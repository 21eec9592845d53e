"""The tools of the MCP server as a page, read from their own schemas."""

from __future__ import annotations

import inspect
import json
from typing import Any

from hades.ports.store import Mode
from hades.surfaces.docs.markdown import NOTICE, code, page, table
from hades.surfaces.mcp.describe import describe

Schema = dict[str, Any]
_BOUNDS = {"minimum": ">=", "maximum": "<=", "maxLength": "characters <=", "maxItems": "items <="}


def mcp_page() -> str:
    """`docs/reference/mcp.md`."""
    reading = {tool["name"] for tool in describe(Mode.READ_ONLY)["tools"]}
    offered = describe(Mode.READ_WRITE)
    tools = sorted(offered["tools"], key=lambda tool: (tool["name"] not in reading, tool["name"]))
    lines = [
        NOTICE,
        "# MCP tools",
        "",
        "What `hades mcp` offers; how to connect is in [docs/mcp.md](../mcp.md). Every result has `success`; a failure",
        'is `{"success": false, "error": ...}` and is marked as an error. A field that does not apply is left out.',
        "",
        *table(
            ("tool", "modes", "what it does"),
            ((code(tool["name"]), "ro, rw" if tool["name"] in reading else "rw", _summary(tool)) for tool in tools),
        ),
    ]
    for tool in tools:
        lines += _tool(tool)
    lines += _parts(tools)
    lines += ["", "## Resources", ""]
    lines += table(
        ("address", "type", "what it is"),
        ((code(one["uriTemplate"]), one["mimeType"], one["description"]) for one in offered["resources"]),
    )
    return page(lines)


def _tool(tool: Schema) -> list[str]:
    hints = [name for name in ("readOnlyHint", "idempotentHint") if tool["annotations"].get(name)]
    return [
        "",
        f"## `{tool['name']}`",
        "",
        inspect.cleandoc(tool["description"]),
        "",
        f"Annotations: {', '.join(map(code, hints)) or 'none'}.",
        "",
        *_fields("parameter", tool["inputSchema"], required=True),
        "",
        "Result:",
        "",
        *_fields("field", tool["outputSchema"], required=False),
    ]


def _parts(tools: list[Schema]) -> list[str]:
    """What results are made of, each once."""
    parts: dict[str, Schema] = {}
    for tool in tools:
        parts |= tool["outputSchema"].get("$defs", {})
    lines = ["", "## Parts of results"]
    for name in sorted(parts):
        if "properties" in parts[name]:
            about = parts[name].get("description", "").split("\n\n")[0].replace("\n", " ")
            lines += ["", f"### {name}", "", about, "", *_fields("field", parts[name], required=False)]
    return lines


def _fields(heading: str, schema: Schema, *, required: bool) -> list[str]:
    rows = []
    for name, field in schema["properties"].items():
        default = "required" if required and name in schema.get("required", ()) else _default(field)
        examples = ", ".join(code(json.dumps(one, ensure_ascii=False)) for one in field.get("examples", ()))
        meaning = field.get("description", "") + (f" For example {examples}." if examples else "")
        rows.append((code(name), _kind(field), *((default,) if required else ()), meaning))
    head = (heading, "type", "default", "meaning") if required else (heading, "type", "meaning")
    return table(head, rows)


def _default(field: Schema) -> str:
    value = field.get("default")
    return "" if value is None else code(json.dumps(value))


def _kind(field: Schema) -> str:
    parts = [part for part in field.get("anyOf", [field]) if part.get("type") != "null"]
    return " or ".join(dict.fromkeys(_plain_kind(part) for part in parts))


def _plain_kind(part: Schema) -> str:
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if "enum" in part:
        return ", ".join(code(str(one)) for one in part["enum"])
    kind = str(part.get("format") or part.get("type", "any"))
    if kind == "array":
        kind = f"list of {_kind(part.get('items', {}))}"
    bounds = [f"{sign} {part[name]:g}" for name, sign in _BOUNDS.items() if name in part]
    return f"{kind} ({', '.join(bounds)})" if bounds else kind


def _summary(tool: Schema) -> str:
    return inspect.cleandoc(tool["description"]).split("\n\n")[0].replace("\n", " ")
