"""Sections of Markdown and reStructuredText, and of HTML after it became text."""

from __future__ import annotations

import time

import pytest

from hades.ingest.formats.directives import read_markdown, read_rst
from hades.ingest.formats.html import html_to_text
from hades.ingest.formats.markup import MAX_HEADINGS, Outline, outline_markdown, read_mdx
from hades.ingest.sources.documents import prose_language


def regions(text: str, outlined: Outline) -> list[tuple[tuple[str, ...], str]]:
    return [(one.headings, text[one.start : one.end]) for one in outlined.regions]


def test_markdown_is_divided_at_headings_of_both_kinds() -> None:
    text = "intro\n\n# A `x` #\none\n\nB [link](u)\n===\ntwo\n### C\nthree\n## D\nfour\n"
    outlined = outline_markdown(text)
    assert outlined.title == "A x"
    assert regions(text, outlined) == [
        ((), "intro"),
        (("A x",), "# A `x` #\none"),
        (("B link",), "B [link](u)\n===\ntwo"),
        (("B link", "C"), "### C\nthree"),
        (("B link", "D"), "## D\nfour"),
    ]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("`<scrape_config>`", "<scrape_config>"),
        ("\\<oauth2\\>", "<oauth2>"),
        ("`list<T>` and *more* <Badge />", "list<T> and more"),
        ("[`get()`](#get)", "get()"),
        ("C\\# and `a\\b`", "C# and a\\b"),
    ],
)
def test_a_heading_keeps_the_words_of_its_code_and_escapes(heading: str, title: str) -> None:
    text = f"# Top\n\n## {heading}\nbody\n"
    assert regions(text, outline_markdown(text)) == [(("Top", title), f"## {heading}\nbody")]


def test_rst_names_of_links_are_read_as_their_words() -> None:
    text, _ = read_rst(
        "Use ruff_, not black_, says `this paper`_; my_name_ stays.\n\n"
        ".. _ruff: https://r.example\n.. _black: https://b.example\n.. _this paper: "
        "https://p.example\n"
    )
    assert text.splitlines()[0] == "Use ruff, not black, says this paper; my_name_ stays."


def test_fenced_code_holds_no_headings() -> None:
    text = "# A\n```sh\n# not a heading\n~~~\n```` \n~~~~\n# nor this\n```\n~~~\n# B\nb\n"
    assert [headings for headings, _ in regions(text, outline_markdown(text))] == [("A",)]
    closed = "# A\n```sh\n# not a heading\n```\n# B\nb\n"
    assert [headings for headings, _ in regions(closed, outline_markdown(closed))] == [
        ("A",),
        ("B",),
    ]


def test_rules_lists_and_indented_code_are_no_headings() -> None:
    text = "- item\n---\n\n    # code\n\n***\n#hashtag\n| a |\n---\n"
    assert regions(text, outline_markdown(text)) == [((), text.strip())]


def test_front_matter_gives_the_title_and_is_no_section() -> None:
    text = "---\ntitle: 'Guide'\ndate: 2020\n---\nbody\n"
    outlined = outline_markdown(text)
    assert outlined.title == "Guide"
    assert regions(text, outlined) == [((), "body")]


def test_headings_without_a_body_live_on_in_the_path_only() -> None:
    text = "# A\n\n## B\nb\n"
    assert regions(text, outline_markdown(text)) == [(("A", "B"), "## B\nb")]
    assert regions("# A", outline_markdown("# A")) == [((), "# A")]


def test_rst_levels_follow_the_order_of_adornments() -> None:
    text = "=====\nTitle\n=====\nintro\n\nSec\n---\na\n\nSub\n~~~\nb\n\nLast\n----\nc\n"
    text, outlined = read_rst(text)
    assert outlined.title == "Title"
    assert [headings for headings, _ in regions(text, outlined)] == [
        ("Title",),
        ("Title", "Sec"),
        ("Title", "Sec", "Sub"),
        ("Title", "Last"),
    ]


def test_rst_is_read_as_the_markdown_it_means_line_by_line() -> None:
    text = """.. _plugins:

Plugins
=======

.. contents:: :local:
   :class: small

Run ``pip`` with \\-\\-quiet as in :ref:`the guide <guide>`, :ref:`plugins`,
:class:`~pkg.Reader` or `the site <https://x.org>`__:

.. code-block:: bash
   :linenos:

    pip install x  # ``as is``

.. note::
    Needs :issue:`12`.

.. a comment
   of two lines

Example::

    x = 1

.. autofunction:: pkg.read
    :members:
"""
    read, outlined = read_rst(text)
    assert read.split("\n") == [
        *("", "", "# Plugins", "", "", "", "", ""),
        "Run `pip` with --quiet as in the guide, Plugins,",
        "`pkg.Reader` or [the site](https://x.org):",
        *("", "", "", "```bash", "pip install x  # ``as is``", "```"),
        *("Note:", "    Needs #12.", "", "", "", ""),
        *("Example:", "```", "x = 1", "```"),
        *("`pkg.read`", "", ""),
    ]
    assert len(read.split("\n")) == len(text.split("\n"))
    assert [one.headings for one in outlined.regions] == [("Plugins",)]


