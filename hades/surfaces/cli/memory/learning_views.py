"""Ratings, trust, discovered edges, groups and planned recall for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hades.surfaces.cli.memory.version_views import edge_table, state_lines, table_of

Document = Mapping[str, Any]


def show_rating(document: Document) -> tuple[Text]:
    """The importance that a state has now."""
    state = document["state"]
    return (Text(f"{state['topic']}, version {state['version']}: importance {state['importance_score']:.2f}"),)


def show_trust(document: Document) -> tuple[Text]:
    """How far the source is trusted now."""
    return (Text(document["state"]["content"]),)


def show_learning(document: Document) -> Iterator[RenderableType]:
    """What was counted and which edges were drawn."""
    counted = document["accesses"]
    yield Text(f"{counted['reads']:,} readings of {counted['states']:,} states; {counted['raised']:,} more important")
    told = f"{document['topics']:,} changed topics looked at, {len(document['edges']):,} edges drawn"
    yield Text(told + (f"; {document['left']:,} wait for the next time" if document["left"] else ""))
    if document["edges"]:
        yield edge_table(document["edges"])


def show_groups(document: Document) -> tuple[RenderableType]:
    """The groups as a table."""
    if not document["groups"]:
        return (Text("no topics are joined by edges; `hades memory learn` discovers some"),)
    table = table_of("group", "topics", "edges", "strength")
    for one in document["groups"]:
        table.add_row(one["name"], "\n".join(one["topics"]), str(one["edges"]), f"{one['strength']:.2f}")
    return (table,)


def show_recall(document: Document) -> Iterator[RenderableType]:
    """The context, and what the plan looked for in vain."""
    yield Text(document["text"] or "memory holds nothing about that")
    steps = ", ".join(document["steps"])
    missing = ", ".join(document["missing"]) or "nothing"
    yield Text(f"intent: {document['intent']}; steps: {steps}; found nothing for: {missing}", style="dim")


def show_renewal(document: Document) -> Iterator[RenderableType]:
    """The new version, or that none was needed."""
    if document["state"] is None:
        yield Text("nothing that it is joined to has changed since; no new version")
    else:
        yield from state_lines(document["state"])
