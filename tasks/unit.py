"""How a library call becomes a Prefect task, with or without a server."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from prefect import runtime, tags
from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency
from prefect.context import FlowRunContext, TaskRunContext
from prefect.flows import Flow
from prefect.futures import PrefectDistributedFuture, as_completed
from prefect.logging import get_run_logger
from prefect.tasks import Task

from hades.errors import SettingsError, StoreBusy
from hades.night.release.backup import read_ledgers
from hades.ports.services import ProgressReport, silent
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.snapshot.pointer import served
from hades.telemetry.logs import set_level, span
from hades.wiring import hold_build, observe, open_store
from tasks.dask_workers import dask_client, run_on_workers
from tasks.policies import BUILD, RETRIED, TRANSIENT, task_runner

# A unit of work: a Prefect task inside a flow run, the same call with the same retries where there
# is no server.
# `hades run` on a laptop does not start a server: it runs a flow's own function inside
# `without_server()`, where every unit that the flow calls is a plain call.
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


def say(line: str, *figures: object) -> None:
    """A line in the log of the run, whatever the level of the other loggers; without a server a
    line at level info.
    """
    is_recorded = progress_here() is None and (TaskRunContext.get() or FlowRunContext.get())
    log = get_run_logger() if is_recorded else logger
    log.info(line, *figures)


class Unit(Task[..., R]):
    """A Prefect task that can do without Prefect."""

    # one shape, not Prefect's eight
    def __call__(self, *args: Any, **kwargs: Any) -> R:  # type: ignore[override]
        """Run it: here, or as a task run of the surrounding flow run."""
        if progress_here() is None:
            return cast(R, super().__call__(*args, **kwargs))
        return self._run_here(*args, **kwargs)

    def over(self, inputs: Iterable[Any], *arguments: Any) -> list[R]:
        """Run it for each item, in parallel where the flow's task runner allows it; results in
        order.
        """
        progress = progress_here()
        if progress is None:
            futures = [self.submit(value, *arguments) for value in inputs]
            for done, _ in enumerate(as_completed(futures), 1):
                say(
                    "%s: %s of %s done",
                    self.name,
                    done,
                    len(futures),
                )

            return [future.result() for future in futures]

        runner = load_settings().task_runner
        shards = list(inputs)
        if runner == "threads" or not shards:
            return [self._run_here(shard, *arguments) for shard in shards]

        run_shard = partial(
            run_unit,
            self.fn.__module__,
            self.fn.__name__,
            arguments,
        )
        show = partial(progress, self.name)
        return run_on_workers(
            runner,
            run_shard,
            shards,
            show,
            logger.warning,
        )

    def _run_here(self, *args: Any, **kwargs: Any) -> R:
        delays = self.retry_delay_seconds
        retried_errors = RETRIED.get(self.retry_condition_fn, TRANSIENT)
        for attempt in range(self.retries or 0):
            try:
                return self.fn(*args, **kwargs)
            except retried_errors as error:
                seconds = (
                    delays[min(attempt, len(delays) - 1)]
                    if isinstance(delays, list)
                    else float(delays or 0)
                )
                logger.warning(
                    "%s: %s; trying again in %s s",
                    self.name,
                    error,
                    seconds,
                )
                time.sleep(seconds)

        return self.fn(*args, **kwargs)


def run_flow(flow: Flow[P, R], **parameters: Any) -> R:
    """A flow inside a flow: here a plain call, else a run of its own on the task runner of the
    settings.
    """
    if progress_here() is not None:
        return cast(Callable[..., R], flow.fn)(**parameters)

    runner = load_settings().task_runner
    configured = flow.with_options(task_runner=task_runner(runner))
    is_address = "://" in runner

    with dask_client(runner, get_run_logger().warning) if is_address else nullcontext():
        return cast(Callable[..., R], configured)(**parameters)


def run_unit(
    module: str,
    name: str,
    arguments: tuple[Any, ...],
    shard: Any,
) -> Any:
    """Run a unit by its name and without a server: what a worker of Dask is given."""
    unit_of_name = getattr(importlib.import_module(module), name)
    with without_server():
        return unit_of_name(shard, *arguments)


def build_flow(name: str) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """A flow that waits until no other command builds the graph. A server shows the same as a limit
    of 1.
    """

    def wrap(function: Callable[P, R]) -> Flow[P, R]:
        @functools.wraps(function)
        def alone(*args: P.args, **kwargs: P.kwargs) -> R:
            if _build.get() is not None:  # a flow inside the one that builds
                return function(*args, **kwargs)

            build = _Build(name, load_settings())
            say(
                "%s: waiting for its turn to build %s",
                name,
                graph_name(build.settings),
            )
            with build.locks:
                build.hold()
                token = _build.set(build)
                try:
                    return function(*args, **kwargs)
                finally:
                    _build.reset(token)

        return graph_flow(name, BUILD)(alone)

    return wrap


def graph_flow(
    name: str,
    policy: dict[str, Any],
) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """A flow whose runs are called by its day and its graph; they and their tasks have a tag of
    the graph.
    """

    def wrap(function: Callable[P, R]) -> Flow[P, R]:
        @functools.wraps(function)
        def tagged(*args: P.args, **kwargs: P.kwargs) -> R:
            with _tags_of_graph():
                return function(*args, **kwargs)

        # names of types are those of its module
        signature = inspect.signature(function, eval_str=True)
        tagged.__signature__ = signature  # type: ignore[attr-defined]
        return Flow(
            tagged,
            name=name,
            flow_run_name=partial(_name_run, name),
            **policy,
        )

    return wrap


def graph_name(settings: Settings) -> str:
    """What people call the graph: its database, or the folder of its home."""
    home = settings.home.resolve()
    folder = home.parent if home.name.startswith(".") else home

    if settings.store == "arango":
        return settings.arango_database

    return folder.name


def _name_run(flow_name: str) -> str:
    """The name of a flow run: what it does, for which day and graph."""
    moment = runtime.flow_run.parameters.get("as_of") or datetime.now(UTC)
    graph = "an unknown graph"  # where the settings are wrong: the flow itself says what is

    with suppress(SettingsError):
        graph = graph_name(load_settings())

    return f"{flow_name} {str(moment)[:10]} of {graph}"


@contextmanager
def _tags_of_graph() -> Iterator[None]:
    """A tag of the graph at this flow run and at every task inside it; nothing without a server."""
    context = FlowRunContext.get()
    if progress_here() is not None or context is None or context.flow_run is None:
        yield
        return

    settings = load_settings()
    set_level(settings.log_level)  # Prefect adds its handler to our loggers, not their level
    tag = f"graph:{graph_name(settings)}"

    with get_client(sync_client=True) as client:
        client.update_flow_run(
            context.flow_run.id,
            tags={*context.flow_run.tags, tag},
        )

    with tags(tag):
        yield


@dataclass(frozen=True)
class _Build:
    """A flow that builds, and what it holds while it does."""

    name: str
    settings: Settings
    locks: ExitStack = field(default_factory=ExitStack)

    def hold(self) -> None:
        """Wait until nobody else builds this graph."""
        self.locks.enter_context(hold_build(f"flow {self.name}", self.settings))
        self.locks.enter_context(_hold_server_limit(self.settings))

    def read_state(self) -> list[object]:
        """What serves, and what every ingest and every stage writes last."""
        with closing(open_store(self.settings, Mode.READ_ONLY)) as store:
            return [served(self.settings.home), read_ledgers(store)]


@contextmanager
def let_others_build() -> Iterator[None]:
    """Let go of the graph while a person is asked; raises `StoreBusy` where somebody else has
    changed it meanwhile.
    """
    if (build := _build.get()) is None:
        yield
        return

    state = build.read_state()
    build.locks.close()
    yield
    build.hold()

    if build.read_state() != state:
        raise StoreBusy(
            f"the graph was changed by another command while flow {build.name} waited for a "
            "person, so the question no "
            "longer stands; nothing was changed by the answer: run it again"
        )


@contextmanager
def _hold_server_limit(settings: Settings) -> Iterator[None]:
    """A slot of the server's concurrency limit of this graph; nothing where units run here."""
    if progress_here() is not None:
        yield
        return

    if settings.store == "arango":
        graph = settings.arango_database
    else:
        graph = str(settings.home.resolve())

    name = f"hades-build-{graph.strip('/').replace('/', '-')}"
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, limit=1)

    with concurrency(
        name,
        timeout_seconds=settings.build_wait_seconds,
        lease_duration=60,
        strict=True,
    ):
        yield


