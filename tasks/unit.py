"""How a library call becomes a Prefect task, with or without a server."""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast

from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency
from prefect.flows import Flow
from prefect.futures import PrefectDistributedFuture
from prefect.tasks import Task

from hades.build.release.backup import read_ledgers
from hades.errors import StoreBusy
from hades.ports.services import ProgressReport, silent
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.snapshot.manifest import served
from hades.telemetry.logs import span
from hades.wiring import hold_build, observe, open_store
from tasks.policies import BUILD, TRANSIENT, task_runner

# A unit of work: a Prefect task inside a flow run, the same call with the same retries where there is no server.
# `hades run` on a laptop does not start a server: it runs a flow's own function inside `without_server()`, where
# every unit that the flow calls is a plain call.
logger = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
_shown: ContextVar[ProgressReport | None] = ContextVar("shown", default=None)
_build: ContextVar[_Build | None] = ContextVar("build", default=None)


@contextmanager
def without_server(progress: ProgressReport = silent) -> Iterator[None]:
    """Run units in this thread, without a server, showing progress this way."""
    token = _shown.set(progress)
    try:
        yield
    finally:
        _shown.reset(token)


def progress_here() -> ProgressReport | None:
    """How progress is shown when units run here; None inside a Prefect run."""
    return _shown.get()


class Unit(Task[..., R]):
    """A Prefect task that can do without Prefect."""

    def __call__(self, *args: Any, **kwargs: Any) -> R:  # type: ignore[override]  # one shape, not Prefect's eight
        """Run it: here, or as a task run of the surrounding flow run."""
        if progress_here() is None:
            return cast(R, super().__call__(*args, **kwargs))
        return self._plainly(*args, **kwargs)

    def over(self, items: Iterable[Any], *rest: Any) -> list[R]:
        """Run it for each item, in parallel where the flow's task runner allows it; results in order."""
        if progress_here() is None:
            futures = [self.submit(item, *rest) for item in items]
            return [future.result() for future in futures]
        return [self._plainly(item, *rest) for item in items]

    def _plainly(self, *args: Any, **kwargs: Any) -> R:
        delays = self.retry_delay_seconds
        for attempt in range(self.retries or 0):
            try:
                return self.fn(*args, **kwargs)
            except TRANSIENT as error:
                pause = delays[min(attempt, len(delays) - 1)] if isinstance(delays, list) else float(delays or 0)
                logger.warning("%s: %s; trying again in %s s", self.name, error, pause)
                time.sleep(pause)
        return self.fn(*args, **kwargs)


def run_flow(flow: Flow[P, R], **parameters: Any) -> R:
    """A flow inside a flow: here a plain call, else a run of its own on the task runner of the settings."""
    if progress_here() is not None:
        return cast(Callable[..., R], flow.fn)(**parameters)
    configured = flow.with_options(task_runner=task_runner(load_settings().task_runner))
    return cast(Callable[..., R], configured)(**parameters)


def build_flow(name: str) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """A flow that waits until no other command builds the graph. A server shows the same as a limit of 1."""

    def wrap(function: Callable[P, R]) -> Flow[P, R]:
        @functools.wraps(function)
        def alone(*args: P.args, **kwargs: P.kwargs) -> R:
            if _build.get() is not None:  # a flow inside the one that builds
                return function(*args, **kwargs)
            build = _Build(name, load_settings())
            with build.held:
                build.hold()
                token = _build.set(build)
                try:
                    return function(*args, **kwargs)
                finally:
                    _build.reset(token)

        alone.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]  # of its module
        return Flow(alone, name=name, **BUILD)

    return wrap


@dataclass(frozen=True)
class _Build:
    """A flow that builds, and what it holds while it does."""

    name: str
    settings: Settings
    held: ExitStack = field(default_factory=ExitStack)

    def hold(self) -> None:
        """Wait until nobody else builds this graph."""
        self.held.enter_context(hold_build(f"flow {self.name}", self.settings))
        self.held.enter_context(_limit(self.settings))

    def read_state(self) -> list[object]:
        """What serves, and what every ingest and every stage writes last."""
        with closing(open_store(self.settings, Mode.READ_ONLY)) as store:
            return [served(self.settings.home), read_ledgers(store)]


@contextmanager
def let_others_build() -> Iterator[None]:
    """Let go of the graph while a person is asked; raises `StoreBusy` where somebody else has changed it meanwhile."""
    if (build := _build.get()) is None:
        yield
        return
    before = build.read_state()
    build.held.close()
    yield
    build.hold()
    if build.read_state() != before:
        raise StoreBusy(
            f"the graph was changed by another command while flow {build.name} waited for a person, so the question no "
            "longer stands; nothing was changed by the answer: run it again"
        )


@contextmanager
def _limit(settings: Settings) -> Iterator[None]:
    """A slot of the server's concurrency limit of this graph; nothing where units run here."""
    if progress_here() is not None:
        yield
        return
    graph = settings.arango_database if settings.store == "arango" else str(settings.home.resolve())
    name = f"hades-build-{graph.strip('/').replace('/', '-')}"
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, limit=1)
    with concurrency(name, timeout_seconds=settings.build_wait_seconds, lease_duration=60, strict=True):
        yield


def unit(name: str, policy: dict[str, Any], **options: Any) -> Callable[[Callable[..., R]], Unit[R]]:
    """Make a function a unit under a named policy."""

    def wrap(function: Callable[..., R]) -> Unit[R]:
        return Unit(_time(name, function), name=name, **policy, **options)

    return wrap


def _time(name: str, function: Callable[..., R]) -> Callable[..., R]:
    """The same function, whose report also says how long it took; a span where the settings name a collector."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> R:
        observe(load_settings())
        began = time.perf_counter()
        with span(f"hades.build.{name}"):
            report = function(*args, **kwargs)
        if isinstance(report, dict):
            report["took"] = round(time.perf_counter() - began, 3)
        return report

    return timed


def wait_for(future: PrefectDistributedFuture[Any], timeout_seconds: float = 60.0) -> Any:
    """The result of a delayed task.

    Prefect's own `result` is not notified of a run that the cache answered and waits until its timeout, so the state of
    the run is read every second.
    """
    give_up = time.monotonic() + timeout_seconds
    while not future.state.is_final():
        if time.monotonic() > give_up:
            raise TimeoutError(f"task run {future.task_run_id} did not end; is a worker serving `tasks.retrieval`?")
        future.wait(timeout=1)
    return future.result(timeout=1)
