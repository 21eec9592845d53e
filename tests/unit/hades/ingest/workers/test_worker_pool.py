"""Worker processes: results in order, errors that say what happened, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hades.errors import HadesError
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.ingest.sources import documents as converted_files
from hades.ingest.sources import workspace
from hades.ingest.sources.confined import ConfinedPool
from hades.ingest.sources.material import RejectReason
from hades.ingest.workers import WorkerDied, WorkerPool
from tests.unit.hades.ingest import worker_calls
from tests.unit.hades.ingest.corpora import new_context

ROOT = Path(__file__).parents[5]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_inputs(workers: int) -> None:
    with WorkerPool(workers) as pool:
        assert list(pool.map(worker_calls.square, ((number,) for number in range(20)))) == [n * n for n in range(20)]


def test_one_worker_is_this_process_and_two_are_others() -> None:
    with WorkerPool(1) as alone, WorkerPool(2) as two:
        assert list(alone.map(worker_calls.process_id, [()])) == [os.getpid()]
        assert os.getpid() not in list(two.map(worker_calls.process_id, [(), (), ()]))


def test_inputs_are_read_only_as_far_as_workers_need_them() -> None:
    taken: list[int] = []

    def inputs() -> Iterator[tuple[int]]:
        for number in range(1000):
            taken.append(number)
            yield (number,)

    with WorkerPool(2) as pool:
        results = pool.map(worker_calls.square, inputs())
        assert next(results) == 0
        assert len(taken) <= 4


def test_children_that_are_idle_end_and_new_ones_do_the_next_work() -> None:
    with WorkerPool(2) as pool:
        before = set(pool.map(worker_calls.process_id, [()]))
        pool.end_idle_children()
        after = set(pool.map(worker_calls.process_id, [(), ()]))
        assert before.isdisjoint(after)
        assert os.getpid() not in after


def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    with WorkerPool(2) as pool, pytest.raises(HadesError, match="document d1 has no text"):
        list(pool.map(worker_calls.refuse, [("d1",)]))


def test_an_error_that_cannot_be_sent_keeps_its_words() -> None:
    with WorkerPool(2) as pool, pytest.raises(HadesError, match=f"Unusable: {RejectReason.EMPTY}: no text"):
        list(pool.map(worker_calls.find_unusable, [()]))


def test_a_worker_that_dies_is_named_with_what_to_do() -> None:
    with WorkerPool(2) as pool, pytest.raises(WorkerDied, match=r"status -9 in .*:die.*HADES_INGEST_WORKERS=1"):
        list(pool.map(worker_calls.die, [()]))


def test_a_closed_pool_leaves_no_process() -> None:
    with WorkerPool(2) as pool:
        children = set(pool.map(worker_calls.process_id, [()] * 8))
    assert children
    assert not any(_is_alive(child) for child in children)


def test_workers_end_with_a_parent_that_is_killed() -> None:
    """A parent that has no time to clear up: the workers see the end of their input and end too."""
    code = (
        "from tests.unit.hades.ingest import worker_calls\n"
        "from hades.ingest.workers import WorkerPool\n"
        "pool = WorkerPool(2)\n"
        "print(*pool.map(worker_calls.process_id, [()] * 4), flush=True)\n"
        "input()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **pipes) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        children = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
        said = parent.stderr.read()  # the workers have this pipe too: it ends when the last of them has ended
    assert children
    assert said == ""


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 3])
def test_files_are_parsed_by_as_many_processes_as_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    sizes: list[int] = []

    class SizedPool(ConfinedPool):
        def __init__(self, function: str, size: int) -> None:
            sizes.append(size)
            super().__init__(function, size)

    monkeypatch.setattr(workspace, "ConfinedPool", SizedPool)
    monkeypatch.setattr(converted_files, "ConfinedPool", SizedPool)
    folder = _write_workspace(tmp_path / "shop")
    (folder / "guide.md").write_text("# Guide\n\nThe Analytical Engine reads parts.\n")
    api = Ingest(replace(new_context(tmp_path / "home"), workers=workers))
    api.workspace(folder, [Phase.NODES], history=False)
    api.documents(folder, [Phase.NODES])
    assert sizes == [workers, workers]


def test_children_that_were_ended_are_started_again_when_they_are_needed() -> None:
    with WorkerPool(2) as pool:
        before = set(pool.map(worker_calls.process_id, [(), ()]))
        pool.end_children()
        assert before.isdisjoint(pool.map(worker_calls.process_id, [(), ()]))
        assert not any(map(_is_alive, before))


def test_little_work_is_done_in_this_process() -> None:
    with WorkerPool(2) as pool:
        few = [(10, ()), (10, ())]
        assert list(pool.map_large(worker_calls.process_id, few, 20)) == [os.getpid(), os.getpid()]
        assert os.getpid() not in list(pool.map_large(worker_calls.process_id, few, 19))


def _write_workspace(folder: Path) -> Path:
    folder.mkdir()
    for number in range(6):
        before = f"from module{number - 1} import Reader{number - 1}\n" if number else ""
        base = f"Reader{number - 1}" if number else "object"
        text = (
            f'{before}\n\nclass Reader{number}({base}):\n    """Reads part {number} of the Analytical Engine."""\n\n'
            f"    def read_part(self, path):\n        return self.open(path).read({number})\n\n"
            f"    def open(self, path):\n        return open(path)\n"
        )
        (folder / f"module{number}.py").write_text(text)
    (folder / "README.md").write_text("# Shop\n\n`Reader3` reads what Charles Babbage wrote.\n")
    return folder
