"""One code file from bytes to Material."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from hades.ingest.parsers.facts import CodeFacts, ModuleImport, line_units, plain_facts
from hades.ingest.parsers.languages import BY_SUFFIX, path_module, python_module
from hades.ingest.sources.confined import ConfinedPool, ParserStopped
from hades.ingest.sources.documents import front_matter, prose_language, read_prose, stated_date
from hades.ingest.sources.files import Unusable, decode, require_short_lines
from hades.ingest.sources.material import CodeFile, Material, RejectReason
from schemas.sources import SourceKind

# Which files of a workspace are read, and as what: code, documentation, configuration.


CODE_SUFFIXES = {".py": "python", ".pyi": "python", **BY_SUFFIX}
_CONFIGURATION_SUFFIXES = {
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".ini": "ini",
    ".cfg": "ini",
    ".sql": "sql",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".mk": "make",
    ".dockerfile": "docker",
    ".conf": "ini",
    ".properties": "ini",
    ".env": "ini",
    ".bat": "batch",
    ".ps1": "powershell",
    ".cmake": "cmake",
}
_CONFIGURATION_NAMES = {"Dockerfile": "docker", "Containerfile": "docker", "Makefile": "make", "GNUmakefile": "make"}
CONFIGURATION_LANGUAGES = frozenset({*_CONFIGURATION_SUFFIXES.values(), *_CONFIGURATION_NAMES.values()})
PROSE_LANGUAGES = frozenset({"markdown", "rst", "text"})
# Written by package managers: large, and nobody asks what they say.
_GENERATED_NAMES = frozenset({"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "composer.lock"})
_BARE_NAMES = frozenset({"README", "CHANGELOG", "CHANGES", "CONTRIBUTING", "HISTORY", "NEWS", "NOTES", "TODO"})


def language_of(path: str) -> str | None:
    """The language of a file that belongs to the workspace; None for data, images and the like."""
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    if suffix in CODE_SUFFIXES:
        return CODE_SUFFIXES[suffix]
    if (suffix and prose_language(path) is not None) or pure.name in _BARE_NAMES:
        return prose_language(path)
    if pure.name in _GENERATED_NAMES:
        return None
    return _CONFIGURATION_NAMES.get(pure.stem) or _CONFIGURATION_SUFFIXES.get(suffix)


# One file of a workspace, from its bytes to a document with its units, symbols and imports.


PARSER = "hades.ingest.parsers.python:parse"
UNPARSED = "unparsed"  # in the metadata of a document: why its file was not parsed
MAX_PARSED_CHARS = 1 << 20  # larger source files are generated; they are kept as text
MAX_CONFIGURATION_CHARS = 100_000  # more than that is data: its beginning is enough to find it by
# Ten times what ordinary code takes, on a slow machine.
_CPU_SECONDS = 1.5
_CPU_SECONDS_PER_MILLION_CHARS = 6.0
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)


class FileReader:
    """Reads the files of one workspace; `is_package` says whether a folder is a Python package."""

    def __init__(self, name: str, is_package: Callable[[str], bool], go_mod: str = "") -> None:
        self._name, self._is_package = name, is_package
        declared = _GO_MODULE.search(go_mod)
        self._go_prefix = declared.group(1) if declared else ""

    def module(self, path: str) -> str:
        """The name a file is imported by."""
        is_python = language_of(path) == "python"
        return python_module(path, self._is_package, self._name) if is_python else path_module(path)

    def material(self, path: str, data: bytes, parsers: ConfinedPool) -> Material:
        """The document of a file; raises `Unusable` for one that holds no text."""
        language = language_of(path)
        assert language is not None
        text = decode(data)
        if language in PROSE_LANGUAGES:
            return _prose_material(text, path, language, len(data))
        require_short_lines(text)
        if language in CONFIGURATION_LANGUAGES:
            return _configuration_material(text, path, language, len(data))
        facts = self._parse(text, path, language, parsers)
        return Material(
            origin=path,
            source=SourceKind.WORKSPACE,
            text=text,
            title=facts.module or path,
            uri=path,
            mime=f"text/x-{language}",
            sections=facts.sections,
            code=CodeFile(
                path=path,
                language=language,
                module=facts.module,
                size=len(data),
                symbols=facts.symbols,
                imports=tuple(map(self._without_prefix, facts.imports)),
                prose=facts.prose,
            ),
            metadata={UNPARSED: facts.problem} if facts.problem else {},
        )

    def _parse(self, text: str, path: str, language: str, parsers: ConfinedPool) -> CodeFacts:
        """What the parser finds; a file that it cannot take is kept as plain text."""
        module = self.module(path)
        if not text.strip():
            return CodeFacts(module)
        if len(text) > MAX_PARSED_CHARS:
            return plain_facts(text, module, f"longer than {MAX_PARSED_CHARS} characters")
        allowed = _CPU_SECONDS + _CPU_SECONDS_PER_MILLION_CHARS * len(text) / 1e6
        try:
            facts: CodeFacts = parsers.call(text, path, language, module, cpu_seconds=allowed)
        except ParserStopped as stopped:
            return plain_facts(text, module, stopped.reason)
        return facts

    def _without_prefix(self, one: ModuleImport) -> ModuleImport:
        """An import of the workspace's own Go module, by the path of the folder."""
        if self._go_prefix and one.module.startswith(self._go_prefix + "/"):
            return one._replace(module=one.module[len(self._go_prefix) + 1 :].replace("/", "."))
        return one


def _prose_material(text: str, path: str, language: str, size: int) -> Material:
    prose = read_prose(text, path, language)
    return Material(
        origin=path,
        source=SourceKind.WORKSPACE,
        text=prose.text,
        title=prose.title,
        uri=path,
        mime=prose.mime,
        created=stated_date(front_matter(text)) if language == "markdown" else None,
        sections=prose.sections,
        code=CodeFile(path, language, "", size),
    )


def _configuration_material(text: str, path: str, language: str, size: int) -> Material:
    """Settings, data and scripts: units of lines; what lies beyond the limit is named in the metadata."""
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "no text", size)
    is_long = len(text) > MAX_CONFIGURATION_CHARS
    return Material(
        origin=path,
        source=SourceKind.WORKSPACE,
        text=text,
        title=path,
        uri=path,
        mime=f"text/x-{language}",
        sections=line_units(text[:MAX_CONFIGURATION_CHARS], path, "text"),
        code=CodeFile(path, language, "", size, prose=()),
        metadata={"indexed_chars": MAX_CONFIGURATION_CHARS} if is_long else {},
    )
