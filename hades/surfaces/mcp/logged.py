"""Answers whose turns are kept, so that what an agent asked can be explained and judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hades.ports.clock import utc_now
from hades.ports.view import GraphView
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.query_log import log_of
from hades.surfaces.access.turn_log import TurnLog
from schemas.retrieval import Retrieval


class LoggedAnswers(Answers):
    """The answers of another, each turn noted on the way."""

    def __init__(self, inner: Answers, turns: TurnLog) -> None:
        self._inner, self._turns = inner, turns
        self.tools, self.plan = inner.tools, inner.plan

    @property
    def view(self) -> GraphView:
        """See `Answers.view`."""
        return self._inner.view

    @contextmanager
    def lease(self) -> Iterator[GraphView]:
        """See `Answers.lease`."""
        with self._inner.lease() as view:
            yield view

    def retrieve(self, text: str, **asked: Any) -> Retrieval:
        """See `Answers.retrieve`."""
        found = self._inner.retrieve(text, **asked)
        self._turns.add(log_of(found, utc_now()))
        return found

    def as_published(self, snapshot: str) -> Answers:
        """See `Answers.as_published`."""
        return LoggedAnswers(self._inner.as_published(snapshot), self._turns)

    def close(self) -> None:
        """See `Answers.close`."""
        self._inner.close()
