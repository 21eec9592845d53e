"""A nightly build that is killed anywhere: the graph that serves still answers, and the next build ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parent / "nightly_kill_driver.py"


def run(folder, kills, seconds):
    command = [sys.executable, str(DRIVER), str(folder), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + (folder / "child.log").read_text()[-2000:]
    return json.loads(done.stdout)


def expect(report, kills):
    assert report["problems"] == []
    assert report["landed"] >= kills // 2  # the others fell just after the end


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(400)
def test_eight_kills(tmp_path):
    expect(run(tmp_path, 8, 380), 8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_hundred_kills(tmp_path):
    expect(run(tmp_path, 100, 3500), 100)
