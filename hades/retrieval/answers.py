"""An open graph that answers: the view, kept as fresh as the pointer, and what a turn needs beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from hades.errors import HadesError
from hades.ports.clock import utc_now
from hades.ports.view import GraphView
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.plan import clamp
from hades.retrieval.recipes import DEFAULT, MODES
from schemas.intervals import Mask
from schemas.plan import Plan
from schemas.retrieval import Retrieval


class Answers:
    """Answers questions of one graph. A snapshot that is published meanwhile serves from the next question on."""

    def __init__(
        self,
        open_view: Callable[[], GraphView],
        version: Callable[[], str],
        tools: Tools,
        plan: Plan = Plan(),
        now: Callable[[], datetime] = utc_now,
        open_version: Callable[[str], GraphView] | None = None,
    ) -> None:
        self.tools, self.plan = tools, plan
        self._open_version = open_version
        self._open_view, self._version, self._now = open_view, version, now
        self._view: GraphView | None = None
        self._opened = ""

    @property
    def view(self) -> GraphView:
        """The newest published graph."""
        newest = self._version()
        if self._view is None or newest != self._opened:
            opened = self._open_view()
            if self._view is not None:
                self._view.close()
            self._view, self._opened = opened, newest
        return self._view

    def retrieve(
        self,
        text: str,
        *,
        recipe: str = DEFAULT,
        plan: Plan | Mapping[str, Any] | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        max_paths: int | None = None,
        mode: str = MODES[0],
        near: Sequence[str] = (),
        domain: str | None = None,
    ) -> Retrieval:
        """Answer a question; a plan given as a mapping is lowered to its profile's caps, with the reason in it."""
        chosen = self.plan if plan is None else plan if isinstance(plan, Plan) else clamp(plan)
        mask = Mask(as_of, known_at)
        return retrieve(
            self.view,
            text,
            self.tools,
            at=self._now(),
            recipe=recipe,
            plan=chosen,
            mask=mask,
            max_paths=max_paths,
            mode=mode,
            near=near,
            domain=domain,
        )

    def as_published(self, snapshot: str) -> Answers:
        """The same over a named snapshot, which opens or is refused; the caller closes it."""
        if self._open_version is None:
            raise HadesError(f"this view reads the graph as it is now, so snapshot {snapshot} cannot be asked")
        opened = self._open_version(snapshot)
        return Answers(lambda: opened, lambda: snapshot, self.tools, self.plan, self._now)

    def close(self) -> None:
        """Give back files and connections."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
