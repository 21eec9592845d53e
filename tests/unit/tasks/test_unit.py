"""Units without a server: plain calls with the retries of their policy."""

import pytest

from hades.errors import BadQuery, StoreBusy
from tasks.unit import run_flow, unit, without_server
from tests.homes import settings_of

POLICY = {"retries": 2, "retry_delay_seconds": [0, 0]}


def test_a_unit_here_is_a_plain_call_that_says_how_long_it_took():
    @unit("double", POLICY)
    def double(number: int) -> dict[str, object]:
        return {"number": 2 * number}

    with without_server():
        report = double(4)
        assert double.over([1, 2])[1]["number"] == 4
    assert report["number"] == 8
    assert report["took"] >= 0


def test_what_may_pass_is_tried_again_and_what_cannot_is_not():
    calls = []

    @unit("busy", POLICY)
    def busy(error: type[Exception], times: int) -> int:
        calls.append(error)
        if len(calls) <= times:
            raise error("no")
        return len(calls)

    with without_server():
        assert busy(StoreBusy, 2) == 3
        calls.clear()
        with pytest.raises(StoreBusy):
            busy(StoreBusy, 3)
        assert len(calls) == 3
        calls.clear()
        with pytest.raises(BadQuery):
            busy(BadQuery, 1)
        assert len(calls) == 1


def test_progress_goes_to_whoever_runs_here():
    from tasks.artifacts import progress_of

    seen = []
    with without_server(lambda *told: seen.append(told)):
        progress_of("topics")("reading", 1, 2)
    assert seen == [("reading", 1, 2)]


def test_a_flow_inside_a_flow_is_a_plain_call_here():
    from prefect import flow

    @flow
    def inner(number: int) -> int:
        return number + 1

    with without_server():
        assert run_flow(inner, number=1) == 2


def test_a_unit_says_when_it_starts_and_what_it_did(caplog):
    @unit("count rows", POLICY, lambda count: f"{count} rows")
    def count_rows() -> int:
        return 7

    with caplog.at_level("INFO", logger="tasks"), without_server():
        count_rows()
    started, done = [record.getMessage() for record in caplog.records]
    assert started == "count rows: started"
    assert done.startswith("count rows: 7 rows (")


def test_a_run_is_called_by_the_graph_that_people_know(tmp_path):
    from tasks.unit import graph_name

    assert graph_name(settings_of(tmp_path / "papers")) == "papers"
    assert graph_name(settings_of(tmp_path / "wiki" / ".hades")) == "wiki"


def test_keys_of_tasks_are_their_names():
    from tasks.build import STAGE_TASKS

    assert STAGE_TASKS["topics"].task_key == "build-topics"
    assert len({task.task_key for task in STAGE_TASKS.values()}) == len(STAGE_TASKS)
