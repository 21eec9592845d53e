"""How a person sees a part of the graph and its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def show_subgraph(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """The nodes by distance, then the edges."""
    nodes = _table(("node", "name", "type", "hops"), (
        (one["id"], one["name"], one["type"], one["depth"]) for one in document["nodes"]
    ))  # fmt: skip
    edges = _table(("from", "edge", "to", "weight"), (
        (one["from"], one["label"] or one["type"], one["to"], f"{one['weight']:.3f}") for one in document["edges"]
    ))  # fmt: skip
    note = [Text("There are more; raise --fanout, or the limits of nodes and edges.", style="yellow")]
    return (nodes, Text(""), edges, *(note if document["capped"] else ()))


def show_topics(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """Super-topics first, then topics, with their sizes."""
    rows = ((one["id"], one["level"], one["name"], one["size"]) for one in document["topics"])
    shown, total = len(document["topics"]), document["total"]
    return _table(("topic", "level", "name", "members"), rows), Text(f"{shown} of {total} topics")


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    return table
