"""Marks of Markdown and reStructuredText do not reach an answer."""

from __future__ import annotations

import pytest

from hades.text.sentences import address_spans, code_spans, keep_prose, plain_text, row_words, strip_markup, table_rows


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("Kept for `60` days, **then** donated.", "Kept for 60 days, then donated."),
        ("See [the guide](guide.md#top) and [[Safety|safety rules]].", "See the guide and safety rules."),
        ("Call :func:`~json.dumps` or ``json.dump``.", "Call json.dumps or json.dump."),
        ("See `PEP 8 <https://peps.python.org/pep-0008/>`_ for names.", "See PEP 8 for names."),
        ("- a first item", "a first item"),
        ("> quoted _words_ here", "quoted words here"),
        ("`__init__` and snake_case_name stay; 2 * 3 * 4 too.", "__init__ and snake_case_name stay; 2 * 3 * 4 too."),
        ("a ![picture](x.png) of <b>text</b>", "a picture of text"),
        ("nothing to strip: x < y, a_b, 5*6", "nothing to strip: x < y, a_b, 5*6"),
    ],
)  # fmt: skip
def test_marks_inside_a_line_are_removed(marked, plain):
    assert strip_markup(marked) == plain


@pytest.mark.parametrize(
    "block",
    [
        "# Heading",
        "Heading\n=======",
        "=======\nHeading\n=======",
        "Heading\n~~~~~~~",
        "```python\nx = 1\n```",
        "| a | b |\n|---|---|",
        ".. note::",
        ".. versionadded:: 3.8",
        "<!-- hidden -->",
        "---",
        "* * *",
    ],
)
def test_blocks_that_are_no_prose_are_left_out(block):
    assert plain_text(f"First sentence.\n\n{block}\n\nSecond sentence.") == "First sentence. Second sentence."


def test_items_of_a_list_are_sentences_of_their_own():
    assert [part.strip() for part in keep_prose("Two things:\n- bread\n- milk\n").split("\n\n") if part.strip()] == [
        "Two things:",
        "bread",
        "milk",
    ]


def test_a_text_that_is_only_a_heading_keeps_its_words():
    assert plain_text("## Opening hours") == "Opening hours"


def test_rows_of_a_table_are_read_without_its_heading():
    table = "Text.\n\n| key | value | meaning |\n|---|---|---|\n| `PORT` | `8377` | port of **serve** |\n| A | | b |\n"
    assert [row_words(row) for row in table_rows(table)] == ["PORT: 8377; port of serve", "A: b"]


def test_a_fence_that_never_closes_ends_with_the_text():
    assert plain_text("Before.\n\n```\ncode") == "Before."


def prose(text: str) -> str:
    """The words of a text outside code, addresses and paths."""
    letters = list(text)
    for begin, end in (*code_spans(text), *address_spans(text)):
        letters[begin:end] = " " * (end - begin)
    return " ".join("".join(letters).split())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Before.\n\n```python\nawait datasette.get()\n```\n\nAfter.", "Before. After."),
        ("from a import b\n```\nAfter.", "After."),
        ("Run it::\n\n    $ pip install it\n    ok\n\nAfter.", "Run it:: After."),
        ("Do:\n\n.. code-block:: bash\n\n    datasette serve\n\nAfter.", "Do: bash After."),
        (".. note::\n    Some advice.\n\n    More advice.", "Some advice. More advice."),
        ("- an item\n\n    its second part\n", "- an item its second part"),
        ("    It was night (again).\n\nThen day.", "It was night (again). Then day."),
        ("import os\nfor x in y:\n    print(x)", ""),
        ("See https://github.com/simonw/datasette, or mail a@b.org.", "See , or mail ."),
        ("Put it into /etc/hosts or docs/index.rst, not CSV/TSV.", "Put it into or , not CSV/TSV."),
        ("The `await x.y()` form, `CREATE TABLE` and `db.query()`.", "The form, `CREATE TABLE` and `db.query()`."),
        ("See :ref:`the guide <guide>` and [docs](docs/a.md).", "See `the guide ` and [docs ."),
        ("``She said ''and `` he ''too.", "``She said ''and `` he ''too."),
    ],
)
def test_code_addresses_and_paths_are_no_prose(text: str, left: str) -> None:
    assert prose(text) == left
