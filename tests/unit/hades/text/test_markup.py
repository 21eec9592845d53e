"""Marks of Markdown and reStructuredText do not reach an answer."""

from __future__ import annotations

import pytest

from hades.text.blocks import BlockKind, inline_markdown, plain_words, read_blocks, strip_marks
from hades.text.sentences import address_spans, code_spans


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("Kept for `60` days, **then** donated.", "Kept for 60 days, then donated."),
        (
            "See [the guide](guide.md#top) and [[Safety|safety rules]].",
            "See the guide and safety rules.",
        ),
        ("Call :func:`~json.dumps` or ``json.dump``.", "Call dumps or json.dump."),
        ("See `PEP 8 <https://peps.python.org/pep-0008/>`_ for names.", "See PEP 8 for names."),
        ("- a first item", "a first item"),
        ("> quoted _words_ here", "quoted words here"),
        (
            "`__init__` and snake_case_name stay; 2 * 3 * 4 too.",
            "__init__ and snake_case_name stay; 2 * 3 * 4 too.",
        ),
        (
            "Use {meth}`~click.Group.get_command`; see {ref}`the guide <guide>`.",
            "Use get_command; see the guide.",
        ),
        ("a ![picture](x.png) of <b>text</b>", "a of text"),
        ("nothing to strip: x < y, a_b, 5*6", "nothing to strip: x < y, a_b, 5*6"),
    ],
)
def test_marks_inside_a_line_are_removed(marked, plain):
    assert strip_marks(inline_markdown(marked)) == plain


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
        "(label)=",
        ".. _label:",
        ".. toctree::\n   :maxdepth: 2\n\n   other",
        "```{eval-rst}\n.. currentmodule:: click\n```",
        "|PyPI| |Changelog|",
        "<!-- hidden -->",
        "---",
        "* * *",
    ],
)
def test_blocks_that_are_no_prose_are_left_out(block):
    assert (
        plain_words(f"First sentence.\n\n{block}\n\nSecond sentence.")
        == "First sentence. Second sentence."
    )


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (
            "Two things:\n- bread\n- milk\n",
            [("paragraph", "Two things:"), ("item", "- bread"), ("item", "- milk")],
        ),
        ("1. first\n2. second", [("item", "1. first"), ("item", "2. second")]),
        ("- one that\ngoes on\n- two", [("item", "- one that goes on"), ("item", "- two")]),
        ("## Opening hours", [("heading", "Opening hours")]),
        ("Title\n=====\n\nText.", [("heading", "Title"), ("paragraph", "Text.")]),
        (
            "Run ``it``::\n\n    $ pip install it\n\nAfter.",
            [
                ("paragraph", "Run `it`:"),
                ("code", "```\n$ pip install it\n```"),
                ("paragraph", "After."),
            ],
        ),
        (".. code-block:: bash\n\n    serve --port 1", [("code", "```bash\nserve --port 1\n```")]),
        ("```{eval-rst}\n.. click:example::\n\n    run()\n```", [("code", "```\nrun()\n```")]),
        (".. note::\n    Some ``advice``.", [("paragraph", "Some `advice`.")]),
        (".. versionadded:: 3.8\n   Works.", [("paragraph", "Added in 3.8: Works.")]),
        (
            '!!! note "Gotcha"\n    Mind it.',
            [("paragraph", "**Gotcha**"), ("paragraph", "Mind it.")],
        ),
        ("--port N\n    Port of the server.", [("term", "**--port N**: Port of the server.")]),
        (":param size: How many.", [("term", "**size**: How many.")]),
        ("Before.\n\n```\ncode", [("paragraph", "Before."), ("code", "```\ncode\n```")]),
        ("- an item\n\n      $ run\n", [("item", "- an item"), ("code", "```\n$ run\n```")]),
        (
            "ends here.\n    \n    **[Next](https://a.org)**\n    \n    It goes on (so)",
            [
                ("paragraph", "ends here."),
                ("paragraph", "**Next**"),
                ("paragraph", "It goes on (so)"),
            ],
        ),
        (
            "ends here.\n\n    Run it:\n\n    ```sh\n    ls\n    ```",
            [("paragraph", "ends here."), ("paragraph", "Run it:"), ("code", "```sh\nls\n```")],
        ),
        ("> quoted\n> words", [("paragraph", "quoted words")]),
        ("Plain text\nin two lines.", [("paragraph", "Plain text in two lines.")]),
        ("", []),
    ],
)
def test_a_page_is_read_as_the_blocks_a_person_sees(
    text: str, blocks: list[tuple[str, str]]
) -> None:
    assert [(str(one.kind), one.markdown) for one in read_blocks(text)] == blocks


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_a_text_that_begins_inside_code_shows_it_as_code(fence: str) -> None:
    blocks = read_blocks(f"port: 1\n# The host.\n{fence}\nAfter.", begins_in_code=True)
    assert [(str(one.kind), one.markdown) for one in blocks] == [
        ("code", "```\nport: 1\n# The host.\n```"),
        ("paragraph", "After."),
    ]


