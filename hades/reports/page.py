"""Pages of HTML from the templates beside this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hades.files import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment


class Bar(NamedTuple):
    """A named amount in a chart; `note` stands after the number."""

    name: str
    value: float
    note: str = ""


def write(path: Path, template: str, title: str, **values: Any) -> Path:
    """Put the page of a template on the disk in one step, so that nobody reads half of it."""
    return write_whole(
        path,
        templates().get_template(template).render(title=title, **values),
    )


@cache
def templates() -> Environment:
    """The templates with what they may call; a value that is missing is an error."""
    from jinja2 import (
        Environment,
        FileSystemLoader,
        StrictUndefined,
    )  # only who writes a page loads it

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "seconds": seconds,
        "clip": _clip,
        "pick": _pick,
    }
    environment.globals |= {
        "number": number,
        "seconds": seconds,
        "percent": "{:.0%}".format,
    }
    return environment


def _pick(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The values of these names."""
    return [row[name] for name in names]


def _clip(text: str, room: float) -> str:
    """As much of a text as fits into a width."""
    fitting = max(6, int(room / 7.0))
    if len(text) <= fitting:
        return text

    return f"{text[: fitting - 1].rstrip()}…"


def number(value: float) -> str:
    """A count with separators."""
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A duration a person reads."""
    if value >= 90:
        return f"{int(value // 60)}m {int(value % 60):02d}s"
    if value >= 1:
        return f"{value:.1f} s"

    return f"{value * 1000:.0f} ms"


def write_comparison_page(path: Path, comparison: Mapping[str, Any]) -> Path:
    """Write the page of two published graphs beside each other and say where it is."""
    return write(
        path,
        "comparison.html",
        "Two graphs compared",
        comparison=comparison,
    )
