"""Corrections of entities for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def show_edit(report: Mapping[str, Any]) -> Iterator[Text]:
    """What was changed, what it said before, and what it waits for."""
    yield Text(f"{report['entity']}: {report['state']}; {report['note']}")
    yield from (
        Text(f"  {name}: {report['before'].get(name)!r} -> {value!r}") for name, value in report["fields"].items()
    )
    if report["state"] == "pending":
        yield from (Text(f"  waits, because {need}") for need in report["needs"])
    if report["edit"]:
        yield Text(f"  edit {report['edit']}")


def show_edits(document: Mapping[str, Any]) -> tuple[RenderableType]:
    """The corrections as a table."""
    if not document["edits"]:
        return (Text("No entity was edited."),)
    table = Table(box=None, pad_edge=False)
    for heading in ("edit", "entity", "state", "who", "approved by", "says", "why"):
        table.add_column(heading, overflow="fold")
    for edit in document["edits"]:
        says = "; ".join(f"{name}: {value}" for name, value in edit["fields"].items())
        approved = ", ".join(edit["approved_by"])
        table.add_row(edit["_key"], edit["entity"], edit["state"], edit["who"], approved, says, edit["why"])
    return (table,)
