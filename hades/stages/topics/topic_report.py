"""What a build of the hierarchy did, for people and for the stages after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Moving:
    """A topic whose members changed, and the share of its members of both builds that are not in both."""

    cluster: str
    share: float


@dataclass(frozen=True)
class TopicSize:
    """One topic, for the list of the biggest."""

    cluster: str
    name: str
    size: int


@dataclass(frozen=True)
class HierarchyReport:
    """Which way was taken and why, what there is now, and what moved.

    `moved` counts entities that left one topic for another, `placed` those that had none. `moving` names the topics
    whose members changed; `changed_since_full` and `entities_at_full` are what the next build decides by.
    """

    mode: Literal["full", "incremental", "skipped"]
    why: str
    build: str = ""
    generation: str = ""
    entities: int = 0
    topics: int = 0
    supertopics: int = 0
    noise: int = 0
    unplaced: int = 0
    moved: int = 0
    placed: int = 0
    gone: int = 0
    topics_new: int = 0
    topics_gone: int = 0
    topics_kept: int = 0
    drift: float = 0.0
    moving: tuple[Moving, ...] = ()
    biggest: tuple[TopicSize, ...] = ()
    summaries_written: int = 0
    params: str = ""
    entities_at_full: int = 0
    changed_since_full: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            **asdict(self),
            "moving": [asdict(one) for one in self.moving],
            "biggest": [asdict(one) for one in self.biggest],
        }

    def as_record(self) -> dict[str, Any]:
        """As the ledger keeps it: without the seconds, so that equal builds leave equal rows."""
        return {name: value for name, value in self.as_dict().items() if name != "seconds"}


class Stopwatch:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add what passes inside to a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - began, 3)
