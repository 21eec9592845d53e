"""What is read from Python source: names, spans, documentation, imports, calls."""

from __future__ import annotations

import pytest

from hades.ingest.parsers.facts import UNIT_CHARS, CodeFacts
from hades.ingest.parsers.languages import python_module
from hades.ingest.parsers.python import parse_python

SOURCE = '''\
"""Module über alles."""
import os.path as p
from . import sibling
from ..base import Thing as T

LIMIT = "ä"  # short


# A remark that explains at some length
# why the following is done.
@cache
def größe(x: int = f("ü"), *rest) -> dict[str, int]:
    """Größe von x.

    Zweite Zeile."""
    from json import loads
    return p.join(loads(x), helper().later())


class Döner(T, Generic[K]):
    def run(self):
        def inner():
            """Inside."""
            return deep()
        self.stop()
        super().run()
        return inner

    class Inner:
        "Ünner."
        x = field()
'''


def facts(
    source: str = SOURCE, path: str = "pkg/sub/mod.py", module: str = "pkg.sub.mod"
) -> CodeFacts:
    return parse_python(source, path, module)


def units(source: str, found: CodeFacts) -> list[tuple[str, str | None, str]]:
    return [(one.kind, one.symbol, source[one.start : one.end]) for one in found.sections]


def prose(source: str, found: CodeFacts) -> list[str]:
    return [source[start:end] for start, end in found.prose]


def test_symbols_have_qualified_names_kinds_and_signatures() -> None:
    found = {one.qualified_name: (one.kind, one.signature) for one in facts().symbols}
    assert found == {
        "pkg.sub.mod.größe": ("function", 'def größe(x: int = f("ü"), *rest) -> dict[str, int]'),
        "pkg.sub.mod.Döner": ("class", "class Döner(T, Generic[K])"),
        "pkg.sub.mod.Döner.run": ("method", "def run(self)"),
        "pkg.sub.mod.Döner.Inner": ("class", "class Inner"),
    }


def test_spans_count_characters_although_the_parser_counts_bytes() -> None:
    spans = {one.name: SOURCE[one.start : one.end] for one in facts().symbols}
    assert spans["größe"].startswith("@cache\ndef größe")
    assert spans["größe"].endswith("helper().later())")
    assert spans["Inner"] == 'class Inner:\n        "Ünner."\n        x = field()'


def test_prose_is_the_docstrings_between_their_quotes_and_the_comments_that_say_something() -> None:
    assert prose(SOURCE, facts()) == [
        "Module über alles.",
        "# A remark that explains at some length\n# why the following is done.",
        "Größe von x.\n\n    Zweite Zeile.",
        "Inside.",
        "Ünner.",
    ]
    assert facts().symbols[0].docstring == "Größe von x.\n\nZweite Zeile."


def test_units_are_functions_methods_class_heads_and_module_regions() -> None:
    assert [
        (kind, symbol, text.splitlines()[0]) for kind, symbol, text in units(SOURCE, facts())
    ] == [
        ("module", None, '"""Module über alles."""'),
        ("function", "größe", "# A remark that explains at some length"),
        ("class", "Döner", "class Döner(T, Generic[K]):"),
        ("method", "Döner.run", "    def run(self):"),
        ("class", "Döner.Inner", "    class Inner:"),
    ]


def test_class_statements_between_methods_are_units_of_the_class_under_its_signature() -> None:
    source = (
        'class A:\n    """Does."""\n    def f(self): pass\n    g = f\n    def h(self): '
        "pass\nx = A()\n"
    )
    found = facts(source)
    assert [(one.symbol, one.headings, source[one.start : one.end]) for one in found.sections] == [
        ("A", ("A",), 'class A:\n    """Does."""'),
        ("A.f", ("A.f",), "    def f(self): pass"),
        ("A", ("A", "class A", "Does."), "    g = f"),
        ("A.h", ("A.h",), "    def h(self): pass"),
        (None, ("pkg.sub.mod",), "x = A()"),
    ]


