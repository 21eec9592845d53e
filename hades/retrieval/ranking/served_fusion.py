"""Which ranking serves the default recipe in a home: the fitted one, or weights by hand where it lost against them.

The flow `evaluate` measures both on the questions of the home and writes what serves, with the reason. The choice names
the fitted ranking that it is about: after an update that brings another one, that one serves until it is measured.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from hades.retrieval.ranking.fitted_files import fusion_model
from models.fusion.infer import FusionModel

log = logging.getLogger(__name__)
CHOICE = "ranking.json"  # under HADES_HOME/evaluation


@dataclass(frozen=True)
class RankingChoice:
    """What serves and why. `model` is the digest of the fitted ranking that was measured, `questions` their file's."""

    is_fitted: bool
    reason: str
    model: str
    questions: str
    n_questions: int


def choice_file(home: Path) -> Path:
    """Where a home keeps its choice."""
    return home / "evaluation" / CHOICE


def write_choice(home: Path, choice: RankingChoice) -> Path:
    """Write the choice in one step, so that a reader sees the old one or the new one."""
    path = choice_file(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(choice), indent=1) + "\n", "utf-8")
    fresh.replace(path)
    return path


def read_choice(home: Path) -> RankingChoice | None:
    """The choice of a home; None where nothing was measured, or, with a warning, where the file cannot be read."""
    path = choice_file(home)
    try:
        return RankingChoice(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s cannot be read: %s; the fitted ranking serves; run `hades run evaluate`", path, error)
        return None


class ServedFusion:
    """The fitted ranking of a home, or None where its choice says that weights by hand serve.

    The file is read again when it changed, so that a running server follows an evaluation.
    """

    def __init__(self, home: Path, fitted: Callable[[], FusionModel | None] = fusion_model) -> None:
        self._home, self._fitted = home, fitted
        self._seen: int | None = None
        self._choice: RankingChoice | None = None

    def __call__(self) -> FusionModel | None:
        """What serves now."""
        model = self._fitted()
        choice = self._read_changed()
        if model is None or choice is None or choice.is_fitted or choice.model != model.digest:
            return model
        return None

    def _read_changed(self) -> RankingChoice | None:
        try:
            changed = choice_file(self._home).stat().st_mtime_ns
        except OSError:
            return None
        if changed != self._seen:
            self._seen, self._choice = changed, read_choice(self._home)
        return self._choice
