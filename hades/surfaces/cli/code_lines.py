"""Code in a terminal: its lines as they stand, each with its number."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.text import Text


def show_code(text: str, first: int, most: int) -> Iterator[Text]:
    """At most `most` lines of code that begins at line `first`, and how many more there are."""
    lines = text.expandtabs(4).rstrip().split("\n")
    shown = textwrap.dedent("\n".join(lines[:most])).split("\n")
    for number, line in enumerate(shown, first):
        yield Text(f"{number:>7} {line}", style="dim", no_wrap=True, overflow="ellipsis")
    if len(lines) > most:
        yield Text(f"        … {len(lines) - most} more lines", style="dim")
