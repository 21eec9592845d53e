"""Pictures of the distributions, logged with each run; the same report draws the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hades.stages.weights.weights_report import WeightReport

FILE = "distributions.svg"
_PANELS = {
    "relations": "weights of relations",
    "mentions": "weights of mentions",
    "sim": "similarity of the ends",
    "type_prior": "prior of the type",
    "evidence": "evidence",
    "freshness": "freshness",
}
_WIDTH, _HEIGHT, _GAP, _TOP = 240, 130, 40, 60


def draw_distributions(report: WeightReport, path: Path) -> None:
    """Six histograms over [0, 1] in one picture; plain SVG, because loading a plotting library takes a second."""
    title = f"weights as of {report.as_of[:10]}: bias {report.bias:g}, data {report.data_hash[:12]}"
    marks = [f'<text x="{_GAP}" y="24" font-size="15">{title}</text>']
    for place, (name, told) in enumerate(_PANELS.items()):
        left, top = _GAP + place % 3 * (_WIDTH + _GAP), _TOP + place // 3 * (_HEIGHT + 60)
        marks += _panel(told, report.histograms[name], left, top)
    size = f'width="{_GAP + 3 * (_WIDTH + _GAP)}" height="{_TOP + 2 * (_HEIGHT + 60)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    path.write_text("\n".join([head, f"<title>{title}</title>", *marks, "</svg>", ""]), "utf-8")


def _panel(title: str, counts: Sequence[int], left: int, top: int) -> Iterator[str]:
    """One histogram: a bar a bin, 0, 0.5 and 1 below, the largest count beside."""
    step, largest, base = _WIDTH / len(counts), max(counts) or 1, top + _HEIGHT
    yield f'<text x="{left}" y="{top - 6}">{title}</text>'
    for place, count in enumerate(counts):
        height = _HEIGHT * count / largest
        spot = f'x="{left + place * step:.2f}" y="{base - height:.2f}" width="{step:.2f}" height="{height:.2f}"'
        yield f'<rect {spot} fill="#4878a8"/>'
    yield f'<line x1="{left}" y1="{base}" x2="{left + _WIDTH}" y2="{base}" stroke="#333"/>'
    for share in (0.0, 0.5, 1.0):
        yield f'<text x="{left + share * _WIDTH:.0f}" y="{base + 14}" text-anchor="middle">{share:g}</text>'
    yield f'<text x="{left - 4}" y="{top + 10}" text-anchor="end">{max(counts)}</text>'
