"""How ingestion uses memory: the collector is as it was afterwards, and freed memory leaves the process."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from hades.ingest.workers import collect_seldom

ROOT = Path(__file__).parents[5]
_FREED = """
from pathlib import Path
from hades.ingest.workers import give_back_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

blocks = [bytearray(100_000) for _ in range(3_000)]
kept = [bytearray(100_000)]
held = resident()
del blocks
give_back_memory()
print(held - resident())
"""


def test_the_collector_is_as_it_was_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="stop"), collect_seldom():
        raise ValueError("stop" if gc.get_threshold() > before else "the collector was left alone")
    assert gc.get_threshold() == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_memory_leaves_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", _FREED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 4096 > 200_000_000
