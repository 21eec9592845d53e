"""Every cell of the notebook tutorial runs, and shows what its text says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.homes import live_in
from tests.patience import HANG_SECONDS
from tests.registry_template import put_new_registry

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorial_notebook.ipynb"


@pytest.mark.integration
def test_the_notebook_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    put_new_registry(tmp_path / "home" / "mlflow.db")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=HANG_SECONDS, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [
        output.get("text") or output["data"]["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    assert "SQLite" in shown[-5]
    assert "relation" in shown[-2]
    assert shown[-3].startswith("**Stores** [1]\n\nThe default store is SQLite.")
    assert "Thursdays" in shown[-1]
