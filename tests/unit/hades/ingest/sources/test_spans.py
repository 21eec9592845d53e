"""Every section lies inside its text, in order, without overlap, and is not blank: whatever the
text.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.formats.directives import read_rst
from hades.ingest.formats.html import html_to_text
from hades.ingest.formats.markup import outline_markdown
from hades.ingest.parsers.facts import CodeFacts, Lines, line_units
from hades.ingest.parsers.languages import BY_NAME
from hades.ingest.parsers.python import parse_python
from hades.ingest.parsers.tree_sitter import parse_code
from hades.ingest.sources.files import Unusable, decode
from tests.patience import examples

PYTHON = st.lists(
    st.sampled_from(
        [
            "def größe(a):\n",
            "class K(B):\n",
            "    x = 'ä'\n",
            '    """Dök."""\n',
            "    def m(self):\n        pass\n",
            "        return f(x).g()\n",
            "# ein Kommentar, der lang genug ist, um zu zählen\n",
            "'''mehr\nZeilen'''\n",
            "@deco\n",
            "\r\n",
            "\x0c",
            "if a:\n",
            "import a.b as c\n",
            "😀 = 1\n",
        ]
    ),
    max_size=14,
).map("".join)
ANY = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200)
CODE = st.lists(
    st.sampled_from(
        [
            "function f(ä) {",
            "}",
            "class Ö {",
            "// über und über und über und noch mehr\n",
            "/* ß */",
            "\n",
            "x.y();",
        ]
    )
    | ANY,
    max_size=12,
).map("".join)
MARKUP = st.lists(
    st.sampled_from(
        [
            "# Ä\n",
            "Titel\n===\n",
            "```\n",
            "text 😀\n",
            "\n",
            "---\n",
            "- x\n",
            "<h1>",
            "</h1>",
            "<p>",
            "&auml;",
        ]
    )
    | ANY,
    max_size=20,
).map("".join)


def check_facts(text: str, found: CodeFacts) -> None:
    last = 0
    for section in found.sections:
        assert last <= section.start < section.end <= len(text)
        piece = text[section.start : section.end]
        assert piece == piece.rstrip()
        last = section.end
    check_lines(text, found)
    last = 0
    for start, end in found.prose:
        assert last <= start < end <= len(text)
        last = end
    for symbol in found.symbols:
        assert 0 <= symbol.start < symbol.end <= len(text)
        assert symbol.name in text[symbol.start : symbol.end]


def check_lines(text: str, found: CodeFacts) -> None:
    """Every line that is not blank belongs to exactly one unit, and a unit is made of whole
    lines.
    """
    lines = Lines(text)
    owners = [0] * len(lines)
    for unit in found.sections:
        assert lines.starts[lines.at(unit.start)] == unit.start
        for line in range(lines.at(unit.start), lines.at(unit.end - 1) + 1):
            owners[line] += 1
    for line, count in enumerate(owners):
        assert count == 1 or (count == 0 and not lines.text(line).strip()), (line, lines.text(line))


@settings(max_examples=examples(50), deadline=None)
@given(PYTHON | ANY)
def test_python_sections(text: str) -> None:
    check_facts(text, parse_python(text, "m.py", "m"))


@pytest.mark.parametrize("language", sorted(BY_NAME))
@settings(max_examples=examples(8), deadline=None)
@given(text=CODE)
def test_code_sections(language: str, text: str) -> None:
    check_facts(text, parse_code(text, "d/m.x", language))


@settings(max_examples=examples(50), deadline=None)
@given(MARKUP)
def test_markup_sections(markup: str) -> None:
    html, html_outline = html_to_text(markup)
    for text, outlined in (
        (markup, outline_markdown(markup)),
        read_rst(markup),
        (html, html_outline),
    ):
        last = 0
        for region in outlined.regions:
            assert last <= region.start < region.end <= len(text)
            last = region.end
        assert bool(outlined.regions) or not text.strip() or text.startswith("---")


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_text_that_can_be_stored_or_refused(data: bytes) -> None:
    try:
        text = decode(data)
    except Unusable:
        return
    assert "\0" not in text
    text.encode("utf-8")


@settings(max_examples=examples(33), deadline=None)
@given(ANY, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_unicode_encodings_are_read_back_exactly(text: str, encoding: str) -> None:
    text = "".join(one for one in text if one.isprintable() or one == "\n").lstrip("\ufeff")
    assert decode(text.encode(encoding)) == text


@settings(max_examples=examples(33), deadline=None)
@given(ANY | PYTHON, st.integers(1, 400))
def test_units_of_text_without_structure_cover_every_line_once(text: str, times: int) -> None:
    text *= times  # more than a unit may hold
    check_lines(text, CodeFacts("m", sections=line_units(text, "m", "text")))
