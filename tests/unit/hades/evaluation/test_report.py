"""The pages that show figures show those that are kept."""

from pathlib import Path

import pytest

from benchmarks import eval_report

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("name", ["docs/evaluation.md", "README.md"])
def test_pages_are_up_to_date(name):
    text = (ROOT / name).read_text("utf-8")
    assert eval_report.filled(text) == text, "run `python benchmarks/eval_report.py`"
    stale = text.replace("| bm25 |", "| stale |")
    assert eval_report.filled(stale) == text
