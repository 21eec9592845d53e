"""Properties are tried on the same examples in each run, whatever was imported before them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import is_soak

NUMBERS = range(1_000_003, 1_000_203)


@pytest.mark.skipif(is_soak(), reason="examples are random there")
def test_examples_do_not_depend_on_the_modules_that_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    path = tmp_path / "constants.py"
    path.write_text(f"NUMBERS = {[*NUMBERS]}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("constants_of_a_test", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "constants_of_a_test", module)
    assert drawn() == before


def drawn() -> list[list[int]]:
    """The examples of a property."""
    examples: list[list[int]] = []

    @given(st.lists(st.integers(), min_size=5))
    def keep(numbers: list[int]) -> None:
        examples.append(numbers)

    keep()
    return examples
