"""The view of a reply that has none of its own: lists of records as a table, everything else as lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

_CHARACTERS = 160


def show_document(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """A line for each value, a table for each list of records."""
    parts: list[RenderableType] = []
    for name, value in document.items():
        if _is_table(value):
            parts += [Text(f"{name}:"), _table(value)]
        else:
            parts.append(Text(f"{name}: {_short(value)}"))
    return tuple(parts)


def _is_table(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_short(row.get(column, "")) for column in columns))
    return table


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."
