"""Two snapshots beside each other, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

_NAMED = 8


def show_comparison(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Counts side by side, then some names of what came and went."""
    yield Text(f"{document['before']} → {document['after']}", style="bold")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "before", "after", "added", "removed"):
        table.add_column(heading, justify="left" if not heading else "right")
    for kind, row in document["nodes"].items():
        table.add_row(kind, *(f"{row[part]:,}" for part in ("before", "after", "added", "removed")))
    for kind, row in document["edges"].items():
        table.add_row(kind, f"{row['before']:,}", f"{row['after']:,}", "", "")
    yield table
    for kind, row in document["nodes"].items():
        for word in ("added", "removed"):
            if row[f"{word}_names"]:
                named = ", ".join(row[f"{word}_names"][:_NAMED])
                yield Text(f"{word} {kind}: {named}{' ...' if row[word] > _NAMED else ''}", style="dim")
