"""Which files of a workspace are read, and as what: code, documentation, configuration."""

from __future__ import annotations

from pathlib import PurePosixPath

from hades.ingest.sources.documents import prose_language
from hades.ingest.sources.languages import BY_SUFFIX

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
