"""Sentences of code are those of its documentation, whole."""

from __future__ import annotations

import pytest

from hades.text.sentences import documentation_sentences


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('def f():\n    """Opens the wide river. Then it waits\n    for a boat.\n\n    More of it here too."""\n', 2),
        ('def f():\n    """Returns it.\n\n    :param x: one thing of many.\n    """\n', 0),
        ("def f():\n    return 'This is not a docstring at all.'\n", 0),
        ("'''Reads all of the rivers.'''\nx = 1\n", 1),
        ("", 0),
    ],
)
def test_whole_sentences_of_the_first_paragraph(code: str, expected: int) -> None:
    spans = documentation_sentences(code)
    assert len(spans) == expected
    assert all(code[start:end][0].isupper() and code[end - 1] == "." for start, end in spans)
