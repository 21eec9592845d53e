"""The budget of a turn: what it may read and how long it may take, and what it spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass

from hades.telemetry.logs import span
from schemas.plan import CUT_SHORT, Reason

# One turn's ledger: every read, every scanned edge and every millisecond, against the caps of its
# plan. Retrieval requests its reads before it makes them; a request that is cut leaves a reason. A
# cap is therefore a guarantee and not a hint: nothing is read and counted afterwards.


@dataclass(frozen=True)
class Caps:
    """What a turn may spend: documents and edges read, adjacency entries scanned in memory,
    time.
    """

    docs_max: int
    work_max: int
    latency_ms: float


@dataclass
class TurnStage:
    """What one stage spent; `taken` and `given` are candidates in and out, `repeats` those that an
    earlier stage had.
    """

    name: str
    reads: int = 0
    work: int = 0
    ms: float = 0.0
    taken: int = 0
    given: int = 0
    repeats: int = 0
    coverage: float = 0.0
    capped: bool = False
    early_stop: bool = False


# Tests count processor time, which a busy machine does not stretch.
read_clock: Callable[[], float] = time.perf_counter


def budget_seconds() -> float:
    """The clock that the time budget of a turn is counted by: wall time."""
    return read_clock()


Watcher = Callable[[TurnStage], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher of turns", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call the watcher with each stage that ends, in turns opened inside this block of this thread
    or task.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


class Turn:
    """The open account of one question. Stages follow each other; they do not nest."""

    def __init__(
        self,
        caps: Caps,
        clock: Callable[[], float] = budget_seconds,
        *,
        loading_ms: float = 0.0,
    ) -> None:
        """The clock runs from here on and never stops; `loading_ms` is what the process spent
        loading before.
        """
        self.caps = caps
        self.loading_ms = loading_ms
        self.stages: list[TurnStage] = []
        self.reasons: list[Reason] = []
        self.round_trips = 0  # questions to a view over a network
        self.approximate_searches = 0  # that scanned a part of a large collection's vectors
        self.clock = clock
        self._started = clock()
        self._deadline = self._started + caps.latency_ms / 1000
        self._stage_deadline = self._deadline
        self._between = TurnStage("turn")  # what is spent between stages
        self._stage = self._between

    def branch(self) -> Turn:
        """The same account up to here, on the same clock, for an answer that may be given up."""
        branch = copy(self)
        branch.stages, branch.reasons = list(self.stages), list(self.reasons)
        branch._between = branch._stage = copy(self._between)
        return branch

    @contextmanager
    def stage(self, name: str, timeout_ms: float | None = None) -> Iterator[TurnStage]:
        """Account for what happens inside under this name; `expired` is true once its time is
        over.
        """
        stage = TurnStage(name)
        self.stages.append(stage)
        started = self.clock()
        deadline = self._deadline

        if timeout_ms is not None:
            deadline = min(deadline, started + timeout_ms / 1000)

        self._stage, self._stage_deadline = stage, deadline
        with span(f"hades.turn.{name}") as mark:
            try:
                yield stage
            finally:
                stage.ms = (self.clock() - started) * 1000
                self._stage, self._stage_deadline = self._between, self._deadline
                mark.note(
                    reads=stage.reads,
                    work=stage.work,
                    taken=stage.taken,
                    given=stage.given,
                )
                mark.note(capped=stage.capped, early_stop=stage.early_stop)

                if (watcher := _watcher.get()) is not None:
                    watcher(stage)

    @contextmanager
    def limit(self, ms: float) -> Iterator[None]:
        """A shorter time for a part of the open stage."""
        deadline = self._stage_deadline
        self._stage_deadline = min(deadline, self.clock() + ms / 1000)

        try:
            yield
        finally:
            self._stage_deadline = deadline

    def grant_reads(self, requested: int) -> int:
        """How many of these documents may be read; they count as read from now on."""
        allowed = max(0, min(requested, self.caps.docs_max - self.reads_spent))
        self._stage.reads += allowed

        if allowed < requested:
            self.trimmed(Reason.BUDGET_DOCS)

        return allowed

    def count_work(self, entries: int, *, capped: bool = False) -> None:
        """Count adjacency entries that were scanned; callers check `work_left` before."""
        self._stage.work += entries
        if capped:
            self.trimmed(Reason.CAP_EXCEEDED)

    def trimmed(self, reason: Reason) -> None:
        """Note that this stage got less than it requested, and which cap did it."""
        self._stage.capped = True
        self.because(reason)

    def note_early_end(self, reason: Reason) -> None:
        """Note that this stage ended before its caps, because its goal was reached."""
        self._stage.early_stop = True
        self.because(reason)

    def because(self, reason: Reason) -> None:
        """Give a reason; each is given once, in the order in which it came up."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def expired(self) -> bool:
        """Whether this stage's time or the turn's is over; loops check this and stop in the
        middle.
        """
        if self.clock() < self._stage_deadline:
            return False

        self._stage.early_stop = True
        self.because(Reason.TIMEOUT)
        return True

    def has_time(self, ms: float) -> bool:
        """Whether this much of the turn's time is left, whatever the stage's; the reason is given
        where it is not.
        """
        if self._deadline - self.clock() > ms / 1000:
            return True

        self._stage.early_stop = True
        self.because(Reason.TIMEOUT)
        return False

    @property
    def is_cut_short(self) -> bool:
        """Whether time or reads ran out, so that not all was searched that the plan asks for."""
        return not CUT_SHORT.isdisjoint(self.reasons)

    @property
    def current(self) -> TurnStage:
        """The stage that is open, for callers that count candidates; between stages, the turn
        itself.
        """
        return self._stage

    @property
    def ms_left(self) -> float:
        """Milliseconds until this stage must end."""
        return max(0.0, (self._stage_deadline - self.clock()) * 1000)

    @property
    def ms(self) -> float:
        """Milliseconds since the turn began, without what was loaded meanwhile."""
        return (self.clock() - self._started) * 1000

    @property
    def reads_left(self) -> int:
        """Documents that may still be read."""
        return self.caps.docs_max - self.reads_spent

    @property
    def work_left(self) -> int:
        """Adjacency entries that may still be scanned."""
        return self.caps.work_max - self.work_spent

    @property
    def reads_spent(self) -> int:
        """Documents and edges read so far."""
        return self._between.reads + sum(stage.reads for stage in self.stages)

    @property
    def work_spent(self) -> int:
        """Adjacency entries scanned so far."""
        return self._between.work + sum(stage.work for stage in self.stages)