@pytest.mark.parametrize("mark", ["> ", "- ", "1. ", ".. note:: "])
def test_blocks_in_blocks_without_end_are_read_all_the_same(mark: str) -> None:
    assert "deep" in " ".join(one.markdown for one in read_blocks(f"{mark * 3000}deep"))
    stairs = "\n".join(" " * (1500 - step) + "deep" for step in range(1500))
    assert "deep" in read_blocks(stairs)[0].markdown


def test_rows_of_a_table_keep_its_heading() -> None:
    table = "| key | value |\n|---|---|\n| `PORT` | port of **serve** |\n"
    (row,) = read_blocks(table)
    assert (row.kind, row.head) == (BlockKind.ROW, "| key | value |\n|---|---|")
    assert strip_marks(row.markdown) == "PORT port of serve"


def test_a_row_that_only_names_a_part_of_its_table_is_no_block() -> None:
    rows = read_blocks(
        "| What | Junior | Senior |\n|---|---|---|\n| **Skill** | | |\n| Craft | learns | teaches |"
    )
    assert [one.markdown for one in rows] == ["| Craft | learns | teaches |"]


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
        (
            "The `await x.y()` form, `CREATE TABLE` and `db.query()`.",
            "The form, `CREATE TABLE` and `db.query()`.",
        ),
        ("See :ref:`the guide <guide>` and [docs](docs/a.md).", "See `the guide ` and [docs ."),
        ("``She said ''and `` he ''too.", "``She said ''and `` he ''too."),
    ],
)
def test_code_addresses_and_paths_are_no_prose(text: str, left: str) -> None:
    assert prose(text) == left


def test_a_tag_above_indented_lines_is_no_term() -> None:
    page = (
        '<div align="center">\n    <img src="a.png"/>\n    <figcaption><em>How a proxy '
        "works.</em></figcaption>\n</div>"
    )
    assert [block.kind for block in read_blocks(page)] == [BlockKind.PARAGRAPH]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (
            "call the landlord\nrenew the domain before June\nask for it",
            ["- call the landlord", "- renew the domain before June", "- ask for it"],
        ),
        (
            "-v, --verbose    say more\n--level N        how much\n                 of it",
            ["`-v, --verbose`: say more", "`--level N`: how much of it"],
        ),
        ("See `<a>` and <b>it</b>, [one](https://x.y/a_(b).html).", ["See `<a>` and it, one."]),
        (
            "This is a paragraph whose lines are full of\nwords, as those of most files are, until "
            "the\nend",
            None,
        ),
    ],
)
def test_lines_that_begin_anew_are_blocks_of_their_own(text, blocks):
    assert [one.markdown for one in read_blocks(text)] == (blocks or [" ".join(text.split())])