def test_mdx_loses_its_javascript_and_keeps_its_lines() -> None:
    text = (
        'import { Tabs } from "ui";\nexport const a = 1;\n\n# Start\n\n{/* hidden '
        '*/}\n<Tabs>\n<Tab title="Python">\n'
        "Call it.\n</Tab>\n</Tabs>\n```js\nimport x from 'y'\n<Tabs/>\n```\n"
    )
    assert read_mdx(text).split("\n") == [
        *("", "", "", "# Start", "", "", "", "Python: ", "Call it.", "", ""),
        *("```js", "import x from 'y'", "<Tabs/>", "```", ""),
    ]


def test_html_becomes_text_with_headings() -> None:
    text, outlined = html_to_text(
        "<!DOCTYPE html><title>My  Page &amp; "
        "more</title><style>a{}</style><SCRIPT>if(a<b){}</SCRIPT>"
        '<h1>One</h1><p>Hello <b>bold</b>, <i>it</i>.<br>next &lt;tag&gt; <a title="x > '
        'y">link</a></p>'
        "<ul><li><p>a</p></li><li>b</li></ul><h2>Two <em>em</em></h2><pre>\n  code\n    here</pre>"
        "<table><tr><th>Code</th><th>Meaning</th></tr><tr><td>F.1|2</td><td>Low "
        "<b>pressure</b></td></tr></table>"
        "<table><tr><td>1</td><td>2</td></tr></table><table><tr><td><h3></h3>a</td><td>b</td></tr></table>"
        "<pre> </pre><!-- <h1>no</h1> -->tail"
    )
    assert outlined.title == "My Page & more"
    assert regions(text, outlined) == [
        (("One",), "# One\n\nHello bold, it.\nnext <tag> link\n\n- a\n\n- b"),
        (
            ("One", "Two em"),
            "## Two em\n\n```\n  code\n    here\n```\n\n"
            "| Code | Meaning |\n|---|---|\n| F.1\\|2 | Low pressure |\n\n1 2\n\na b\n\ntail",
        ),
    ]


def test_html_references_beyond_unicode_are_replaced() -> None:
    assert html_to_text("a&#xD800;b&#" + "9" * 10_000 + ";c&#0;d")[0] == "a\ufffdb\ufffdc\ufffdd"


@pytest.mark.parametrize(
    "text",
    [
        "# " + " " * 90_000 + "x",
        "[" * 90_000 + "\n===",
        "#" * 90_000,
        ">" * 90_000,
        "```\n" * 30_001,
        "* " * 45_000,
    ],
)
def test_odd_markdown_is_outlined_at_once(text: str) -> None:
    started = time.process_time()
    for read, outline in (
        (text, outline_markdown(text)),
        read_rst(text),
        (read_mdx(text), Outline("", ())),
    ):
        assert all(0 <= region.start < region.end <= len(read) for region in outline.regions)
    assert (
        time.process_time() - started < 30
    )  # milliseconds; one pattern that backtracks would take minutes


def test_a_text_of_headings_only_is_divided_so_far_and_no_further() -> None:
    text = "# h\nx\n" * (MAX_HEADINGS + 500)
    assert len(outline_markdown(text).regions) == MAX_HEADINGS
    assert outline_markdown(text).regions[-1].end == len(text) - 1


def test_roles_directives_and_labels_of_myst_are_read_as_what_they_mean() -> None:
    text = (
        "(exit-codes)=\n# Exit codes\n\nSee {ref}`exit-codes`, {ref}`the list <other>` and "
        "{func}`~click.echo`.\n"
        "```{toctree}\n:maxdepth: 2\npage\n```\n````{admonition} Careful\n:class: tip\nBe "
        "{class}`Group` aware.\n````\n"
        "```{eval-rst}\n.. click:example::\n\n    run()\n```\n```{code-block} python\nx = "
        "'{ref}`y`'\n```\n"
        "::: httpx.get\n    :docstring:\n"
    )
    wanted = (
        "\n# Exit codes\n\nSee Exit codes, the list and `click.echo`.\n"
        "\n\n\n\nCareful:\n\nBe `Group` aware.\n\n"
        "\n\n```\nrun()\n```\n```python\nx = '{ref}`y`'\n```\n"
        "`httpx.get`\n\n"
    )
    assert read_markdown(text) == wanted
    assert read_markdown("A page {with} braces.") == "A page {with} braces."


def test_a_number_sign_marks_no_heading_in_restructured_text():
    assert read_markdown("```{eval-rst}\n# And on Windows:\n\nRun it in C# only.\n```\n") == (
        "\nAnd on Windows:\n\nRun it in C# only.\n\n"
    )


