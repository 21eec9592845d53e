"""The ledger of a turn and its conveyance."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass

from hades.telemetry.logs import span
from schemas.answer import ContextFactor, Conveyance
from schemas.plan import Reason

# One turn's ledger: every read, every scanned edge and every millisecond, against the caps of its plan. Retrieval
# asks before it reads and is told how much it may have; what it is denied leaves a reason. A cap is therefore a
# guarantee and not a hint: nothing is read and counted afterwards.


@dataclass(frozen=True)
class Caps:
    """What a turn may spend: documents and edges read, adjacency entries scanned in memory, time."""

    docs_max: int
    work_max: int
    latency_ms: float


@dataclass
class Stage:
    """What one stage spent; `taken` and `given` are candidates in and out, `repeats` those met before."""

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


read_clock: Callable[[], float] = time.perf_counter  # tests count processor time, which a busy machine does not stretch


def budget_seconds() -> float:
    """The clock that the time budget of a turn is counted by: wall time."""
    return read_clock()


Watcher = Callable[[Stage], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher of turns", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell the watcher of each stage that ends, in turns opened inside this block of this thread or task."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


class Turn:
    """The open account of one question. Stages follow each other; they do not nest."""

    def __init__(self, caps: Caps, clock: Callable[[], float] = budget_seconds, *, loading_ms: float = 0.0) -> None:
        """The clock runs from here on and never stops; `loading_ms` is what the process spent loading before."""
        self.caps = caps
        self.loading_ms = loading_ms
        self.stages: list[Stage] = []
        self.reasons: list[Reason] = []
        self.round_trips = 0  # questions to a view over a network
        self.approximate_searches = 0  # searches by vector that scanned a part of a large collection
        self.clock = clock
        self._began = clock()
        self._deadline = self._began + caps.latency_ms / 1000
        self._stage_deadline = self._deadline
        self._outside = Stage("turn")  # what is spent between stages
        self._stage = self._outside

    def branch(self) -> Turn:
        """The same account up to here, on the same clock, for an answer that may be given up."""
        own = copy(self)
        own.stages, own.reasons = list(self.stages), list(self.reasons)
        own._outside = own._stage = copy(self._outside)
        return own

    @contextmanager
    def stage(self, name: str, timeout_ms: float | None = None) -> Iterator[Stage]:
        """Account for what happens inside under this name; `expired` is true once its time is over."""
        stage = Stage(name)
        self.stages.append(stage)
        began = self.clock()
        limit = self._deadline if timeout_ms is None else began + timeout_ms / 1000
        self._stage, self._stage_deadline = stage, min(self._deadline, limit)
        with span(f"hades.turn.{name}") as mark:
            try:
                yield stage
            finally:
                stage.ms = (self.clock() - began) * 1000
                self._stage, self._stage_deadline = self._outside, self._deadline
                mark.note(reads=stage.reads, work=stage.work, taken=stage.taken, given=stage.given)
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

    def reads(self, wanted: int) -> int:
        """How many of these documents may be read; they count as read from now on."""
        allowed = max(0, min(wanted, self.caps.docs_max - self.reads_spent))
        self._stage.reads += allowed
        if allowed < wanted:
            self.trimmed(Reason.BUDGET_DOCS)
        return allowed

    def worked(self, entries: int, *, capped: bool = False) -> None:
        """Count adjacency entries that were scanned; whoever scans asks `work_left` first."""
        self._stage.work += entries
        if capped:
            self.trimmed(Reason.CAP_EXCEEDED)

    def trimmed(self, reason: Reason) -> None:
        """Say that this stage was given less than it wanted, and which cap did it."""
        self._stage.capped = True
        self.because(reason)

    def note_early_end(self, reason: Reason) -> None:
        """Say that this stage stopped before its caps did, because what it wanted was reached."""
        self._stage.early_stop = True
        self.because(reason)

    def because(self, reason: Reason) -> None:
        """Give a reason; each is given once, in the order in which it came up."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def expired(self) -> bool:
        """Whether this stage's time or the turn's is over; loops ask this and stop in the middle."""
        if self.clock() < self._stage_deadline:
            return False
        self._stage.early_stop = True
        self.because(Reason.TIMEOUT)
        return True

    def has_time(self, ms: float) -> bool:
        """Whether this much of the turn's time is left, whatever the stage's; the reason is given where it is not."""
        if self._deadline - self.clock() > ms / 1000:
            return True
        self._stage.early_stop = True
        self.because(Reason.TIMEOUT)
        return False

    @property
    def current(self) -> Stage:
        """The stage that is open, for whoever counts candidates; between stages, the turn itself."""
        return self._stage

    @property
    def ms_left(self) -> float:
        """Milliseconds until this stage must end."""
        return max(0.0, (self._stage_deadline - self.clock()) * 1000)

    @property
    def ms(self) -> float:
        """Milliseconds since the turn began, without what was loaded meanwhile."""
        return (self.clock() - self._began) * 1000

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
        return self._outside.reads + sum(stage.reads for stage in self.stages)

    @property
    def work_spent(self) -> int:
        """Adjacency entries scanned so far."""
        return self._outside.work + sum(stage.work for stage in self.stages)


