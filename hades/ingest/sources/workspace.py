"""Folder of code with its commits."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from hades.ingest.formats.registry import FORMATS
from hades.ingest.parsers.facts import CodeFacts, ModuleImport, Section, line_units, plain_facts
from hades.ingest.parsers.languages import CODE_SUFFIXES, path_module, python_module
from hades.ingest.sources.confined import ConfinedPool, ParserStopped, in_order, reading_workers
from hades.ingest.sources.documents import front_matter, prose_language, read_prose, stated_date
from hades.ingest.sources.files import (
    MAX_TEXT_BYTES,
    FileEntry,
    SourceError,
    Unusable,
    decode,
    read_bytes,
    read_text,
    require_short_lines,
    show,
    walk,
)
from hades.ingest.sources.git import (
    Commit,
    dates_added,
    find_git_dir,
    name_as_newest,
    read_history,
)
from hades.ingest.sources.material import CodeFile, Material, RejectedInput, RejectReason
from hades.settings.tree import HistorySettings
from hades.text.word_lists import word_set
from schemas.nodes import CHANGED_FILES, ChunkKind
from schemas.sources import SourceKind, SourceSpec

_LISTED_FILES = 30
KEPT_FILES = 200


def _material(commit: Commit, present_paths: Sequence[str]) -> Material:
    """The document of a commit; `now` are the paths that its files have today, which edges are made
    from.
    """
    paths = [change.path for change in commit.changes]
    if len(paths) > _LISTED_FILES:
        ending = f" and {len(paths) - _LISTED_FILES} more"
    else:
        ending = ""

    if paths:
        listed = f"{CHANGED_FILES}{', '.join(paths[:_LISTED_FILES])}{ending}"
    else:
        listed = ""

    text = f"{commit.message or commit.id[:12]}{listed}".encode("utf-8", "replace").decode()
    touched = tuple(
        (path, change.names) for change, path in zip(commit.changes, present_paths, strict=True)
    )
    heading = text.partition("\n")[0].strip()[:200] or commit.id[:12]
    return Material(
        origin=f"commit:{commit.id}",
        source=SourceKind.WORKSPACE,
        text=text,
        mime="text/x-git-commit",
        created=commit.at,
        sections=(Section(0, len(text), ChunkKind.COMMIT, (heading,)),),
        commit={
            "id": commit.id,
            "author": commit.author,
            "files": touched[:KEPT_FILES],
        },
        metadata={"author": commit.author},
    )


PARSER = "hades.ingest.parsers.python:parse"
UNPARSED = "unparsed"  # in the metadata of a document: why its file was not parsed
MAX_PARSED_CHARS = 1 << 20  # larger source files are generated; they are kept as text
MAX_CONFIGURATION_CHARS = 100_000  # more than that is data: its beginning is enough to find it by
# Ten times what ordinary code takes, on a slow machine.
_CPU_SECONDS = 1.5
_CPU_SECONDS_PER_MILLION_CHARS = 6.0
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)


def open_source(
    spec: SourceSpec,
    *,
    history: HistorySettings,
    workers: int,
) -> WorkspaceSource:
    """The workspace of a description; `history` says how far to read commits, where they are
    wanted.
    """
    rules = history if spec.history else None
    return WorkspaceSource(
        Path(spec.path),
        history=rules,
        exclude=spec.exclude,
        workers=workers,
    )


class WorkspaceSource:
    """Code and documentation below a folder; other files are passed over.

    `parsed` is for a commit that was checked out: it keeps documents by content, so that what did
    not change since another commit is not parsed again, and ignore files say nothing of what is
    tracked.
    """

    kind = SourceKind.WORKSPACE
    mirrors = True
    total: int | None = None

    def __init__(
        self,
        root: Path,
        history: HistorySettings | None = None,
        exclude: Sequence[str] = (),
        workers: int = 0,
        parsed: dict[str, Material] | None = None,
    ) -> None:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder; expected the root of a code workspace")

        self._root = root.resolve()
        self.corpus = self._root.name
        self.place = str(self._root)
        self._exclude = tuple(exclude)
        self._workers = reading_workers(workers)
        self._history, self._parsed = history, parsed
        self._is_package = cache(lambda folder: (self._root / folder / "__init__.py").is_file())
        self._go_prefix = ""  # what files of Go import each other by

        with suppress(Unusable):
            declared = _GO_MODULE.search(read_text(os.fspath(self._root / "go.mod"), 1 << 20))
            self._go_prefix = declared.group(1) if declared else ""

    def read(self) -> Iterator[Material | RejectedInput]:
        """Files in the order of their paths, dated by the commit that added them; then commits,
        newest first.
        """
        if self._history is not None:
            git_dir = find_git_dir(self._root)
        else:
            git_dir = None

        if git_dir and self._history:
            commits = read_history(git_dir, rules=self._history)
        else:
            commits = []

        history = list(name_as_newest(commits))
        added = dates_added(history)
        files = list(self._files())
        self.total = len(files) + len(history)

        with ConfinedPool(PARSER, self._workers) as parsers:
            for outcome in in_order(
                partial(self._outcome, parsers),
                files,
                self._workers,
            ):
                if (
                    isinstance(outcome, Material)
                    and outcome.created is None
                    and outcome.origin in added
                ):
                    yield replace(outcome, created=added[outcome.origin])
                else:
                    yield outcome

        yield from (_material(commit, present_paths) for commit, present_paths in history)

    def _files(self) -> Iterator[FileEntry]:
        for entry in walk(
            str(self._root),
            respect_ignores=self._parsed is None,
            exclude=self._exclude,
        ):
            if entry.problem is not None or language_of(entry.relative) is not None:
                yield entry

    def _outcome(self, parsers: ConfinedPool, file: FileEntry) -> Material | RejectedInput:
        try:
            if file.problem is not None:
                raise file.problem

            content = read_bytes(file.path, MAX_TEXT_BYTES)
            if self._parsed is None:
                return self._read_file(file.relative, content, parsers)

            key = (
                f"{hashlib.sha256(content).hexdigest()} {self._module(file.relative)} "
                f"{file.relative}"
            )
            if key not in self._parsed:
                self._parsed[key] = self._read_file(file.relative, content, parsers)

            return self._parsed[key]
        except Unusable as problem:
            return problem.rejected(SourceKind.WORKSPACE, show(file.relative))

    def _module(self, path: str) -> str:
        """The name a file is imported by."""
        is_python = language_of(path) == "python"
        if is_python:
            return python_module(
                path,
                self._is_package,
                self._root.name,
            )

        return path_module(path)

    def _read_file(
        self,
        path: str,
        content: bytes,
        parsers: ConfinedPool,
    ) -> Material:
        """The document of a file; raises `Unusable` for one that holds no text."""
        language = language_of(path)
        text = decode(content)
        assert language is not None
        fields: dict[str, Any] = {
            "origin": path,
            "uri": path,
            "source": SourceKind.WORKSPACE,
        }

        if language in PROSE_LANGUAGES:
            if language == "markdown":
                created = stated_date(front_matter(text))
            else:
                created = None

            code = CodeFile(path, language, "", len(content))
            prose = read_prose(text, path, language)
            return Material(
                **fields,
                **prose._asdict(),
                created=created,
                code=code,
            )

        require_short_lines(text)
        fields |= {
            "text": text,
            "mime": f"text/x-{language}",
        }
        # Configuration has units of lines; what lies beyond the limit is named in the metadata.
        if language in CONFIGURATION_LANGUAGES:
            if not text.strip():
                raise Unusable(
                    RejectReason.EMPTY,
                    "no text",
                    len(content),
                )

            is_long = len(text) > MAX_CONFIGURATION_CHARS
            return Material(
                **fields,
                title=path,
                sections=line_units(
                    text[:MAX_CONFIGURATION_CHARS],
                    path,
                    "text",
                ),
                code=CodeFile(path, language, "", len(content), prose=()),
                metadata={"indexed_chars": MAX_CONFIGURATION_CHARS} if is_long else {},
            )

        facts = self._parse(text, path, language, parsers)
        code = CodeFile(
            path,
            language,
            facts.module,
            size=len(content),
            symbols=facts.symbols,
            imports=tuple(map(self._without_prefix, facts.imports)),
            prose=facts.prose,
        )
        return Material(
            **fields,
            title=facts.module or path,
            sections=facts.sections,
            code=code,
            metadata={UNPARSED: facts.problem} if facts.problem else {},
        )

    def _parse(
        self,
        text: str,
        path: str,
        language: str,
        parsers: ConfinedPool,
    ) -> CodeFacts:
        """What the parser finds; a file that it cannot take is kept as plain text."""
        module = self._module(path)
        if not text.strip():
            return CodeFacts(module)
        if len(text) > MAX_PARSED_CHARS:
            return plain_facts(
                text,
                module,
                f"longer than {MAX_PARSED_CHARS} characters",
            )

        allowed = _CPU_SECONDS + _CPU_SECONDS_PER_MILLION_CHARS * len(text) / 1e6
        try:
            facts: CodeFacts = parsers.call(
                text,
                path,
                language,
                module,
                cpu_seconds=allowed,
            )
        except ParserStopped as stopped:
            return plain_facts(text, module, str(stopped))

        return facts

    def _without_prefix(self, fact: ModuleImport) -> ModuleImport:
        """An import of the workspace's own Go module, by the path of the folder."""
        if self._go_prefix and fact.module.startswith(self._go_prefix + "/"):
            return fact._replace(module=fact.module[len(self._go_prefix) + 1 :].replace("/", "."))
        return fact


