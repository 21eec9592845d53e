"""Eight processes write versions of one topic: processor time of a version, and whether all are there without a gap.

    python benchmarks/bench_memory_writers.py [--writers 8] [--versions 3000] [--json FILE]

Runs the driver of tests/integration/test_memory_processes.py. Writers wait for one another, so that on a free machine
the clock shows little more than the processor time; a busy machine changes the clock alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DRIVER = ROOT / "tests" / "integration" / "memory_driver.py"


def main() -> None:
    """Write, check, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--versions", type=int, default=3_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = [str(Path(folder) / "graph.db"), str(given.writers), str(given.versions), "1", "0"]
        done = subprocess.run([sys.executable, str(DRIVER), *words], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    body = {
        "writers": given.writers,
        "versions": report["versions"],
        "problems": len(report["problems"] + report["lost"] + report["unreadable"] + report["wrong_latest"]),
        "write_seconds": report["write_seconds"],
        "write_processor_seconds": report["write_processor_seconds"],
        "processor_ms_a_version": round(1_000 * report["write_processor_seconds"] / report["versions"], 2),
    }
    print(json.dumps(body, indent=1))
    if given.json:
        given.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
