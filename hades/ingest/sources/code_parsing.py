"""The one function that the confined child runs on source files."""

from __future__ import annotations

from hades.ingest.sources.code_facts import CodeFacts
from hades.ingest.sources.python_code import parse_python


def parse(text: str, path: str, language: str, module: str) -> CodeFacts:
    """Facts of one file; `module` is given for Python, whose names depend on the folders around the file."""
    if language == "python":
        return parse_python(text, path, module)
    from hades.ingest.sources.tree_sitter_code import parse_code  # loads eight grammars' binding only when needed

    return parse_code(text, path, language)
