"""The HTML frame, charts as SVG, and the page of a comparison."""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

from hades.files import write_whole

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


def state_badge(broken: int, checked: int) -> str:
    """Whether rules hold, are broken or were not checked, in a pill."""
    if broken:
        return badge(f"{broken} broken", "bad")
    return badge("holds", "good") if checked else badge("not checked", "idle")


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


Found = Mapping[str, Any]
_MOST_ROWS = 15
_SIDES = ("before", "after")


def write_comparison_page(path: Path, found: Found) -> Path:
    """Write the page of a comparison and say where it is."""
    before, after = (f"<code>{escape(found[side])}</code>" for side in _SIDES)
    decide = prose(f"Let it serve: `hades promote {found['after']}`; remove it: `hades discard {found['after']}`.")
    return write(path, "Two graphs compared", f"{before} → {after}", _body(found), decide)


def _body(found: Found) -> Iterator[str]:
    documents, topics, standing = found["documents"], found["topics"], found["standing"]
    changed = [f"{number(documents[one]['count'])} {one}" for one in documents if documents[one]["count"]]
    yield tiles(
        [
            (number(sum(one["count"] for one in documents.values())), "documents differ", ""),
            (*_came("nodes", found["nodes"]), ""),
            (*_came("edges", found["relations"]), ""),
            (number(found["weights"]["moved"]), "weights moved", ""),
            (number(topics["moved"]), "entities moved topic", ""),
            (number(standing.get("changed", 0)), f"of {standing.get('asked', 0)} standing answers changed", ""),
        ]
    )
    if standing.get("answers"):
        columns = ("question", "change", "before", "after")
        rows = [tuple(escape(one[name]) for name in columns) for one in standing["answers"]]
        yield section("Standing questions", "answers that differ", table(columns, rows))
    yield _topics(topics)
    yield _weights(found["weights"])
    yield '<div class="two">' + _counts("Nodes", found["nodes"]) + _counts("Edges", found["relations"]) + "</div>"
    about = ", ".join(changed) or "both graphs are of the same documents"
    rows = [(escape(change), escape(name)) for change, one in documents.items() for name in one["names"][:_MOST_ROWS]]
    yield section("Documents", about, table(("change", "document"), rows) if rows else "")


def _came(what: str, counts: Found) -> tuple[str, str]:
    came, went = (number(sum(one[side] for one in counts.values())) for side in ("added", "removed"))
    return came, f"{what} came, {went} went"


def _counts(title: str, counts: Found) -> str:
    heads = ("before", "after", "added", "removed")
    present = {kind: one for kind, one in counts.items() if one["before"] or one["after"]}
    rows = [(escape(kind), *(number(one[head]) for head in heads)) for kind, one in present.items()]
    return section(title, "by kind", table(("", *heads), rows, numeric=(1, 2, 3, 4)))


def _weights(weights: Found) -> str:
    charts = [
        f"<div><h3>{escape(kind)}</h3>{histogram(f'Weights of {kind}', both['after'], both['before'])}</div>"
        for kind, both in sorted(weights["spread"].items())
    ]
    rows = [
        (escape(one["from"]), escape(one["type"]), escape(one["to"]), f"{one['before']:.3f}", f"{one['after']:.3f}")
        for one in weights["most"][:_MOST_ROWS]
    ]
    moved = table(("from", "relation", "to", "before", "after"), rows, numeric=(3, 4)) if rows else ""
    about = "those that moved most; in the charts the outline is the older graph" if rows else "no weight moved"
    return section("Weights", about, f'<div class="small">{"".join(charts)}</div>', moved)


def _topics(topics: Found) -> str:
    sides = [
        [(escape(one["name"]), number(one["entities"])) for one in topics[side][:_MOST_ROWS]]
        for side in ("came", "went")
    ]
    changes = [came + went for came, went in zip_longest(*sides, fillvalue=("", ""))]
    merged = [
        (escape(", ".join(one["topics"])), escape(one["into"]), number(one["entities"]))
        for one in topics["merged"][:_MOST_ROWS]
    ]
    about = f"{number(topics['before'])} before, {number(topics['after'])} after"
    moves = [
        (escape(one["from"]), escape(one["to"]), number(one["entities"])) for one in topics["flows"] if not one["stays"]
    ]
    listed = table(("came", "entities", "went", "entities"), changes, numeric=(1, 3)) if changes else ""
    listed += table(("merged", "into", "entities"), merged, numeric=(2,)) if merged else ""
    listed += table(("entities left", "for", "entities"), moves[:_MOST_ROWS], numeric=(2,)) if moves else ""
    return section("Topics", about, listed)
