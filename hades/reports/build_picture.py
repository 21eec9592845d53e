"""The picture of a build as PNG, for places that show no HTML: time by stage and topics by size."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from typing import Any

from hades.reports.build_page import BuildFacts

_TOPICS = 10
_BLUE, _ORANGE = "#2d6fa3", "#cc7a29"


def draw_build(build: BuildFacts) -> bytes | None:
    """The picture; None where matplotlib, which the extras `flows` and `ranker` bring, is not installed."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    topics = list(build.topics)[:_TOPICS]
    rows = max(len(build.stages), len(topics), 3)
    figure = Figure(figsize=(11.0, 1.2 + 0.34 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_bars(left, "seconds by stage", [(one.name, one.seconds) for one in build.stages], _BLUE, "{:.1f}")
    _draw_bars(
        right, "entities by topic", [(_shorten(one.name), float(one.size)) for one in topics], _ORANGE, "{:,.0f}"
    )
    figure.suptitle(f"{build.build}: {build.snapshot_after or 'not published'}", fontsize=11)
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=90, metadata={"Software": None})
    return drawn.getvalue()


def _draw_bars(panel: Any, title: str, rows: list[tuple[str, float]], colour: str, form: str) -> None:
    places = range(len(rows))
    bars = panel.barh(places, [value for _, value in rows], color=colour)
    panel.bar_label(bars, [form.format(value) for _, value in rows], padding=3, fontsize=8)
    panel.set_yticks(places, [name for name, _ in rows], fontsize=8)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xticks([])
    for side in ("top", "right", "bottom"):
        panel.spines[side].set_visible(False)


def _shorten(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:35]}…"