def unit(
    name: str,
    policy: dict[str, Any],
    describe: Callable[[Any], str] = lambda report: "done",
    **options: Any,
) -> Callable[[Callable[..., R]], Unit[R]]:
    """Make a function a unit under a named policy; `describe` says in the log what it did.

    Its runs have its name, where the options give no pattern, and its key is made of it.
    """
    key = name.replace(" ", "-")

    def wrap(function: Callable[..., R]) -> Unit[R]:
        task_options = {
            "task_run_name": name,
            **policy,
            **options,
        }
        named_unit: Unit[R] = Unit(
            _time_and_log(name, function, describe),
            name=name,
            **task_options,
        )
        named_unit.task_key = key
        return named_unit

    return wrap


def _time_and_log(
    name: str,
    function: Callable[..., R],
    describe: Callable[[Any], str],
) -> Callable[..., R]:
    """The same function, which says when it starts and what it did, and whose report also says how
    long it took; a span where the settings name a collector.
    """

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> R:
        observe(load_settings())
        if progress_here() is not None:
            run_name = name
        else:
            run_name = runtime.task_run.name or name

        say("%s: started", run_name)
        began = time.perf_counter()
        with span(f"hades.build.{name}"):
            report = function(*args, **kwargs)

        seconds = time.perf_counter() - began
        say(
            "%s: %s (%.1f s)",
            run_name,
            describe(report),
            seconds,
        )
        if isinstance(report, dict):
            report["took"] = round(seconds, 3)

        return report

    return timed


def wait_for(
    future: PrefectDistributedFuture[Any],
    timeout_seconds: float = 60.0,
) -> Any:
    """The result of a delayed task.

    Prefect's own `result` is not notified of a run that the cache answered and waits until its
    timeout, so the state of the run is read every second.
    """
    deadline = time.monotonic() + timeout_seconds
    while not future.state.is_final():
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"task run {future.task_run_id} did not end; is a worker serving `tasks.retrieval`?"
            )

        future.wait(timeout=1)

    return future.result(timeout=1)
