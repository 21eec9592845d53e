"""Two pictures of an evaluation: recall against what it reads, and recall against the time it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hades.evaluation.rankings import BASELINES


def draw(document: dict[str, Any], path: Path, k: int) -> Path:
    """One SVG with both; the same figures give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "hades", "font.size": 9}):
        figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
        for axis, (about, value) in zip(
            axes,
            (
                ("documents read (mean)", lambda row: row["reads"]["mean"]),
                ("milliseconds (p50), question embedded", lambda row: row["ms"]["p50"]),
            ),
            strict=True,
        ):
            drawn: Any = axis
            for name, row in document["recipes"].items():
                low, high = row["ci95"][f"recall@{k}"]
                recall = row["recall"][str(k)]
                colour = "0.55" if name in BASELINES else "C0"
                bars = [[recall - low], [high - recall]]
                drawn.errorbar([max(value(row), 0.01)], [recall], yerr=bars, fmt="o", color=colour, capsize=2)
                drawn.annotate(name, (max(value(row), 0.01), recall), xytext=(4, 4), textcoords="offset points")
            axis.set_xscale("log")
            axis.set_xlabel(about)
            axis.grid(True, alpha=0.25)
        axes[0].set_ylabel(f"recall@{k}, 95% interval")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return path
