"""Pictures of a fitted ranker, logged with its run: curves, calibration, and when it abstains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.ranker.calibrate import reliability
from models.ranker.fit_curve import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
CURVES, CALIBRATION, CONFUSION = "curves.png", "calibration.png", "confusion.png"


def draw(
    folder: Path,
    curves: Mapping[str, Curve],
    chances: Floats,
    right: Floats,
    confusion: NDArray[np.int64],
) -> list[Path]:
    """Three pictures; the same figures draw the same bytes."""
    return [
        _curves(folder / CURVES, curves),
        _calibration(folder / CALIBRATION, chances, right),
        _confusion(folder / CONFUSION, confusion),
    ]


def confusion_of(best: Floats, answerable: NDArray[np.bool_], doubt: float) -> NDArray[np.int64]:
    """(2, 2): rows can and cannot be answered, columns were answered and not."""
    answered = best >= doubt
    cells = [[(own & said).sum() for said in (answered, ~answered)] for own in (answerable, ~answerable)]
    return np.array(cells, np.int64)


def _curves(path: Path, curves: Mapping[str, Curve]) -> Path:
    figure = _figure(12.0, 4.0)
    panels = np.atleast_1d(figure.subplots(1, max(1, len(curves)))).ravel()
    for panel, (name, curve) in zip(panels, curves.items(), strict=False):
        panel.plot(curve.fitted, label="fitted")
        panel.plot(curve.held, label="held out")
        panel.set_title(name)
    panels[0].legend()
    return _save(figure, path)


def _calibration(path: Path, chances: Floats, right: Floats) -> Path:
    figure = _figure(5.0, 5.0)
    panel: Any = figure.subplots()
    bins = reliability(chances, right)
    panel.plot([0, 1], [0, 1], color="#999999")
    panel.plot([one[0] for one in bins], [one[1] for one in bins], marker="o")
    panel.set_xlabel("confidence")
    panel.set_ylabel("share that was right")
    return _save(figure, path)


def _confusion(path: Path, cells: NDArray[np.int64]) -> Path:
    figure = _figure(4.5, 4.0)
    panel: Any = figure.subplots()
    panel.imshow(cells, cmap="Blues")
    for row, column in np.ndindex(cells.shape):
        panel.text(column, row, str(cells[row, column]), ha="center", va="center")
    panel.set_xticks([0, 1], ["answered", "abstained"])
    panel.set_yticks([0, 1], ["can be", "cannot be"])
    return _save(figure, path)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=100, metadata={"Software": None})
    return path
