"""Index a folder before any build."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from hades.ingest.chunks import ChunkedText, cut_sections
from hades.ingest.parsers.facts import Lines, Section
from hades.ingest.sources.files import walk
from hades.ingest.sources.git import Commit as GitCommit
from hades.ingest.sources.git import (
    GitError,
    find_git_dir,
    list_commits,
    name_as_newest,
    read_commits,
    resolve_commit,
)
from hades.ingest.sources.material import Material
from hades.ingest.sources.workspace import KEPT_FILES, WorkspaceSource
from hades.ingest.stated_rights import SourceRights
from hades.ports.services import Tokenizer
from hades.retrieval.code.index import CodeIndex, CodeUnit, Commit, History
from hades.retrieval.code.words import Words
from hades.snapshot.rights_file import PUBLIC
from schemas.nodes import ChunkKind
from schemas.sources import SourceSpec


class CommitLog:
    """Reads commits of a repository, each once, merges left out. Contents are not read, so partial
    clones work.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._known: dict[str, GitCommit] = {}

    def before(self, newest: str) -> list[Commit]:
        """The commit and those before it, newest first, whose files carry the names that they have
        at the commit.
        """
        ids = list_commits(self._git_dir, newest)

        missing = []
        for commit_id in ids:
            if commit_id not in self._known:
                missing.append(commit_id)

        self._known |= {commit.id: commit for commit in read_commits(self._git_dir, missing)}
        known = []
        for commit_id in ids:
            if commit_id in self._known:
                known.append(self._known[commit_id])

        known.sort(key=lambda commit: commit.at, reverse=True)
        commits = []
        for commit, paths in name_as_newest(known):
            commits.append(
                Commit(
                    commit.id,
                    commit.at.timestamp(),
                    commit.message,
                    paths[:KEPT_FILES],
                )
            )

        return commits


def cut_units(material: Material, tokenizer: Tokenizer) -> Iterator[CodeUnit]:
    """Units of code whole, prose in pieces that an embedder reads: the cut that ingestion
    stores.
    """
    text = material.text
    if material.code:
        path = material.code.path
    else:
        path = material.origin

    sections = material.sections or (Section(0, len(text), ChunkKind.PROSE),)
    document = ChunkedText(
        path,
        material.title,
        text,
        sections,
        None,
        path,
    )
    lines = Lines(text)

    for section, start, end, _ in cut_sections(document, tokenizer):
        first = lines.at(start) + 1
        last = lines.at(end - 1) + 1
        yield CodeUnit(
            path,
            section.symbol or "",
            str(section.kind),
            first,
            last,
            text[start:end],
        )


def index_workspace(
    root: Path,
    tokenizer: Tokenizer,
    exclude: Sequence[str] = (),
) -> CodeIndex:
    """The files below a folder and, of a git repository, its commits, in memory; git and parsers
    work side by side. What is not for everybody is left out: who asks is not known here.
    """
    rights = SourceRights(str(root))
    with ThreadPoolExecutor(1) as pool:
        history = pool.submit(_read_history, root)
        words = Words()

        files: list[tuple[str, list[CodeUnit]]] = []
        for material in WorkspaceSource(root, exclude=exclude).read():
            if isinstance(material, Material) and rights.of_material(material) == PUBLIC:
                units = list(cut_units(material, tokenizer))
                files.append((material.origin, units))
                for unit in units:  # here, so that words are read while the next files are parsed
                    words.read(unit.symbol, unit.text)

        files.sort(key=lambda file: file[0])
        all_units = list(chain.from_iterable(units for _, units in files))
        commits = [] if rights.states_some else history.result()
        return CodeIndex(all_units, History(commits), words)


def _read_history(root: Path) -> list[Commit]:
    """Commits of the repository whose root is this folder; none where git cannot read it."""
    try:
        git_dir = find_git_dir(root)
        newest = None if git_dir is None else resolve_commit(git_dir)
        if git_dir is None or newest is None:
            return []

        return CommitLog(git_dir).before(newest)
    except GitError:
        return []


MAX_FILES = 5_000  # a larger folder is not read while someone waits; it is ingested first


class UnbuiltWorkspace:
    """Before the first build: indexes a folder when a question comes, and again when its files have
    changed.
    """

    def __init__(
        self,
        workspaces: Callable[[], Sequence[SourceSpec]],
        home: Path,
        tokenizer: Tokenizer,
    ) -> None:
        self._workspaces, self._tokenizer = workspaces, tokenizer
        self._here = home.parent
        # With the state of the files that it was made from.
        self._indexed: dict[Path, tuple[int, CodeIndex]] = {}
        self._lock = threading.Lock()

    def index(self) -> CodeIndex | None:
        """The index of the one folder to search; None where there is no workspace, or a very large
        one.
        """
        chosen = self._choose()
        if chosen is None:
            return None

        root, exclude = chosen
        with self._lock:
            state = _state(root, exclude)
            if state is None:
                return None
            if root not in self._indexed or self._indexed[root][0] != state:
                self._indexed[root] = state, index_workspace(root, self._tokenizer, exclude)

            return self._indexed[root][1]

    def _choose(self) -> tuple[Path, Sequence[str]] | None:
        """The ingested workspace around the home, else the only one, else the repository around the
        home.
        """
        known = {}
        for spec in self._workspaces():
            if Path(spec.path).is_dir():
                known[Path(spec.path)] = spec.exclude

        around = [self._here, *self._here.parents]
        for folder in around:
            if folder in known:
                return folder, known[folder]

        if len(known) == 1:
            return next(iter(known.items()))

        return next(((folder, ()) for folder in around if (folder / ".git").exists()), None)


def _state(root: Path, exclude: Sequence[str]) -> int | None:
    """A number that changes with the files; None for a folder with more files than are read at
    once.
    """
    file_states: list[tuple[str, int, int]] = []
    for file in walk(str(root), exclude=exclude):
        if file.problem is None:
            facts = os.lstat(file.path)
            file_states.append((file.relative, facts.st_mtime_ns, facts.st_size))

        if len(file_states) > MAX_FILES:
            return None

    return hash(tuple(file_states))