def test_a_version_without_a_remark_ends_its_sentence():
    assert (
        read_markdown("```{versionadded} 5.0\n```\nText.").strip()
        == "Added in version 5.0.\n\nText."
    )
    assert read_rst(".. versionadded:: 5.0\n\nText.")[0] == "Added in version 5.0.\n\nText."
    assert (
        read_rst(".. versionadded:: 5.0\n   It works.")[0] == "Added in version 5.0:\n   It works."
    )


def test_components_over_several_lines_are_what_they_say_and_code_keeps_its_tags() -> None:
    text = (
        "import {\n  Card,\n} from 'ui';\n\n<Preview\n  config={[\n    { label: 'x > y' },\n  "
        "]}\n/>\n\n"
        'Use the `<Card>` component{props.end}.\n\n<LinkCard\n  title="Setup"\n  description="How '
        'to begin."\n/>\n\n'
        "- step\n\n    ```js\n    import a from 'b';\n    <Card x={{ a: 1 }} />\n    ```\n"
    )
    read = read_mdx(text)
    assert read.split() == [
        "Use",
        "the",
        "`<Card>`",
        "component.",
        "Setup:",
        "How",
        "to",
        "begin.",
        "-",
        "step",
        "```js",
        "import",
        "a",
        "from",
        "'b';",
        "<Card",
        "x={{",
        "a:",
        "1",
        "}}",
        "/>",
        "```",
    ]
    assert len(read.split("\n")) == len(text.split("\n"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (":::tip[Did you know?]{icon='x'}\nIt is fast.\n:::", "Did you know?:\nIt is fast.\n"),
        ("::::caution\n\n:::note\nInside.\n:::\n::::", "Caution:\n\nNote:\nInside.\n\n"),
        ("::: warning Mind it\nHot.\n:::", "Mind it:\nHot.\n"),
        (":::code-group\nText.\n:::", "\nText.\n"),
        (
            '{% tabs %}\n{% tab title="Linux" %}\nRun it.\n{% endtab %}\n{% endtabs %}',
            "\nLinux:\nRun it.\n\n",
        ),
        ('{{< tab "Go" >}}\nText.\n{{< /tab >}}', "Go:\nText.\n"),
        ('{% hint style="info" %}\nText.\n{% endhint %}', "Info:\nText.\n"),
        ("> [!NOTE]\n> Mind.", "> Note:\n> Mind."),
        (
            '<h3 name="config">\nIs there a <b>file</b>?\n</h3>\n\nYes.',
            "### Is there a file ?\n\n\n\nYes.",
        ),
        ("## Setup {#setup}\n[[toc]]\n{: .x }\nText.", "## Setup\n\n\nText."),
        ("```md\n:::tip\n{% tab %}\n<h3>a</h3>\n```", "```md\n:::tip\n{% tab %}\n<h3>a</h3>\n```"),
    ],
)
def test_marks_of_site_generators_are_read_as_what_they_mean(written: str, meant: str) -> None:
    assert read_markdown(written) == meant


GRID = """\
+------+-------------+
| **positional**     |
+------+-------------+
| ``a``| one | two   |
|      | more        |
+------+-------------+
"""


@pytest.mark.parametrize(
    ("drawn", "rows"),
    [
        (GRID, ["|  |  |", "|---|---|", "| **positional** |  |", "| `a` | one \\| two more |"]),
        (
            "=== ====\nA   B\n=== ====\n1   2\n    on\n3   4\n=== ====\n",
            ["| A | B |", "|---|---|", "| 1 | 2 on |", "| 3 | 4 |"],
        ),
        (
            '.. csv-table:: Birds\n   :header: "a", "b"\n\n   "x, y", 2\n',
            ["Birds", "", "| a | b |", "|---|---|", "| x, y | 2 |"],
        ),
        (
            ".. list-table::\n   :header-rows: 1\n\n   * - A\n     - B\n   * - 1\n     - 2\n       "
            "on\n",
            ["| A | B |", "|---|---|", "| 1 | 2 on |"],
        ),
    ],
)
def test_tables_of_restructured_text_become_rows(drawn: str, rows: list[str]) -> None:
    read = read_rst(f"{drawn}\nAfter.\n")[0]
    assert [line for line in read.split("\n") if line] == [*filter(None, rows), "After."]
    assert len(read.split("\n")) == len(f"{drawn}\nAfter.\n".split("\n"))


def test_layout_of_restructured_text_says_nothing_and_tabs_say_their_name() -> None:
    text = (
        ".. only:: html\n\n   .. class:: wide-table\n\n   Seen.\n\n"
        ".. tabs::\n\n   .. tab:: Linux\n\n      Run |it|.\n\n.. |it| replace:: borg\n"
    )
    assert read_rst(text)[0].split() == ["Seen.", "Linux:", "Run", "borg."]


def test_pages_that_others_include_are_read_as_what_they_are() -> None:
    names = ("create.rst.inc", "part.md.in", "x.inc", "a.rst.txt", "a.txt")
    assert [prose_language(name) for name in names] == ["rst", "markdown", None, "rst", "text"]
