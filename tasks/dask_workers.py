"""Shards on the workers of a Dask scheduler: who is missing there is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from hades.errors import SettingsError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10


def run_on_workers(
    runner: str,
    run_shard: Callable[[Any], Any],
    shards: Sequence[Any],
    show: Callable[[int, int], object],
    warn: Callable[[str], object],
) -> list[Any]:
    """What a function returns for each shard, called on the workers; `show` gets how many are done,
    of how many.
    """
    from distributed import as_completed

    with dask_client(runner, warn) as client:
        runs = []
        for shard in shards:
            runs.append(client.submit(run_shard, shard, pure=False))

        for done, _ in enumerate(as_completed(runs, loop=client.loop), 1):
            show(done, len(runs))

        results: list[Any] = client.gather(runs)

    return results


@contextmanager
def dask_client(runner: str, warn: Callable[[str], object]) -> Iterator[Client]:
    """A client of the cluster that HADES_TASK_RUNNER names; `warn` hears that it has no worker, and
    of each one that is lost.
    """
    from distributed import Client

    try:
        client = Client(
            None if runner == "dask" else runner,
            timeout=CONNECT_SECONDS,
            set_as_default=False,
        )
    except OSError as error:
        raise SettingsError(
            f"HADES_TASK_RUNNER={runner}: no Dask scheduler answers there; start `dask scheduler`, "
            "correct the address, or set HADES_TASK_RUNNER=threads to embed here"
        ) from error

    with client:
        if not client.scheduler_info()["workers"]:
            warn(
                f"HADES_TASK_RUNNER={runner}: the scheduler has no worker yet; shards wait until "
                f"one connects (`dask worker {runner}`)"
            )

        client.subscribe_topic("all", partial(_report_lost_worker, warn))
        yield client


def _report_lost_worker(
    warn: Callable[[str], object],
    event: tuple[float, Any],
) -> None:
    detail = event[1]
    if detail.get("action") == "remove-worker" and not detail.get("expected"):
        waiting = len(detail.get("processing-tasks") or ())
        warn(
            f"Dask worker {detail.get('worker')} was lost; its {waiting} unfinished shards run "
            "on the others"
        )
