"""Pages of HTML from the templates beside this module, and the charts in them as SVG."""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hades.files import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment


def write(path: Path, template: str, title: str, **values: Any) -> Path:
    """Put the page of a template on the disk in one step, so that nobody reads half of it."""
    return write_whole(path, _templates().get_template(template).render(title=title, **values))


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # only who writes a page loads it

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "seconds": seconds, "prose": prose, "pick": _pick}
    made.globals |= {"bar_chart": bar_chart, "histogram": histogram, "seconds": seconds, "wide": WIDTH}
    made.globals["percent"] = "{:.0%}".format
    return made


def _pick(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The values of these names."""
    return [row[name] for name in names]


def escape(text: object) -> str:
    """Text as HTML shows it, in content and in attributes."""
    return html.escape(str(text), quote=True)


def prose(text: str) -> str:
    """A sentence as HTML, with what stands between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def number(value: float) -> str:
    """A count with separators."""
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A duration a person reads."""
    if value >= 90:
        return f"{int(value // 60)}m {int(value % 60):02d}s"
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


# Charts as inline SVG: each has a title and a description for those who cannot see it, and a tooltip a mark.


WIDTH = 1000.0
_ROW = 24.0
_LABEL = 250.0
_LONGEST_BAR = 330.0


class Bar(NamedTuple):
    """A named amount; `note` stands after the number."""

    name: str
    value: float
    note: str = ""


def bar_chart(
    title: str,
    bars: Sequence[Bar],
    largest: float | None = None,
    width: float = WIDTH / 2,
    write_value: Callable[[float], str] = number,
) -> str:
    """Amounts side by side, as they come; `largest` is what fills the room, by default the largest of them."""
    label = min(_LABEL, width * 0.42)
    room = min(_LONGEST_BAR, width - label - 96)
    largest = largest or max((bar.value for bar in bars), default=0) or 1
    marks = []
    for place, bar in enumerate(bars):
        top, length = place * _ROW, max(1.5, room * bar.value / largest)
        told = f"{write_value(bar.value)}{f' {bar.note}' if bar.note else ''}"
        shown = _clip(told, width - label - length)
        marks.append(
            f"<g><title>{escape(bar.name)}: {escape(told)}</title>"
            f'<text x="{label - 10:.1f}" y="{top + 15:.1f}" text-anchor="end">{escape(_clip(bar.name, label))}</text>'
            f'<rect class="mark" x="{label:.1f}" y="{top + 4:.1f}" width="{length:.1f}" height="15" rx="3"/>'
            f'<text class="soft num" x="{label + length + 7:.1f}" y="{top + 15:.1f}">{escape(shown)}</text></g>'
        )
    told = "; ".join(f"{bar.name} {write_value(bar.value)}" for bar in bars[:10])
    return svg(title, told, width, max(1, len(bars)) * _ROW, marks)


def histogram(title: str, counts: Sequence[int], before: Sequence[int] | None = None) -> str:
    """Counts in equal bins of [0, 1]; an outline shows how they were before."""
    width, height, base = 260.0, 96.0, 76.0
    highest = max([*counts, *(before or ()), 1])
    step = width / max(1, len(counts))
    marks = [f'<line class="axis" x1="0" y1="{base}" x2="{width:.1f}" y2="{base}"/>']
    for place, count in enumerate(counts):
        tall = (base - 6) * count / highest
        low, high = place / len(counts), (place + 1) / len(counts)
        marks.append(
            f'<rect class="mark" x="{place * step + 0.75:.2f}" y="{base - tall:.2f}" width="{step - 1.5:.2f}" '
            f'height="{tall:.2f}"><title>{low:.2f} to {high:.2f}: {number(count)}</title></rect>'
        )
    if before:
        heights = [base - (base - 6) * count / highest for count in before]
        ends = [step * (place + 1) for place in range(len(before))]
        line = "".join(f"V{tall:.2f}H{end:.2f}" for tall, end in zip(heights, ends, strict=True))
        marks.append(f'<path class="before" d="M0 {base:.2f}{line}V{base:.2f}"><title>before</title></path>')
    marks += [
        f'<text class="soft num" x="{x}" y="{height - 4}" text-anchor="{anchor}">{text}</text>'
        for x, anchor, text in ((0, "start", "0"), (width / 2, "middle", "0.5"), (width, "end", "1"))
    ]
    middle = (bisect_left(list(accumulate(counts)), sum(counts) / 2) + 1) / len(counts) if counts else 0.0
    return svg(title, f"{number(sum(counts))} values, half of them below {middle:.2f}", width, height, marks)


def _clip(text: str, room: float) -> str:
    """As much of a text as fits into a width."""
    fitting = max(6, int(room / 7.0))
    return text if len(text) <= fitting else f"{text[: fitting - 1].rstrip()}…"


def svg(title: str, told: str, width: float, height: float, marks: Sequence[str]) -> str:
    """An SVG of marks with its title and, for those who cannot see it, what it shows."""
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width:{width:.0f}px"><title>{escape(title)}</title><desc>{escape(told)}</desc>{"".join(marks)}</svg>'
    )


# Two published graphs beside each other.


_MOST_ROWS = 15


def write_comparison_page(path: Path, found: Mapping[str, Any]) -> Path:
    """Write the page of a comparison and say where it is."""
    documents = found["documents"]
    changed = ", ".join(f"{number(one['count'])} {change}" for change, one in documents.items() if one["count"])
    listed = [(change, name) for change, one in documents.items() for name in one["names"][:_MOST_ROWS]]
    return write(path, "comparison.html", "Two graphs compared", found=found, changed=changed, listed=listed)
