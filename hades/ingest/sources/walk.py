"""Walking a folder in a stable order: ignore files respected, links never followed, odd files not opened."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec, RegexPattern

from hades.ingest.source_document import RejectReason
from hades.ingest.sources.reading import Unusable, read_text, require_plain_name

_SKIPPED = (
    ".git .hg .svn .venv venv node_modules site-packages dist-packages __pycache__ .tox .nox .eggs .cache "
    ".mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .idea .vscode"
)
SKIPPED_FOLDERS = frozenset(_SKIPPED.split())
_MAX_IGNORE_BYTES = 1 << 20
# Patterns become backtracking expressions: this many stars between two slashes still match any name in milliseconds.
_MAX_STARS = 4


@dataclass(frozen=True)
class FileEntry:
    """A file below the root, or with `problem` an entry that must not be opened."""

    path: str
    relative: str  # forward slashes
    problem: Unusable | None = None


@dataclass(frozen=True)
class _Rules:
    """One `.gitignore` and the folder it speaks of."""

    folder: str
    patterns: tuple[RegexPattern, ...]


def walk(
    root: str, starts: Sequence[str] = ("",), respect_ignores: bool = True, exclude: Sequence[str] = ()
) -> Iterator[FileEntry]:
    """Every entry below the starting points (folders or files relative to the root), sorted within each folder.

    `exclude` are patterns in the form of `.gitignore`; no ignore file can take them back.
    """
    real_root = os.path.realpath(root)
    always = (_Rules("", _compile(exclude)),) if exclude else ()
    for start in starts:
        rules = _rules_above(root, start) if respect_ignores else ()
        full = os.path.join(root, start) if start else root
        if start and not os.path.isdir(full):
            found = _examine(full, start, real_root)
            if found is not None:
                yield found
            continue
        yield from _walk_folder(root, real_root, start, rules, respect_ignores, always)


def _walk_folder(
    root: str,
    real_root: str,
    start: str,
    rules: tuple[_Rules, ...],
    respect_ignores: bool,
    always: tuple[_Rules, ...],
) -> Iterator[FileEntry]:
    """Depth first with an explicit stack: folders may be nested deeper than calls can be."""
    pending: list[tuple[str, tuple[_Rules, ...], bool]] = [(start, rules, True)]
    while pending:
        relative, rules, is_folder = pending.pop()
        full = os.path.join(root, relative) if relative else root
        if not is_folder:
            found = _examine(full, relative, real_root)
            if found is not None:
                yield found
            continue
        try:
            entries = sorted(os.scandir(full), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            yield FileEntry(full, relative, Unusable(RejectReason.UNREADABLE, f"folder: {error.strerror}"))
            continue
        if relative and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        if respect_ignores:
            rules = _with_rules_of(full, relative, rules)
        for entry in entries:
            child = f"{relative}/{entry.name}" if relative else entry.name
            is_child_folder = entry.is_dir(follow_symlinks=False)
            if is_child_folder and entry.name in SKIPPED_FOLDERS:
                continue
            if not any(_is_ignored(child, is_child_folder, one) for one in (always, rules)):
                pending.append((child, rules, is_child_folder))


def _examine(full: str, relative: str, real_root: str) -> FileEntry | None:
    """A regular file, or the reason why the entry is none; a link to what is read in its own place is passed over."""
    try:
        mode = os.lstat(full).st_mode
        require_plain_name(relative)
        if stat.S_ISLNK(mode):
            target = os.path.realpath(full, strict=True)
            if target == real_root or target.startswith(real_root + os.sep):
                return None
            raise Unusable(RejectReason.UNREADABLE, "a symbolic link that leads out of the corpus is not followed")
    except OSError as error:
        return FileEntry(full, relative, Unusable(RejectReason.UNREADABLE, error.strerror or type(error).__name__))
    except Unusable as problem:
        return FileEntry(full, relative, problem)
    return FileEntry(full, relative)


def _rules_above(root: str, start: str) -> tuple[_Rules, ...]:
    rules: tuple[_Rules, ...] = ()
    parts = start.split("/")[:-1] if start else []
    for depth in range(len(parts) + 1 if start else 0):
        folder = "/".join(parts[:depth])
        rules = _with_rules_of(os.path.join(root, folder), folder, rules)
    return rules


def _with_rules_of(full: str, relative: str, rules: tuple[_Rules, ...]) -> tuple[_Rules, ...]:
    path = os.path.join(full, ".gitignore")
    if not os.path.lexists(path):
        return rules
    try:
        lines = read_text(path, _MAX_IGNORE_BYTES).splitlines()
    except Unusable:
        return rules  # an ignore file that is no text ignores nothing, as in git
    return (*rules, _Rules(relative, _compile(lines)))


def _compile(lines: Sequence[str]) -> tuple[RegexPattern, ...]:
    """The patterns git would take, last one first; malformed ones are passed over as git does, overgrown ones too."""
    patterns: list[RegexPattern] = []
    for line in lines:
        if any(part.count("*") > _MAX_STARS for part in line.split("/")) or line.count("**") > _MAX_STARS:
            continue
        line = re.sub(r"(?<=.)/\*\*/$", "/**/*/", line)  # folders below, which the library takes for the folder itself
        try:
            compiled = GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            continue
        patterns += [one for one in compiled if isinstance(one, RegexPattern) and one.include is not None]
    return tuple(reversed(patterns))


def _is_ignored(relative: str, is_folder: bool, rules: tuple[_Rules, ...]) -> bool:
    """The deepest `.gitignore` that says anything decides; within one file the last matching line does."""
    for rule in reversed(rules):
        below = relative[len(rule.folder) + 1 :] if rule.folder else relative
        for pattern in rule.patterns:
            if _matches_itself(pattern, below + "/" if is_folder else below):
                return bool(pattern.include)
    return False


def _matches_itself(pattern: RegexPattern, path: str) -> bool:
    """Whether a pattern means this very entry. The library also matches what lies below a folder it means.

    The folder was asked first, and if it was not ignored its pattern says nothing of its entries: `*` with `!*/` keeps
    folders but not what is in them. A match through a folder marks its slash as a group.
    """
    expression = pattern.regex
    if expression is None:
        return False
    for match in expression.finditer(path):
        if match.lastgroup is None:
            return expression.search(path.removesuffix("/")) is not None  # `b/**` is not b itself
        if match.end(match.lastgroup) == len(path):
            return True
    return False
