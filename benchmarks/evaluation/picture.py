"""Recall by reads and by time, as one picture."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.evaluation.rankers import BASELINES, PLACED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
_COSTS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("documents read (mean)", lambda row: float(row["reads"]["mean"])),
    ("milliseconds (p50), question embedded", lambda row: float(row["ms"]["p50"])),
)
_LEAST = 0.01  # a logarithmic axis has no zero


def draw(document: dict[str, Any], path: Path, k: int) -> list[Path]:
    """Recall by reads and by time in one SVG, same bytes for same figures; none without matplotlib
    (extra `flows`).
    """
    if find_spec("matplotlib") is None:
        return []
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "hades", "font.size": 9}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        reads_axis = figure.add_subplot(1, 2, 1)
        right = figure.add_subplot(1, 2, 2, sharey=reads_axis)
        for axis, (about, cost) in zip((reads_axis, right), _COSTS, strict=True):
            for name, row in document["recipes"].items():
                _mark(axis, name, row, max(cost(row), _LEAST), k)
            axis.set_xscale("log")
            axis.set_xlabel(about)
            axis.grid(visible=True, alpha=0.25)
        reads_axis.set_ylabel(f"recall@{k}, 95% interval")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return [path]


def _mark(axis: Axes, name: str, row: Row, cost: float, k: int) -> None:
    """A recipe as a point with its interval; baselines are grey."""
    low, high = row["ci95"][f"recall@{k}"]
    recall = row["recall"][str(k)]
    colour = "0.55" if name in (*BASELINES, *PLACED) else "C0"
    axis.errorbar(
        [cost], [recall], yerr=[[recall - low], [high - recall]], fmt="o", color=colour, capsize=2
    )
    axis.annotate(name, (cost, recall), xytext=(4, 4), textcoords="offset points")