def holds_mostly_code(root: Path) -> bool:
    """Whether a folder has at least as many files of code as pages, and no document that only
    `documents` reads.
    """
    suffixes = Counter(os.path.splitext(file.relative)[1].lower() for file in walk(os.fspath(root)))
    pages = sum(
        count for suffix, count in suffixes.items() if suffix and prose_language(f"a{suffix}")
    )
    code = sum(suffixes[suffix] for suffix in CODE_SUFFIXES)
    return code >= max(1, pages) and suffixes.keys().isdisjoint(FORMATS)


_CONFIGURATION = {
    "ini": ".ini .cfg .conf .properties .env",
    "shell": ".sh .bash .zsh",
    "yaml": ".yaml .yml",
    "make": ".mk",
    "docker": ".dockerfile",
    "batch": ".bat",
    "powershell": ".ps1",
    **{name: f".{name}" for name in ("toml", "json", "sql", "cmake")},
}
_CONFIGURATION_SUFFIXES: dict[str, str] = {}
for _name, _suffixes in _CONFIGURATION.items():
    _CONFIGURATION_SUFFIXES |= dict.fromkeys(_suffixes.split(), _name)
_CONFIGURATION_NAMES = {
    "Dockerfile": "docker",
    "Containerfile": "docker",
    "Makefile": "make",
    "GNUmakefile": "make",
}
CONFIGURATION_LANGUAGES = frozenset(
    {*_CONFIGURATION_SUFFIXES.values(), *_CONFIGURATION_NAMES.values()}
)
PROSE_LANGUAGES = frozenset({"markdown", "rst", "text"})
# Written by package managers: large, and nobody asks what they say.
_GENERATED_NAMES = word_set(
    """
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml composer.lock
    """
)
_BARE_NAMES = word_set(
    """
    README CHANGELOG CHANGES CONTRIBUTING HISTORY NEWS NOTES TODO
    """
)


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
