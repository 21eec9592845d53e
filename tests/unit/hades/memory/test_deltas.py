"""Deltas rebuild the exact content, whatever the texts; a damaged one is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.errors import StoreDamaged
from hades.memory.history.rows import delta_between, pieces_of, rebuild
from tests.patience import examples

texts = st.text(st.sampled_from("ab c\n\r.\u2028é😀"), max_size=60) | st.text(max_size=40)


@given(texts, texts)
@settings(max_examples=examples(30), deadline=None)
def test_any_content_is_rebuilt_from_any_parent(parent: str, content: str) -> None:
    recipe, pieces = delta_between(parent, content)
    assert rebuild(parent, recipe, pieces) == content
    assert pieces_of(content, recipe) == pieces


def test_a_small_edit_of_a_long_text_is_a_small_delta() -> None:
    parent = "\n".join(f"line {number} of the text" for number in range(2_000))
    changed = parent.replace("line 1000 of", "line 1000 (checked) of").replace("line 5 ", "row 5 ")
    recipe, pieces = delta_between(parent, changed)
    assert pieces.split() == ["row", "(checked)"]
    assert len(recipe) + len(pieces) < 80


def test_a_wrong_parent_is_noticed() -> None:
    recipe, pieces = delta_between("one two three", "one two four")
    with pytest.raises(StoreDamaged, match="version 3 of 'x' does not rebuild"):
        rebuild("another parent", recipe, pieces, "version 3 of 'x'")
    with pytest.raises(StoreDamaged):
        rebuild("one two three", recipe, "five")
