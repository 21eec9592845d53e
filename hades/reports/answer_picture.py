"""An answer as a picture: each path a row of names joined by what relates them, and what the turn spent. Plain SVG."""

from __future__ import annotations

from hades.reports.page import escape
from schemas.retrieval import Path, Retrieval

WIDTH, MARGIN = 1180, 24
_ROW, _BOX, _HEAD = 96, 36, 74
_LETTER = 7.4  # width of a letter at this size, on the safe side
_MOST_PATHS, _MOST_LETTERS = 6, 26
_STYLE = (
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
    height = _HEAD + _ROW * max(1, len(paths)) + MARGIN
    rows = [_row(path, _HEAD + place * _ROW) for place, path in enumerate(paths)]
    nothing = "" if paths else _text(MARGIN, _HEAD + 30, "no path; the passages answer", "quiet")
    budget, spent = answer.plan.budget, answer.telemetry
    cost = f"{answer.recipe}: {spent.reads} of {budget.docs_max} reads, {spent.ms:.0f} of {budget.latency_ms} ms"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{escape(answer.query)}</title><style>{_STYLE}</style>{_TIP}"
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f"{_text(MARGIN, 34, answer.query, 'title')}{_text(MARGIN, 56, cost, 'quiet')}{''.join(rows)}{nothing}</svg>\n"
    )


def _row(path: Path, top: float) -> str:
    """One path: boxes for its nodes, an arrow for each edge the way it is stored."""
    names = [_short(node.name) for node in path.nodes]
    widths = [len(name) * _LETTER + 22 for name in names]
    gap = (WIDTH - 2 * MARGIN - sum(widths)) / max(1, len(names) - 1) if len(names) > 1 else 0.0
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
