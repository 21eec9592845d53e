"""A task is a policy and one library call: decisions stand in the library."""

import ast
from pathlib import Path

import pytest

from tasks import artifacts

TASKS = Path(artifacts.__file__).parent
MACHINERY = {  # how a unit runs, not what it does
    "unit.py": "runs a unit inside Prefect or without a server, and times it",
    "artifacts.py": "shows results where a server can show them",
    "policies.py": "chooses the policy and the task runner",
    "dask_workers.py": "runs shards on the workers of a Dask scheduler",
    "capability.py": "makes tasks from declared capabilities",
}
MEMORY = TASKS.parent / "hades" / "memory"


@pytest.mark.parametrize("path", sorted(TASKS.glob("*.py")), ids=lambda path: path.name)
def test_a_task_decides_nothing(path):
    if path.name in MACHINERY:
        return
    tree = ast.parse(path.read_text("utf-8"))
    decisions = [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp | ast.Match)
    ]
    assert decisions == [], f"{path.name}: move the decision on these lines into the library"


@pytest.mark.parametrize("path", sorted(MEMORY.rglob("*.py")), ids=lambda path: path.name)
def test_memory_has_no_import_for_types_alone(path):
    """An import under TYPE_CHECKING hides a circle from the import contracts."""
    assert "TYPE_CHECKING" not in path.read_text("utf-8")
