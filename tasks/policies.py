"""Named policies of retries and time limits, so that no task hides a decision of its own."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from hades.errors import QueryTimeout, StoreBusy, StoreUnavailable

BUSY: tuple[type[Exception], ...] = (StoreBusy, StoreUnavailable, QueryTimeout)
TRANSIENT: tuple[type[Exception], ...] = (*BUSY, OSError)


def is_busy(
    task: Task[Any, Any],
    run: TaskRun,
    state: State[Any],
) -> bool:
    """Whether the store was busy or away: a stage writes its rows in one transaction, so nothing is
    done twice.
    """
    return isinstance(state.result(raise_on_failure=False), BUSY)


def is_transient(
    task: Task[Any, Any],
    run: TaskRun,
    state: State[Any],
) -> bool:
    """Whether trying again may help: the same bad row stays bad, a busy server does not stay
    busy.
    """
    return isinstance(state.result(raise_on_failure=False), TRANSIENT)


# Something else answers: try again soon, then later, then give up.
NETWORK: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [1, 5, 20],
    "retry_condition_fn": is_transient,
    "timeout_seconds": 300,
}
# Hours of work on this machine: repeated when the store was busy, which passes; repeating anything
# else blindly costs more than looking.
HEAVY: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": [5, 30],
    "retry_condition_fn": is_busy,
    "timeout_seconds": 6 * 3600,
}
# A part of a stage, in a thread where Prefect cannot enforce a time limit; its build has one.
SHARD: dict[str, Any] = {name: rule for name, rule in HEAVY.items() if name != "timeout_seconds"}
# Files of this machine: one more try covers a lock held by somebody else.
LOCAL: dict[str, Any] = {
    "retries": 1,
    "retry_delay_seconds": 2,
    "retry_condition_fn": is_transient,
    "timeout_seconds": 900,
}
OF_STAGE = {True: LOCAL, False: HEAVY}  # by whether the stage is light
# A whole build: it goes on from its last good stage when it is started again, so nobody needs to
# repeat it blindly.
BUILD: dict[str, Any] = {"timeout_seconds": 12 * 3600}
# The errors of each condition, for units without a server.
RETRIED: dict[object, tuple[type[Exception], ...]] = {
    is_busy: BUSY,
    is_transient: TRANSIENT,
}
SHARD_THREADS = 2  # each shard already uses every core for its products


def task_runner(name: str) -> TaskRunner[Any]:
    """Where the shards of a stage run: threads of this process, a Dask cluster of this machine, or
    one by address.
    """
    if name == "threads":
        return ThreadPoolTaskRunner(max_workers=SHARD_THREADS)

    from prefect_dask.task_runners import DaskTaskRunner

    return DaskTaskRunner(address=None if name == "dask" else name)
