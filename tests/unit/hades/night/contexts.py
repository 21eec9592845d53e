"""A context to run one stage with, over a store of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hades.night.context import BuildContext
from hades.ports.services import Tracker
from hades.ports.store import GraphStore
from hades.settings.tree import PathSettings


def context_of(
    store: GraphStore, model: str = "m", path: PathSettings = PathSettings(), **more: Any
) -> BuildContext:
    """The context of a stage that registers nothing."""
    return BuildContext(store, Path(), model, path, _no_tracker, **more)


def _no_tracker() -> Tracker:
    raise AssertionError("this stage registers nothing")