# Conveyance: how much of what was found reaches the reader, for the time it took. C = (W * R * H / T) * Ctx ** 1.7
# (specification 002), each factor measured from the turn: - W, what: the share of the question's words that the
# answer speaks of. - R, where: the share of the answer's facts (edges of paths, passages) that say document and
# span. - H, who: the share of the evidence offered to the reader's window that fitted into it. - T, time:
# milliseconds taken over the 2,000 of a default turn, whatever the plan allows. - Ctx: the mean of L, what was handed
# on that was not a repeat; I, stages that ran to their own end, neither capped nor cut; A, evidence given over
# evidence asked for; G, seeds that the answer still speaks of. C is 0 when W, R or H is, and when the turn took for
# ever.
ALPHA = 1.7
DEFAULT_TURN_MS = 2000.0


@dataclass(frozen=True)
class ConveyanceParts:
    """What conveyance is computed from: the time taken, and pairs of a part and the whole it is a part of."""

    words: tuple[int, int]
    cited: tuple[int, int]
    fitted: tuple[int, int]
    ms: float
    wanted: tuple[int, int]
    seeds: tuple[int, int]
    stages: Sequence[Stage] = ()
    reach: Sequence[float] = ()


def convey(measured: ConveyanceParts) -> Conveyance:
    """The factors and their product."""
    stages = measured.stages
    taken = sum(stage.taken for stage in stages)
    repeats = sum(stage.repeats for stage in stages)
    undisturbed = sum(not (stage.capped or stage.early_stop) for stage in stages)
    parts = (
        1.0 - _share(repeats, taken, empty=0.0),
        _share(undisturbed, len(stages), empty=1.0),
        _share(*measured.wanted),
        _share(*measured.seeds),
    )
    local, intent, action, ground = parts
    context = ContextFactor(local=local, intent=intent, action=action, ground=ground, value=sum(parts) / len(parts))
    what, where, who = _share(*measured.words), _share(*measured.cited), _share(*measured.fitted)
    time = max(measured.ms, 1.0) / DEFAULT_TURN_MS
    return Conveyance(
        what=what,
        where=where,
        who=who,
        time=time,
        context=context,
        value=conveyance(what, where, who, time, context.value),
        reach=tuple(measured.reach),
    )


def conveyance(what: float, where: float, who: float, time: float, context: float) -> float:
    """(W * R * H / T) * Ctx ** ALPHA; 0 when a factor is missing or the time has no end."""
    if min(what, where, who) <= 0.0 or math.isinf(time) or context <= 0.0:
        return 0.0
    return what * where * who / time * math.pow(context, ALPHA)


def _share(part: float, whole: float, *, empty: float = 0.0) -> float:
    """A part of a whole in [0, 1]; of nothing it is `empty`."""
    return min(1.0, part / whole) if whole > 0 else empty
