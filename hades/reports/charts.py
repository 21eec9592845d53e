"""Charts as inline SVG: each has a title and a description for those who cannot see it, and a tooltip a mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from hades.reports.page import escape, number, seconds

WIDTH = 1000.0
_ROW = 24.0
_LABEL = 250.0
_PITCH = 18.0  # the least that two names need
_END = "\0"


@dataclass(frozen=True)
class Bar:
    """A named amount; `note` stands after the number."""

    name: str
    value: float
    note: str = ""


@dataclass(frozen=True)
class Move:
    """How many went from one place to another."""

    source: str
    target: str
    count: int


def bar_chart(title: str, bars: Sequence[Bar], largest: float | None = None, width: float = WIDTH / 2) -> str:
    """Amounts side by side, as they come; `largest` is what fills the width, by default the largest of them."""
    label = min(_LABEL, width * 0.42)
    room = width - label - 96
    largest = largest or max((bar.value for bar in bars), default=0) or 1
    marks = []
    for place, bar in enumerate(bars):
        top, length = place * _ROW, max(1.5, room * bar.value / largest)
        told = f"{number(bar.value)}{f' {bar.note}' if bar.note else ''}"
        marks.append(
            f"<g><title>{escape(bar.name)}: {escape(told)}</title>"
            f'<text x="{label - 10:.1f}" y="{top + 15:.1f}" text-anchor="end">{escape(_clip(bar.name, label))}</text>'
            f'<rect class="mark" x="{label:.1f}" y="{top + 4:.1f}" width="{length:.1f}" height="15" rx="3"/>'
            f'<text class="soft num" x="{label + length + 7:.1f}" y="{top + 15:.1f}">{escape(told)}</text></g>'
        )
    told = "; ".join(f"{bar.name} {number(bar.value)}" for bar in bars[:10])
    return _svg(title, told, width, max(1, len(bars)) * _ROW, marks)


def waterfall(title: str, bars: Sequence[Bar]) -> str:
    """Durations one after the other, where the time of a build went, with a note on what it went for."""
    total = sum(bar.value for bar in bars) or 1
    label, room, told_at = 110.0, 330.0, 540.0
    begins = [0.0, *accumulate(bar.value for bar in bars)]
    marks = []
    for place, (bar, begin) in enumerate(zip(bars, begins, strict=False)):
        top, left, length = place * _ROW, label + room * begin / total, max(2.0, room * bar.value / total)
        note = _clip(bar.note, WIDTH - told_at + 40)
        marks.append(
            f"<g><title>{escape(bar.name)}: {seconds(bar.value)} {escape(bar.note)}</title>"
            f'<text x="{label - 10:.1f}" y="{top + 15:.1f}" text-anchor="end">{escape(_clip(bar.name, label))}</text>'
            f'<rect class="track" x="{label:.1f}" y="{top + 4:.1f}" width="{room:.1f}" height="15" rx="3"/>'
            f'<rect class="mark" x="{left:.1f}" y="{top + 4:.1f}" width="{length:.1f}" height="15" rx="3"/>'
            f'<text class="num" x="{told_at - 20:.1f}" y="{top + 15:.1f}" text-anchor="end">{seconds(bar.value)}</text>'
            f'<text class="soft" x="{told_at:.1f}" y="{top + 15:.1f}">{escape(note)}</text></g>'
        )
    told = "; ".join(f"{bar.name} {seconds(bar.value)}" for bar in bars)
    return _svg(title, told, WIDTH, max(1, len(bars)) * _ROW, marks)


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
    return _svg(title, f"{number(sum(counts))} values, half of them below {middle:.2f}", width, height, marks)


def flow_chart(title: str, moves: Sequence[Move], names: tuple[str, str] = ("before", "after")) -> str:
    """Who went where, as bands from left to right; both sides largest first."""
    leaving, arriving = _sums(moves, "source"), _sums(moves, "target")
    top, edge = 26.0, 12.0
    scale = 240.0 / max(1, sum(move.count for move in moves))
    left, right = 300.0, WIDTH - 300.0
    starts = {side: _stack(sums, scale, top) for side, sums in (("l", leaving), ("r", arriving))}
    height = max(places.pop(_END) for places in starts.values())
    marks = [
        f'<text class="soft" x="{left:.0f}" y="12" text-anchor="end">{escape(names[0])}</text>',
        f'<text class="soft" x="{right:.0f}" y="12">{escape(names[1])}</text>',
    ]
    used = {"l": dict.fromkeys(leaving, 0.0), "r": dict.fromkeys(arriving, 0.0)}
    order = {name: place for place, name in enumerate(arriving)}
    for move in sorted(moves, key=lambda one: (list(leaving).index(one.source), order[one.target])):
        thick = move.count * scale
        from_y = starts["l"][move.source] + used["l"][move.source]
        to_y = starts["r"][move.target] + used["r"][move.target]
        used["l"][move.source] += thick
        used["r"][move.target] += thick
        marks.append(_band(left + edge, right - edge, from_y, to_y, thick, move))
    for side, x, anchor, sums in (("l", left, "end", leaving), ("r", right, "start", arriving)):
        for name, count in sums.items():
            y, tall = starts[side][name], max(2.0, count * scale)
            shift, box = (-8, x) if side == "l" else (8, x - edge)
            kind = "mark" if side == "l" else "mark2"
            marks.append(
                f'<g><title>{escape(name)}: {number(count)}</title><rect class="{kind}" x="{box:.1f}" y="{y:.1f}" '
                f'width="{edge}" height="{tall:.1f}" rx="2"/><text x="{x + shift:.1f}" y="{y + tall / 2 + 4:.1f}" '
                f'text-anchor="{anchor}">{escape(_clip(name, 240))} <tspan class="soft num">{number(count)}</tspan>'
                "</text></g>"
            )
    told = "; ".join(f"{number(move.count)} from {move.source} to {move.target}" for move in moves[:10])
    return _svg(title, told, WIDTH, height, marks)


def _band(left: float, right: float, from_y: float, to_y: float, thick: float, move: Move) -> str:
    middle = (left + right) / 2
    path = (
        f"M{left:.1f} {from_y:.2f}C{middle:.1f} {from_y:.2f} {middle:.1f} {to_y:.2f} {right:.1f} {to_y:.2f}"
        f"V{to_y + thick:.2f}C{middle:.1f} {to_y + thick:.2f} {middle:.1f} {from_y + thick:.2f} {left:.1f} "
        f"{from_y + thick:.2f}Z"
    )
    told = f"{number(move.count)} from {move.source} to {move.target}"
    return f'<path class="band" d="{path}"><title>{escape(told)}</title></path>'


def _sums(moves: Sequence[Move], end: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for move in moves:
        name = getattr(move, end)
        sums[name] = sums.get(name, 0) + move.count
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def _stack(sums: Mapping[str, int], scale: float, top: float) -> dict[str, float]:
    """Where each box begins, with room for its name even when it is thin; `_END` is where the last one ends."""
    places, y = {}, top
    for name, count in sums.items():
        places[name] = y
        y += max(count * scale + 8.0, _PITCH)
    return {**places, _END: y}


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


def _svg(title: str, told: str, width: float, height: float, marks: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width:{width:.0f}px"><title>{escape(title)}</title><desc>{escape(told)}</desc>{"".join(marks)}</svg>'
    )
