"""Named policies of retries and time limits, so that no task hides a decision of its own."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from hades.errors import QueryTimeout, StoreBusy, StoreUnavailable

TRANSIENT = (StoreBusy, StoreUnavailable, QueryTimeout, OSError)


def is_transient(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again may help: the same bad row stays bad, a busy server does not stay busy."""
    return isinstance(state.result(raise_on_failure=False), TRANSIENT)


# Something else answers: try again soon, then later, then give up.
NETWORK: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [1, 5, 20],
    "retry_condition_fn": is_transient,
    "timeout_seconds": 300,
}
# Hours of work on this machine: repeating it blindly costs more than looking.
HEAVY: dict[str, Any] = {"retries": 0, "timeout_seconds": 6 * 3600}
# Files of this machine: one more try covers a lock held by somebody else.
LOCAL: dict[str, Any] = {
    "retries": 1,
    "retry_delay_seconds": 2,
    "retry_condition_fn": is_transient,
    "timeout_seconds": 900,
}
OF_STAGE = {True: LOCAL, False: HEAVY}  # by whether the stage is light
# A whole build: it goes on from its last good stage when it is started again, so nobody needs to repeat it blindly.
BUILD: dict[str, Any] = {"timeout_seconds": 12 * 3600}
SHARD_THREADS = 2  # each shard already uses every core for its products


def task_runner(name: str) -> TaskRunner[Any]:
    """Where the shards of a stage run: threads of this process, a Dask cluster of this machine, or one by address."""
    if name == "threads":
        return ThreadPoolTaskRunner(max_workers=SHARD_THREADS)
    from prefect_dask.task_runners import DaskTaskRunner

    return DaskTaskRunner(address=None if name == "dask" else name)
