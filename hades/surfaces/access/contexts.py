"""Local and service call contexts, metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from hades.cache.stores import MIB
from hades.cache.tiers import TieredMemoryManager
from hades.errors import StoreError
from hades.memory.memory import Memory
from hades.ports.services import Embedder, LoadsModel, ProviderError, utc_now
from hades.ports.store import GraphStore, Mode
from hades.retrieval.answer.prompt import WindowSize
from hades.retrieval.answers import Answers, retrieve_version
from hades.retrieval.cached_answers import CachedAnswers
from hades.retrieval.core.types import clamp
from hades.retrieval.turn_result import TurnLog, log_of, read_log, write_log
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.capabilities.capability import JsonReply
from hades.surfaces.capabilities.questions import QueryRequest, turn_arguments
from hades.telemetry import logs as names
from hades.wiring import open_answers, open_embedder, open_hades, open_language_model, open_memory, open_store
from schemas.answer import Retrieval
from schemas.plan import Plan, Profile, Reason
from schemas.telemetry import QueryLog

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.memory.memory import Memory
    from hades.ports.services import ProgressReport


# The context of one command or task in this process: everything is opened when it is first used, and closed.


BUSY_SECONDS = 2.0  # a build may hold the store for longer; the end of a command does not wait for it
LOG_SECONDS = 30.0  # a server may not answer


class LocalContext:
    """See `CallContext`. `answers` gives the graph that a process keeps open; `logs_turns` writes the turns."""

    def __init__(
        self,
        settings: Settings,
        who: str,
        *,
        answers: Callable[[], Answers] | None = None,
        progress: ProgressReport | None = None,
        logs_turns: bool = True,
    ) -> None:
        self.settings, self.who, self.progress = settings, who, progress
        self._lent, self._logs_turns = answers, logs_turns
        self._opened = ExitStack()
        self._turns: list[Retrieval] = []

    @cached_property
    def answers(self) -> Answers:
        """See `CallContext.answers`."""
        if self._lent is not None:
            return self._lent()
        return self._opened.enter_context(open_answers(self.settings, self.embedder))

    @cached_property
    def embedder(self) -> Embedder:
        """See `CallContext.embedder`."""
        return open_embedder(self.settings)

    @cached_property
    def readable(self) -> GraphStore:
        """See `CallContext.readable`."""
        return self._opened.enter_context(closing(open_store(self.settings, Mode.READ_ONLY)))

    @cached_property
    def writable(self) -> GraphStore:
        """See `CallContext.writable`."""
        return self._opened.enter_context(closing(open_store(self.settings, Mode.READ_WRITE)))

    @cached_property
    def memory(self) -> Memory:
        """See `CallContext.memory`."""
        return self._opened.enter_context(open_memory(self.settings))

    def open_hades(self) -> AbstractContextManager[Hades]:
        """See `CallContext.open_hades`."""
        return open_hades(self.settings, progress=self.progress)

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """See `CallContext.ask`."""
        if self._lent is None:
            _load_beside(self.embedder)
        options = turn_arguments(request)
        found = retrieve_version(self.answers, request.query, version, plan=request.plan, window=window, **options)
        if self._logs_turns and found.snapshot:
            self._turns.append(found)
        return JsonReply(found.model_dump_json().encode(), found.query_id)

    def find_turn(self, query_id: str) -> QueryLog:
        """See `CallContext.find_turn`."""
        return read_log(self.readable, query_id)

    def flush_turns(self) -> None:
        """See `CallContext.flush_turns`."""
        self.log_turns()

    def close(self) -> None:
        """Log the turns and close what was opened."""
        self.log_turns()
        self._opened.close()

    def log_turns(self) -> str:
        """Write the turns that are not in the store yet, unless another writer holds it; a sentence where that failed.

        The answer can be shown before: opening the store to write takes a tenth of the time of a first answer.
        """
        turns, self._turns = self._turns, []
        if not turns:
            return ""
        problem: list[str] = [f"the store did not answer within {LOG_SECONDS:g} s"]

        def write() -> None:
            try:
                with closing(open_store(self.settings, Mode.READ_WRITE, BUSY_SECONDS)) as store:
                    for found in turns:
                        write_log(store, log_of(found, utc_now()))
                problem.clear()
            except StoreError as error:
                problem[:] = [str(error)]

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(LOG_SECONDS)
        return f"The turn was not logged, so it cannot be judged or explained: {problem[0]}" if problem else ""


def _load_beside(embedder: Embedder) -> None:
    """Load the model in a thread while the caller imports what asks it; a model that cannot load is reported later.

    Not a daemon: a process must not end inside the library that loads.
    """

    def load(model: LoadsModel) -> None:
        with suppress(ProviderError):
            model.load()

    if isinstance(embedder, LoadsModel):
        threading.Thread(target=load, args=(embedder,)).start()


@contextmanager
def local_context(
    who: str | None = None, *, settings: Settings | None = None, progress: ProgressReport | None = None
) -> Iterator[LocalContext]:
    """The context of one command; `who` is the user of this session unless named."""
    import getpass

    context = LocalContext(settings or load_settings(), who or getpass.getuser(), progress=progress)
    try:
        yield context
    finally:
        context.close()


# Questions asked through a service: limited to online caps, answered from the cache where possible, logged.


OFFERED = (Profile.ONLINE, Profile.AGENT, Profile.PATHS)  # the others are for builds and evaluation


class Questions:
    """Answers the questions of a service through its cache."""

    def __init__(self, cached: CachedAnswers, turns: TurnLog) -> None:
        self.cached, self.turns = cached, turns

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """The answer, from the cache or computed."""
        plan = None if request.plan is None else limit_plan(request.plan)
        turn = self.cached.ask(request.query, version=version, plan=plan, window=window, **turn_arguments(request))
        return JsonReply(turn.text, turn.query_id, tier=turn.tier.name)

    def close(self) -> None:
        """Write what is left of the log and the cache."""
        self.turns.close()
        self.cached.close()


def open_questions(
    settings: Settings,
    mode: Mode,
    answers: Answers,
    turns: TurnLog,
    cache_bytes: int,
    on_answer: Callable[[Retrieval], None] = lambda answer: None,
) -> Questions:
    """The questions of a service with its own cache in RAM; a read-only service writes no cache to disk."""
    tiers = settings.cache.model_copy(update={"ram_cache_size_mb": cache_bytes / MIB})
    memory = TieredMemoryManager(tiers, home=settings.home, uses_disk=mode is not Mode.READ_ONLY)
    cached = CachedAnswers(
        answers,
        memory if settings.pathrag.enable_caching else None,
        tenant=settings.tenant or "",
        max_cache_paths=settings.pathrag.max_cache_paths,
        log=turns.add,
        on_answer=on_answer,
    )
    return Questions(cached, turns)


def limit_plan(plan: Mapping[str, Any]) -> Plan:
    """The plan within the caps that a service offers; a larger profile is lowered to the online one."""
    given = {name: part for name, part in plan.items() if name != "reasons"}  # reasons are the service's to give
    profile = given.get("profile", Profile.ONLINE)
    if profile in OFFERED or profile not in list(Profile):
        return clamp(given)
    return clamp({**given, "reasons": (Reason.PLAN_CLAMPED,)}, Profile.ONLINE)


# The context of one call of a service: what the service keeps open, and who calls.


@dataclass
class ServiceContext:
    """See `CallContext`. A call that only reads never gets a handle that could write."""

    settings: Settings
    who: str
    mode: Mode
    answers: Answers
    readable: GraphStore
    writable_store: GraphStore | None
    questions: Questions

    @property
    def embedder(self) -> Embedder:
        """See `CallContext.embedder`."""
        embedder = self.answers.tools.embedder
        assert embedder is not None
        return embedder

    @property
    def writable(self) -> GraphStore:
        """See `CallContext.writable`."""
        assert self.writable_store is not None
        return self.writable_store

    @cached_property
    def memory(self) -> Memory:
        """See `CallContext.memory`."""
        reads = self.mode is Mode.READ_ONLY
        return Memory(
            self.readable if reads else self.writable,
            self.answers.tools.embedder,
            language_model=None if reads else open_language_model(self.settings),
            tokenizer=self.answers.tools.tokenizer,
            home=self.settings.home,
        )

    def open_hades(self) -> AbstractContextManager[Hades]:
        """See `CallContext.open_hades`."""
        return open_hades(self.settings)

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """See `CallContext.ask`."""
        return self.questions.ask(request, version, window)

    def find_turn(self, query_id: str) -> QueryLog:
        """See `CallContext.find_turn`."""
        return self.questions.turns.find(query_id)

    def flush_turns(self) -> None:
        """See `CallContext.flush_turns`."""
        self.questions.turns.flush()


# The service's metrics in Prometheus' text form, under the names of `hades.telemetry.logs`.


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """Counts requests and turns of one process; each service has its own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which no dashboard asks
        self._registry = CollectorRegistry()
        self._requests = _counter(names.REQUESTS, self._registry)
        self._request_seconds = _histogram(names.REQUEST_SECONDS, names.SECONDS_BUCKETS, self._registry)
        self._turn_seconds = _histogram(names.TURN_SECONDS, names.SECONDS_BUCKETS, self._registry)
        self._turn_reads = _histogram(names.TURN_READS, names.READS_BUCKETS, self._registry)
        self._reasons = _counter(names.REASONS, self._registry)
        self._age = _gauge(names.SNAPSHOT_AGE_SECONDS, self._registry)
        self._snapshot = _gauge(names.SNAPSHOT_INFO, self._registry)
        self._hits = _counter(names.CACHE_HITS, self._registry)
        self._bytes = _gauge(names.CACHE_BYTES, self._registry)

    def request(self, mode: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(mode, route, str(status)).inc()
        self._request_seconds.labels(mode, route).observe(seconds)

    def turn(self, answer: Retrieval) -> None:
        """Count a turn that was worked out."""
        for stage in answer.telemetry.stages:
            self._turn_seconds.labels(answer.recipe, stage.name).observe(stage.ms / 1000)
        self._turn_seconds.labels(answer.recipe, "turn").observe(answer.telemetry.ms / 1000)
        self._turn_reads.labels(answer.recipe).observe(answer.telemetry.reads)
        for reason in answer.reasons:
            self._reasons.labels(str(reason)).inc()

    def hit(self, tier: str) -> None:
        """Count an answer that a cache gave."""
        self._hits.labels(tier).inc()

    def follow_bytes(self, tier: str, size: Callable[[], float]) -> None:
        """Ask a cache for its size at each scrape."""
        self._bytes.labels(tier).set_function(size)

    def serves(self, snapshot: str, published: datetime | None, now: datetime) -> None:
        """Say which snapshot serves and how old it is."""
        self._snapshot.clear()
        if snapshot:
            self._snapshot.labels(snapshot).set(1)
        if published is not None:
            self._age.set(max(0.0, (now - published).total_seconds()))

    def text(self) -> bytes:
        """Everything, as a scrape reads it."""
        return generate_latest(self._registry)


def _counter(metric: names.Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.name, metric.says, metric.labels, registry=registry)


def _gauge(metric: names.Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.name, metric.says, metric.labels, registry=registry)


def _histogram(metric: names.Metric, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(metric.name, metric.says, metric.labels, buckets=buckets, registry=registry)
