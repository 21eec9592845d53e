"""Opening a snapshot and asking it loads numpy and nothing heavier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hades.snapshot.publish import publish
from tests.unit.hades.snapshot.homes import chain_store

ROOT = Path(__file__).resolve().parents[4]
HEAVY = ("torch", "prefect", "pyarrow", "pydantic", "arango", "sqlite3", "numba", "hades.stores")
READER = """
import sys
from pathlib import Path
from hades.ports.view import Kind
from hades.snapshot.open import open_snapshot
view = open_snapshot(Path(sys.argv[1]))
start = view.match_names("Thing 1").numbers
found = view.expand(start, direction="any")
view.nodes(found.target), view.edges(found.edge), view.lexical("things", kind=Kind.CHUNK, limit=3)
print(len(found), [name for name in sys.argv[2:] if name in sys.modules])
"""
PUBLISHER = """
import sys
import hades.snapshot.publish
print([name for name in sys.argv[1:] if name in sys.modules])
"""


def test_reading_loads_nothing_heavy(tmp_path: Path) -> None:
    publish(chain_store(tmp_path / "graph.db"), tmp_path)
    assert run(READER, str(tmp_path), *HEAVY) == "2 []"


def test_publishing_loads_no_model_and_no_workflow_engine() -> None:
    assert run(PUBLISHER, "torch", "prefect", "arango", "sqlite3", "hades.stores") == "[]"


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
