"""Code symbols are summarised by their own documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.ingest.code_graph.corpus import summarise_docstring
from hades.ingest.phases import ingest
from hades.ingest.sources.workspace import WorkspaceSource
from tests.unit.hades.ingest.corpora import new_context

PUMPS = '''"""Pumps of the plant."""


class WaterPump:
    """Lifts water to the roof. It runs at night."""

    def lift_water(self):
        """Lift water and
        say how much arrived."""


def make_pump():
    return WaterPump()
'''


def test_a_symbol_is_summarised_by_the_first_sentence_of_its_documentation(tmp_path: Path) -> None:
    root = tmp_path / "plant"
    root.mkdir()
    (root / "pumps.py").write_text(PUMPS)
    (root / "README.md").write_text("# Plant\n\nWaterPump is a thing that others describe. WaterPump is old.\n")
    context = new_context(tmp_path / "home")
    ingest(context, WorkspaceSource(root))
    rows = [row for batch in context.store.scan("entities", columns=["name", "summary"]) for row in batch.to_pylist()]
    said = {row["name"]: row["summary"] for row in rows}
    assert said["pumps.WaterPump"] == "Lifts water to the roof."
    assert said["pumps.WaterPump.lift_water"] == "Lift water and say how much arrived."
    assert said["pumps.make_pump"] == ""


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return the pump", "Return the pump"),
        ("Return v1.5 of it. More.\n\nParameters\n----------", "Return v1.5 of it."),
        ("x" * 500, ""),
        ("  \n", ""),
    ],
)
def test_the_first_sentence_of_the_first_paragraph_is_taken(docstring: str, expected: str) -> None:
    assert summarise_docstring(docstring) == expected
