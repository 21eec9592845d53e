"""Pictures of the distributions, logged with each run; the same report draws the same bytes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hades.stages.weights.weights_report import BINS, WeightReport

FILE = "distributions.png"
_PANELS = {
    "relations": "weights of relations",
    "mentions": "weights of mentions",
    "sim": "similarity of the ends",
    "type_prior": "prior of the type",
    "evidence": "evidence",
    "freshness": "freshness",
}


def draw_distributions(report: WeightReport, path: Path) -> list[Path]:
    """Six histograms over [0, 1] in one picture; none where matplotlib (extra `flows`) is not installed."""
    if find_spec("matplotlib") is None:
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6))
    FigureCanvasAgg(figure)
    figure.suptitle(f"weights as of {report.as_of[:10]}: bias {report.bias:g}, data {report.data_hash[:12]}")
    panels = figure.subplots(2, 3, gridspec_kw={"hspace": 0.35, "wspace": 0.3}).ravel()
    edges = [place / BINS for place in range(BINS + 1)]
    for panel, (name, title) in zip(panels, _PANELS.items(), strict=True):
        counts = report.histograms[name]
        panel.stairs(counts, edges, fill=True, color="#4878a8")
        panel.set_title(title)
        panel.set_xticks([0.0, 0.5, 1.0])
        panel.set_yticks([0, max(counts)])
    figure.savefig(path, dpi=80, metadata={"Software": None})
    return [path]
