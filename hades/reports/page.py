"""The HTML frame, charts as SVG."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hades.files import write_whole
from schemas.answer import Path as GraphPath
from schemas.answer import Retrieval

# The frame all pages share: one HTML file with its styles inside, nothing fetched, nothing run.


def write(path: Path, title: str, lead: str, body: Iterable[str], footer: str) -> Path:
    """Put a page on the disk in one step, so that nobody reads half of it; `lead`, `body` and `footer` are HTML."""
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{style}</style></head>\n"
        f'<body><main><h1>{escape(title)}</h1><p class="lead">{lead}</p>\n'
        + "\n".join(body)
        + f"\n<footer>{footer}</footer></main></body></html>\n"
    )
    return write_whole(path, text)


def escape(text: object) -> str:
    """Text as HTML shows it, in content and in attributes."""
    return html.escape(str(text), quote=True)


def section(title: str, about: str, *content: str) -> str:
    """A card with a heading and one sentence on what it shows."""
    said = f'<p class="soft">{escape(about)}</p>' if about else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(content)}</section>"


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Large numbers with what they count; the third says `good`, `bad` or nothing."""
    shown = "".join(
        f'<div class="tile {tone}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for value, name, tone in facts
    )
    return f'<div class="tiles">{shown}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; `numeric` columns stand right."""
    place = dict.fromkeys(numeric, ' class="n"')
    head = "".join(f"<th{place.get(number, '')}>{escape(name)}</th>" for number, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{place.get(number, '')}>{cell}</td>" for number, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def badge(text: str, tone: str) -> str:
    """A word in a pill, coloured `good`, `bad` or `idle`."""
    return f'<span class="badge {tone}">{escape(text)}</span>'


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


@dataclass(frozen=True)
class Bar:
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
    middle = _middle(counts)
    return svg(title, f"{number(sum(counts))} values, half of them below {middle:.2f}", width, height, marks)


def _middle(counts: Sequence[int]) -> float:
    """Where half of the values lie below, to the width of a bin."""
    seen = 0
    for place, count in enumerate(counts):
        seen += count
        if 2 * seen >= sum(counts):
            return (place + 1) / len(counts)
    return 0.0


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


# An answer as a picture: each path a row of names joined by what relates them, and what the turn spent. Plain SVG.


PICTURE_WIDTH, MARGIN = 1180, 24
_PICTURE_ROW, _BOX, _HEAD = 96, 36, 74
_LETTER = 7.4  # width of a letter at this size, on the safe side
_MOST_PATHS, _MOST_LETTERS = 6, 26
_PICTURE_STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#1c1c22}.quiet{fill:#5c5c68;font-size:12px}.title{font-size:17px;"
    "font-weight:600}.box{fill:#eeeefc;stroke:#4a4ac4}.way{stroke:#5c5c68;stroke-width:1.5;marker-end:url(#tip)}"
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#5c5c68"/></marker></defs>'
)


def answer_picture(answer: Retrieval) -> str:
    """The answer's best paths as SVG that any browser shows."""
    paths = answer.paths[:_MOST_PATHS]
    height = _HEAD + _PICTURE_ROW * max(1, len(paths)) + MARGIN
    rows = [_row(path, _HEAD + place * _PICTURE_ROW) for place, path in enumerate(paths)]
    nothing = "" if paths else _text(MARGIN, _HEAD + 30, "no path; the passages answer", "quiet")
    budget, spent = answer.plan.budget, answer.telemetry
    cost = f"{answer.recipe}: {spent.reads} of {budget.docs_max} reads, {spent.ms:.0f} of {budget.latency_ms} ms"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE_WIDTH} {height}" role="img">'
        f"<title>{escape(answer.query)}</title><style>{_PICTURE_STYLE}</style>{_TIP}"
        f'<rect width="{PICTURE_WIDTH}" height="{height}" fill="#fff"/>'
        f"{_text(MARGIN, 34, answer.query, 'title')}{_text(MARGIN, 56, cost, 'quiet')}{''.join(rows)}{nothing}</svg>\n"
    )


def _row(path: GraphPath, top: float) -> str:
    """One path: boxes for its nodes, an arrow for each edge the way it is stored."""
    names = [_short(node.name) for node in path.nodes]
    widths = [len(name) * _LETTER + 22 for name in names]
    gap = (PICTURE_WIDTH - 2 * MARGIN - sum(widths)) / max(1, len(names) - 1) if len(names) > 1 else 0.0
    gap = max(60.0, min(240.0, gap))
    marks, left = [], float(MARGIN)
    for place, (name, width) in enumerate(zip(names, widths, strict=True)):
        marks.append(f'<rect class="box" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{_BOX}" rx="8"/>')
        marks.append(_text(left + 11, top + 23, name))
        if place < len(path.edges):
            edge = path.edges[place]
            begin, end, middle = left + width + 4, left + width + gap - 4, top + _BOX / 2
            ends = (begin, end) if edge.source == path.nodes[place].id else (end, begin)
            marks.append(f'<path class="way" d="M{ends[0]:.0f} {middle:.0f}L{ends[1]:.0f} {middle:.0f}"/>')
            marks.append(_text((begin + end) / 2, middle - 7, _short(edge.type), "quiet", anchor="middle"))
        left += width + gap
    return "".join(marks) + _text(MARGIN, top + _BOX + 18, f"{path.rank}. {path.why}", "quiet")


def _short(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def _text(left: float, base: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{left:.0f}" y="{base:.0f}" text-anchor="{anchor}">{escape(words)}</text>'
