"""Code in a terminal: its lines as they stand, each with its number."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hades.surfaces.cli.plain_layout import Line


def show_code(text: str, first: int, most: int) -> Iterator[Line]:
    """At most `most` lines of code that begins at line `first`, and how many more there are."""
    lines = text.expandtabs(4).rstrip().split("\n")
    shown = textwrap.dedent("\n".join(lines[:most])).split("\n")
    for number, line in enumerate(shown, first):
        yield Line(f"{number:>7} {line}", "dim")
    if len(lines) > most:
        yield Line(f"        … {len(lines) - most} more lines", "dim")
