"""One file of a workspace, from its bytes to a document with its units, symbols and imports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

from hades.ingest.parse_cache import PARSED_BY, ParseCache, parse_key
from hades.ingest.source_document import (
    CodeFile,
    Material,
    ModuleImport,
    RejectReason,
    Section,
    Symbol,
)
from hades.ingest.sources.code_facts import CodeFacts
from hades.ingest.sources.code_units import line_units, plain_facts
from hades.ingest.sources.confined import ConfinedPool, ParserStopped
from hades.ingest.sources.documents import read_prose
from hades.ingest.sources.file_languages import CONFIGURATION_LANGUAGES, PROSE_LANGUAGES, language_of
from hades.ingest.sources.import_forms import path_module, python_module
from hades.ingest.sources.reading import Unusable, decode, require_short_lines
from schemas.chunks import ChunkKind
from schemas.nodes import FuncKind
from schemas.source_kinds import SourceKind

PARSER = "hades.ingest.sources.code_parsing:parse"
UNPARSED = "unparsed"  # in the metadata of a document: why its file was not parsed
MAX_PARSED_CHARS = 1 << 20  # larger source files are generated; they are kept as text
MAX_CONFIGURATION_CHARS = 100_000  # more than that is data: its beginning is enough to find it by
# Ten times what ordinary code takes, on a slow machine.
_CPU_SECONDS = 1.5
_CPU_SECONDS_PER_MILLION_CHARS = 6.0
_RECORD_BYTES = 16
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)


class FileRecord(NamedTuple):
    """The key of what was parsed of a file, and the digest of all that its document depends on."""

    parsed: str
    digest: bytes


class FileReader:
    """Reads the files of one workspace; `is_package` says whether a folder is a Python package."""

    def __init__(
        self, name: str, is_package: Callable[[str], bool], go_mod: str = "", cache: ParseCache | None = None
    ) -> None:
        self._name, self._is_package = name, is_package
        self._cache = cache or ParseCache(None)
        declared = _GO_MODULE.search(go_mod)
        self._go_prefix = declared.group(1) if declared else ""

    def module(self, path: str) -> str:
        """The name a file is imported by."""
        is_python = language_of(path) == "python"
        return python_module(path, self._is_package, self._name) if is_python else path_module(path)

    @property
    def digest(self) -> str:
        """What documents depend on beside the bytes, the path and the module of their file."""
        return f"{PARSED_BY} {self._name} {self._go_prefix}"

    def record_of(self, path: str, data: bytes) -> FileRecord:
        """What a file is known by; raises `Unusable` for one that holds no text."""
        key = parse_key(decode(data), path, language_of(path) or "", self.module(path))
        return FileRecord(key, hashlib.blake2b(f"{key} {len(data)}".encode(), digest_size=_RECORD_BYTES).digest())

    def hold(self, record: FileRecord) -> None:
        """Keep what was parsed of a file that is not read again."""
        self._cache.hold(record.parsed)

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
            sections=tuple([_section(*fact) for fact in facts.sections]),
            code=CodeFile(
                path=path,
                language=language,
                module=facts.module,
                size=len(data),
                symbols=tuple([_symbol(*fact) for fact in facts.symbols]),
                imports=tuple([self._import(*fact) for fact in facts.imports]),
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
        key = parse_key(text, path, language, module)
        known = self._cache.find(key)
        if known is not None:
            return known
        allowed = _CPU_SECONDS + _CPU_SECONDS_PER_MILLION_CHARS * len(text) / 1e6
        try:
            facts: CodeFacts = parsers.call(text, path, language, module, cpu_seconds=allowed)
        except ParserStopped as stopped:
            return plain_facts(text, module, stopped.reason)
        self._cache.keep(key, facts)
        return facts

    def _import(
        self, module: str, name: str | None, alias: str | None, symbol: str | None, span: tuple[int, int]
    ) -> ModuleImport:
        if self._go_prefix and module.startswith(self._go_prefix + "/"):
            module = module[len(self._go_prefix) + 1 :].replace("/", ".")
        return ModuleImport(module, name, alias, symbol, span)


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
    call_spans: tuple[tuple[int, int], ...],
) -> Symbol:
    return Symbol(name, qualified_name, FuncKind(kind), start, end, signature, docstring, calls, bases, call_spans)
