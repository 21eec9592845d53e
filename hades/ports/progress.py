"""How long work says how far it is; the surface decides what a person sees of it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]  # stage, done, of how many


def silent(stage: str, done: int, total: int | None) -> None:
    """Shows nothing."""