def test_a_long_function_is_divided_at_statements_and_repeats_its_header() -> None:
    step = "    if a:\n        a = [\n            1,\n        ]\n"
    source = 'def long(a):\n    """Counts a."""\n' + step * 80
    found = facts(source)
    assert len(found.sections) > 2
    assert all(len(source[one.start : one.end]) <= UNIT_CHARS for one in found.sections)
    assert found.sections[0].headings == ("long",)
    assert {one.headings for one in found.sections[1:]} == {("long", "def long(a)", "Counts a.")}
    assert {source[one.start : one.end].splitlines()[0] for one in found.sections[1:]} == {
        "    if a:"
    }


def test_calls_and_bases_are_names_as_written_and_nested_functions_belong_to_the_outer_one() -> (
    None
):
    calls = {one.name: set(one.calls) for one in facts().symbols}
    assert calls["größe"] == {"f", "p.join", "loads", "helper"}
    assert calls["run"] == {"deep", "self.stop", "super", "super().run"}
    assert calls["Inner"] == {"field"}
    assert {one.name: one.bases for one in facts().symbols}["Döner"] == ("T", "Generic")


def test_imports_are_absolute_and_know_their_function() -> None:
    assert [tuple(one)[:4] for one in facts().imports] == [
        ("os.path", None, "p", None),
        ("pkg.sub", "sibling", None, None),
        ("pkg.base", "Thing", "T", None),
        ("json", "loads", None, "pkg.sub.mod.größe"),
    ]


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    found = facts(
        "from . import a\nfrom .b import c\nfrom ...far import d\n", "pkg/__init__.py", "pkg"
    )
    assert [(one.module, one.name) for one in found.imports] == [
        ("pkg", "a"),
        ("pkg.b", "c"),
        ("far", "d"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        'x = """\n# not a comment but text inside a string, long enough\n"""\n# no\ny = 1  # '
        "trailing remarks stay\n",
        "# Copyright 2020 Somebody and others, all of them.\n# Licensed under some licence.\nx = "
        "1\n",
    ],
)
def test_lines_in_strings_remarks_behind_code_and_licences_are_not_comments(source: str) -> None:
    assert prose(source, facts(source)) == []


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_ends_do_not_shift_spans(newline: str) -> None:
    source = SOURCE.replace("\n", newline)
    assert prose(source, facts(source))[-1] == "Ünner."
    assert {one.name: source[one.start :][:6] for one in facts(source).symbols}["größe"] == "@cache"


@pytest.mark.parametrize(
    "source",
    [
        "def broken(:\n    pass\n",
        "x = (" + "(" * 10_000,
        "x = " + "not " * 50_000 + "1",
        "x = " + "a + " * 100_000 + "a",
        "if a:\n pass\n" + "elif a:\n pass\n" * 5000,
        "x = 'a\0b'\n",
        "x = " + "9" * 5000,
    ],
)
def test_what_does_not_parse_is_kept_as_text_with_the_reason(source: str) -> None:
    found = facts(source)
    assert found.problem
    assert {one.kind for one in found.sections} == {"module"}
    assert found.sections[0].start == 0
    assert found.sections[-1].end == len(source.rstrip())


def test_two_definitions_of_one_name_are_both_there() -> None:
    found = facts("if a:\n    def f(): pass\nelse:\n    def f(): pass\n")
    assert [one.qualified_name for one in found.symbols] == ["pkg.sub.mod.f"] * 2


@pytest.mark.parametrize(
    ("path", "packages", "expected"),
    [
        ("pkg/mod.py", {"pkg"}, "pkg.mod"),
        ("pkg/__init__.py", {"pkg"}, "pkg"),
        ("src/pkg/mod.py", {"src/pkg"}, "pkg.mod"),
        (
            "libs/one/src/pkg/sub/mod.py",
            {"libs/one/src/pkg", "libs/one/src/pkg/sub"},
            "pkg.sub.mod",
        ),
        ("src/namespace/mod.py", set(), "namespace.mod"),
        ("src/mod.py", {"src"}, "src.mod"),
        ("tools/run.py", set(), "tools.run"),
        ("mod.py", set(), "mod"),
        ("mod.py", {""}, "root.mod"),
        ("sub/__init__.py", {"", "sub"}, "root.sub"),
        ("__init__.py", {""}, "root"),
        ("__init__.py", set(), "__init__"),
    ],
)
def test_module_names_are_those_of_imports(path: str, packages: set[str], expected: str) -> None:
    assert python_module(path, packages.__contains__, "root") == expected
