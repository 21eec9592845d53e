"""A nightly build that is killed anywhere: the graph that serves still answers, and the next build
ends.
"""

import pytest

from tests.integration.drivers import run_driver


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize(
    ("kills", "installation"), [(2, "base"), pytest.param(100, "whole", marks=pytest.mark.soak)]
)
def test_what_serves_answers_after_each_kill_and_the_next_night_ends(
    tmp_path, programs, kills, installation
):
    log = tmp_path / "child.log"
    report = run_driver(programs, "nightly_kill_driver.py", tmp_path, kills, installation, log=log)
    assert report["problems"] == []
    assert report["landed"] == kills
