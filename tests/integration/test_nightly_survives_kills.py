"""A nightly build that is killed anywhere: the graph that serves still answers, and the next build ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_SECONDS

DRIVER = Path(__file__).parent / "nightly_kill_driver.py"


def run(folder, kills):
    command = [sys.executable, str(DRIVER), str(folder), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + (folder / "child.log").read_text()[-2000:]
    return json.loads(done.stdout)


def expect(report, kills):
    assert report["problems"] == []
    assert report["landed"] == kills


@pytest.mark.slow
@pytest.mark.integration
def test_a_kill(tmp_path):
    expect(run(tmp_path, 1), 1)


@pytest.mark.soak
def test_a_hundred_kills(tmp_path):
    expect(run(tmp_path, 100), 100)
