"""A nightly build that is killed anywhere: the graph that serves still answers, and the next build ends."""

import pytest

from tests.integration.drivers import run_driver


def run(folder, programs, kills):
    return run_driver(programs, "nightly_kill_driver.py", folder, kills, log=folder / "child.log")


def expect(report, kills):
    assert report["problems"] == []
    assert report["landed"] == kills


@pytest.mark.slow
@pytest.mark.integration
def test_a_kill(tmp_path, programs):
    expect(run(tmp_path, programs, 1), 1)


@pytest.mark.soak
def test_a_hundred_kills(tmp_path, programs):
    expect(run(tmp_path, programs, 100), 100)
