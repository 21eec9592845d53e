"""Worker processes: results in order, errors that say what happened, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hades.errors import HadesError
from hades.ingest import chunks as cut_documents
from hades.ingest import edges
from hades.ingest import nodes as node_batches
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase, ingest
from hades.ingest.sources import arxiv, workspace
from hades.ingest.sources import documents as converted_files
from hades.ingest.sources.arxiv import ArxivSource
from hades.ingest.sources.confined import ConfinedPool
from hades.ingest.sources.material import RejectReason
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ingest.workers import WorkerDied, WorkerPool
from tests.unit.hades.ingest import worker_calls
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, contents, new_context

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


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_the_store_holds_the_same_rows_whatever_the_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(cut_documents, "PORTION_BYTES", 300)
    monkeypatch.setattr(cut_documents, "SMALL_BYTES", 0)
    monkeypatch.setattr(edges, "MANY_SYMBOLS", 0)
    folder = _write_workspace(tmp_path / "shop")
    alone, several = (replace(new_context(tmp_path / str(count)), workers=count) for count in (1, workers))
    for context in (alone, several):
        ingest(context, WorkspaceSource(folder))
        ingest(context, Listed(PEOPLE))
    held = contents(several.store)
    assert held == contents(alone.store)
    assert held["imports"]
    assert held["chunk_code_edges"]


def test_papers_read_in_portions_give_the_same_rows_and_the_same_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arxiv, "PORTION_BYTES", 200)
    monkeypatch.setattr(node_batches, "SMALL_BYTES", 0)
    rows = [{"id": f"24.{n % 7}", "title": f"On part {n}", "abstract": "The Analytical Engine. " * 4} for n in range(9)]
    papers, citations = tmp_path / "papers.jsonl", tmp_path / "citations.jsonl"
    papers.write_text("\n".join(["{broken", *map(json.dumps, rows), json.dumps({"id": "9"})]))
    citations.write_text(json.dumps({"src": "24.1", "dst": "24.2"}) + '\n{"src": 1}\n{"src": "7.7", "dst": "24.2"}')
    alone, several = (replace(new_context(tmp_path / str(count)), workers=count) for count in (1, 2))
    reports = [ingest(context, ArxivSource(papers, citations)) for context in (alone, several)]
    assert contents(several.store) == contents(alone.store)
    assert reports[0].set_aside == reports[1].set_aside
    assert [(one["uri"], one["reason"]) for one in reports[1].set_aside] == [
        ("citations.jsonl:2", "malformed"),
        ("papers.jsonl:1", "malformed"),
        ("papers.jsonl:9", "duplicate"),
        ("papers.jsonl:10", "duplicate"),
        ("papers.jsonl:11", "empty"),
        ("citations.jsonl", "malformed"),
    ]
    assert (reports[1].read, reports[1].new) == (7, 7)
    assert [row["type"] for row in contents(several.store)["relations"]].count("cites") == 1


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


def test_a_worker_that_dies_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_documents, "SMALL_BYTES", 0)
    monkeypatch.setattr(cut_documents, "cut_bytes", worker_calls.die_of)
    context = replace(new_context(tmp_path), workers=2)
    ingest(context, Listed(PEOPLE), [Phase.NODES])
    before = contents(context.store)
    with pytest.raises(WorkerDied, match="worker process"):
        ingest(context, Listed(PEOPLE))
    assert contents(context.store) == before


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
