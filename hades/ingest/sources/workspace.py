"""Code workspaces: source files with their symbols, and the prose that lies beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath

from hades.ingest.source_document import (
    CodeFile,
    Material,
    ModuleImport,
    Rejected,
    RejectReason,
    Section,
    Symbol,
)
from hades.ingest.sources.code_facts import CodeFacts
from hades.ingest.sources.code_units import line_units, plain_facts
from hades.ingest.sources.confined import ConfinedPool, Stopped
from hades.ingest.sources.documents import prose_language, read_prose
from hades.ingest.sources.import_forms import path_module, python_module
from hades.ingest.sources.languages import BY_SUFFIX
from hades.ingest.sources.parallel_reading import WORKERS, in_order
from hades.ingest.sources.reading import (
    MAX_TEXT_BYTES,
    SourceError,
    Unusable,
    decode,
    read_bytes,
    read_text,
    require_short_lines,
    shown,
)
from hades.ingest.sources.walk import Found, walk
from schemas.chunks import ChunkKind
from schemas.nodes import FuncKind, SourceKind

MAX_PARSED_CHARS = 1 << 20  # larger source files are generated; they are kept as text
# Ten times what ordinary code takes, on a slow machine.
_CPU_SECONDS = 1.5
_CPU_SECONDS_PER_MILLION_CHARS = 6.0
_CODE_SUFFIXES = {".py": "python", ".pyi": "python", **BY_SUFFIX}
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
_CONFIGURATION_LANGUAGES = frozenset({*_CONFIGURATION_SUFFIXES.values(), *_CONFIGURATION_NAMES.values()})
_PROSE_LANGUAGES = frozenset({"markdown", "rst", "text"})
# Written by package managers: large, and nobody asks what they say.
_GENERATED_NAMES = frozenset({"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "composer.lock"})
MAX_CONFIGURATION_CHARS = 100_000  # more than that is data: its beginning is enough to find it by
_BARE_NAMES = frozenset({"README", "CHANGELOG", "CHANGES", "CONTRIBUTING", "HISTORY", "NEWS", "NOTES", "TODO"})
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)


class WorkspaceSource:
    """Code and documentation below a folder, or in the named packages of it; other files are passed over."""

    kind = SourceKind.WORKSPACE

    def __init__(self, root: Path, packages: Sequence[str] = ()) -> None:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder; expected the root of a code workspace")
        self._root = root.resolve()
        self._starts = _starts(self._root, packages) if packages else ("",)
        self.corpus = self._root.name
        self.place = str(self._root)
        self.mirrors = not packages  # what is outside the named packages is not gone
        self._go_prefix = _go_prefix(self._root)
        self._is_package = cache(lambda folder: (self._root / folder / "__init__.py").is_file())

    def estimate(self) -> int | None:
        """Files that will be read."""
        return sum(1 for found in self._files() if found.problem is None)

    def read(self) -> Iterator[Material | Rejected]:
        """Files in the order of their paths."""
        with ConfinedPool("hades.ingest.sources.code_parsing:parse", WORKERS) as parsers:
            yield from in_order(partial(self._outcome, parsers), self._files())

    def _files(self) -> Iterator[Found]:
        for found in walk(str(self._root), self._starts):
            if found.problem is not None or _language_of(found.relative) is not None:
                yield found

    def _outcome(self, parsers: ConfinedPool, found: Found) -> Material | Rejected:
        try:
            return self._material(found, parsers)
        except Unusable as problem:
            uri = shown(found.relative)
            return Rejected(SourceKind.WORKSPACE, uri, problem.reason, problem.detail, problem.size)

    def _material(self, found: Found, parsers: ConfinedPool) -> Material:
        if found.problem is not None:
            raise found.problem
        language = _language_of(found.relative)
        assert language is not None
        data = read_bytes(found.path, MAX_TEXT_BYTES)
        text = decode(data)
        if language in _PROSE_LANGUAGES:
            return _prose_material(text, found.relative, language, len(data))
        require_short_lines(text)
        if language in _CONFIGURATION_LANGUAGES:
            return _configuration_material(text, found.relative, language, len(data))
        facts = self._parse(text, found.relative, language, parsers)
        return Material(
            origin=found.relative,
            source=SourceKind.WORKSPACE,
            text=text,
            title=facts.module or found.relative,
            uri=found.relative,
            mime=f"text/x-{language}",
            sections=tuple([_section(*fact) for fact in facts.sections]),
            code=CodeFile(
                path=found.relative,
                language=language,
                module=facts.module,
                size=len(data),
                symbols=tuple([_symbol(*fact) for fact in facts.symbols]),
                imports=tuple([self._import(*fact) for fact in facts.imports]),
                prose=facts.prose,
            ),
            metadata={"unparsed": facts.problem} if facts.problem else {},
        )

    def _parse(self, text: str, path: str, language: str, parsers: ConfinedPool) -> CodeFacts:
        """What the parser finds; a file that it cannot take is kept as plain text."""
        is_python = language == "python"
        module = python_module(path, self._is_package, self._root.name) if is_python else path_module(path)
        if not text.strip():
            return CodeFacts(module)
        if len(text) > MAX_PARSED_CHARS:
            return plain_facts(text, module, f"longer than {MAX_PARSED_CHARS} characters")
        allowed = _CPU_SECONDS + _CPU_SECONDS_PER_MILLION_CHARS * len(text) / 1e6
        try:
            facts: CodeFacts = parsers.call(text, path, language, module, cpu_seconds=allowed)
        except Stopped as stopped:
            return plain_facts(text, module, stopped.reason)
        return facts

    def _import(self, module: str, name: str | None, alias: str | None, symbol: str | None) -> ModuleImport:
        if self._go_prefix and module.startswith(self._go_prefix + "/"):
            module = module[len(self._go_prefix) + 1 :].replace("/", ".")
        return ModuleImport(module, name, alias, symbol)


def _language_of(path: str) -> str | None:
    """The language of a file that belongs to the workspace; None for data, images and the like."""
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    if suffix in _CODE_SUFFIXES:
        return _CODE_SUFFIXES[suffix]
    if (suffix and prose_language(path) is not None) or pure.name in _BARE_NAMES:
        return prose_language(path)
    if pure.name in _GENERATED_NAMES:
        return None
    return _CONFIGURATION_NAMES.get(pure.stem) or _CONFIGURATION_SUFFIXES.get(suffix)


def _starts(root: Path, packages: Sequence[str]) -> tuple[str, ...]:
    """Folders and files of named packages, in order, none of them inside another."""
    found: set[str] = set()
    for package in packages:
        path = package.strip("/") if "/" in package else package.replace(".", "/")
        candidates = [one for one in (path, f"{path}.py", package) if one and (root / one).exists()]
        if not candidates or ".." in path.split("/"):
            raise SourceError(f"{root} has no package {package!r}; expected a folder or a module below it")
        found.update(candidates)
    return tuple(sorted(one for one in found if not any(one.startswith(f"{other}/") for other in found)))


def _go_prefix(root: Path) -> str:
    """The name under which Go files import packages of this very workspace."""
    try:
        declared = _GO_MODULE.search(read_text(os.fspath(root / "go.mod"), 1 << 20))
    except Unusable:
        return ""
    return declared.group(1) if declared else ""


def _prose_material(text: str, path: str, language: str, size: int) -> Material:
    prose = read_prose(text, path, language)
    return Material(
        origin=path,
        source=SourceKind.WORKSPACE,
        text=text,
        title=prose.title,
        uri=path,
        mime=prose.mime,
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
        sections=tuple([_section(*fact) for fact in line_units(text[:MAX_CONFIGURATION_CHARS], path, "text")]),
        code=CodeFile(path, language, "", size, prose=()),
        metadata={"indexed_chars": MAX_CONFIGURATION_CHARS} if is_long else {},
    )


def _section(start: int, end: int, kind: str, headings: tuple[str, ...], symbol: str | None, signature: str) -> Section:
    return Section(start, end, ChunkKind(kind), headings, symbol, signature)


def _symbol(
    name: str,
    qualified_name: str,
    kind: str,
    start: int,
    end: int,
    signature: str,
    docstring: str,
    calls: tuple[str, ...],
    bases: tuple[str, ...],
) -> Symbol:
    return Symbol(name, qualified_name, FuncKind(kind), start, end, signature, docstring, calls, bases)
