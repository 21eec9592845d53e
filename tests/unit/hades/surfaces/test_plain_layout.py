"""Texts and columns are laid out as rich lays them out, to the byte, or left to it."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from hades.surfaces.cli.output import _PLAIN, Columns, Line, lay_out, to_rich
from tests.patience import examples

TEXTS = st.text(alphabet="ab \n…é–w", max_size=60) | st.lists(st.text("abcdefg…", max_size=25)).map(" ".join)


def print_by_rich(parts, width):
    """What rich prints where there is no terminal."""
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False)
    for part in parts:
        console.print(to_rich(part))
    return file.getvalue()


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(TEXTS, max_size=3), st.integers(4, 30))
def test_lines_are_wrapped_as_rich_does_it(texts, width):
    parts = [Line(text, "dim") for text in texts]
    assert lay_out(parts, width) == print_by_rich(parts, width)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(*[st.text("ab .1é", max_size=12)] * 3), max_size=4), st.tuples(*[st.booleans()] * 3))
def test_columns_stand_as_in_a_table_of_rich(rows, are_numbers):
    columns = Columns(("stage", "ms", ""), are_numbers, tuple(rows))
    assert lay_out([columns], 60) == print_by_rich([columns], 60)


def test_every_plain_character_takes_one_cell():
    plain = [chr(code) for code in range(0x3000) if _PLAIN.fullmatch(chr(code)) and chr(code) != "\n"]
    assert len(plain) > 600
    assert [one for one in plain if cell_len(one) != 1 or not one.isprintable()] == []


@pytest.mark.parametrize("part", [Line("東京"), Line("a\tb"), Line("e\u0301"), Line("\x1b[1m"), "zero\u200bwidth"])
def test_other_characters_are_left_to_rich(part):
    assert lay_out(["first", part], 40) is None


def test_columns_wider_than_the_page_are_left_to_rich():
    columns = Columns(("a", "b"), (False, False), (("x" * 20, "y" * 20),))
    assert lay_out([columns], 42) is not None
    assert lay_out([columns], 41) is None


def test_a_terminal_gets_the_styles():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", width=40, highlight=False)
    console.print(to_rich(Line("a path", "bold")))
    assert re.search(r"\x1b\[1ma path\x1b\[0m", file.getvalue())
