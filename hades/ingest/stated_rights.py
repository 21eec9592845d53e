"""Who may read the documents of a source: `.hades-rights.yaml` in or above a folder, and for a
remote source what its description or its rows state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pathspec import GitIgnoreSpec

from hades.ingest.sources.material import Material
from hades.ingest.sources.remote.ledger import ledger_of_mirror
from hades.snapshot.rights_file import NOBODY, PUBLIC, Readers, RightsError, reader_names

FILE = ".hades-rights.yaml"
_SEPARATOR = re.compile(r"[,;\n]")


class Rule(NamedTuple):
    """The readers of the files below a folder whose path fits."""

    folder: Path
    pattern: GitIgnoreSpec
    readers: Readers


def read_rules(
    stated: Mapping[str, Any],
    folder: Path,
    where: str,
) -> list[Rule]:
    """The rules of a mapping of patterns to readers; the last one that fits a file counts."""
    rules = []
    for pattern, names in stated.items():
        if not isinstance(pattern, str) or not pattern.strip() or pattern.strip()[0] in "#!":
            raise RightsError(
                f"{where}: {pattern!r} is no pattern of paths; write one as in .gitignore, "
                "such as hr/ or '*.xlsx'"
            )

        if not isinstance(names, str | list | tuple):
            raise RightsError(
                f"{where}: {pattern} has {names!r} as readers; expected public, a name or a list "
                "of names such as [hr, user:anna]"
            )

        rules.append(
            Rule(
                folder,
                GitIgnoreSpec.from_lines([pattern]),
                split_names(names),
            )
        )

    return rules


def readers_by(rules: Iterable[Rule], path: Path) -> Readers:
    """The readers of a file; everybody where no rule fits."""
    readers = PUBLIC
    for rule in rules:
        if rule.pattern.match_file(path.relative_to(rule.folder).as_posix()):
            readers = rule.readers

    return readers


def split_names(value: Any) -> Readers:
    """Names of readers as sources write them: a list, JSON, or text with commas."""
    if value is None:
        return NOBODY

    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise RightsError(f"{value[:80]!r} is no JSON list of readers; correct it") from None

    if isinstance(value, str):
        return reader_names(_SEPARATOR.split(value))

    return reader_names(value if isinstance(value, list | tuple) else [value])


def readers_of_row(row: Mapping[str, Any], columns: Sequence[str]) -> Readers | None:
    """Whom the columns of a row name; None where no column does so for the source."""
    if not columns:
        return None

    names: set[str] = set()
    for column in columns:
        names.update(split_names(row.get(column)))

    return reader_names(names)


class SourceRights:
    """Who may read the documents of the corpus at a place."""

    def __init__(self, place: str) -> None:
        path = Path(place)
        self._root = path if path.is_dir() else path.parent
        self._file = "" if path.is_dir() else path.name
        ledger = ledger_of_mirror(self._root)
        self._synced = None if ledger is None else ledger.rights()
        self._by_folder: dict[Path, list[Rule]] = {}

    def of_material(self, material: Material) -> Readers:
        """Who may read a document. A commit tells of files under any name they had, so where some
        file has rights, no commit is shown but to the owner.
        """
        if material.commit is None:
            return self.of_origin(material.origin)

        for folder in (self._root, *map(self._folder_of, _paths_of(material.commit))):
            self._rules_for(folder)

        return NOBODY if self.states_some else PUBLIC

    @property
    def states_some(self) -> bool:
        """Whether rules stood in a folder that was looked at."""
        return any(self._by_folder.values())

    def of_origin(self, origin: str) -> Readers:
        """Who may read the document with an origin, which may name a part of a file."""
        path = self._file or self._path_of(origin)
        if Path(path).name == FILE:
            return NOBODY
        if self._synced is not None:
            return self._synced.get(path, PUBLIC)

        return readers_by(self._rules_for(self._folder_of(path)), self._root / path)

    def _path_of(self, origin: str) -> str:
        path = origin
        while "#" in path and not (self._root / path).is_file():
            path = path.rpartition("#")[0]

        return path if (self._root / path).is_file() else origin

    def _folder_of(self, path: str) -> Path:
        return (self._root / path).parent

    def _rules_for(self, folder: Path) -> list[Rule]:
        """The rules of a folder, those of the folders above it first."""
        if folder not in self._by_folder:
            if folder == folder.parent:
                above = []
            else:
                above = self._rules_for(folder.parent)

            self._by_folder[folder] = [*above, *_rules_in(folder)]

        return self._by_folder[folder]


def _rules_in(folder: Path) -> list[Rule]:
    file = folder / FILE
    try:
        stated = yaml.safe_load(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise RightsError(
            f"{file} cannot be read ({problem}), so nothing was changed; write `pattern: readers` "
            "a line, a pattern that begins with * in quotes"
        ) from None

    if not isinstance(stated, dict):
        raise RightsError(
            f"{file} holds no mapping, so nothing was changed; write `pattern: readers` a line, "
            "such as `hr/: [hr, user:anna]`"
        )

    return read_rules(stated, folder, str(file))


def _paths_of(commit: Mapping[str, object]) -> list[str]:
    files: Any = commit["files"]
    return [path for path, _ in files]
