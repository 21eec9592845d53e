"""The search index of a folder of code, made in memory: lexical and symbol search before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hades.ingest.source_document import Material
from hades.ingest.sources.git_command import GitError, find_git_dir, resolve_commit
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.text import Tokenizer
from hades.retrieval.code.history import Commit, History
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.unit_words import Words
from hades.stages.code_index.commit_log import CommitLog
from hades.stages.code_index.cut_units import cut_units


def index_workspace(
    root: Path, tokenizer: Tokenizer, exclude: Sequence[str] = (), scratch: Path | None = None
) -> CodeIndex:
    """The files below a folder and, of a git repository, its commits; git and the parsers work side by side.

    In the folder `scratch` what was parsed is kept: the next index of the folder parses only what changed.
    """
    with ThreadPoolExecutor(1) as pool:
        history = pool.submit(_read_history, root)
        words = Words()
        files: list[tuple[str, list[CodeUnit]]] = []
        for material in WorkspaceSource(root, exclude=exclude, scratch=scratch).read():
            if isinstance(material, Material):
                units = list(cut_units(material, tokenizer))
                files.append((material.origin, units))
                for unit in units:  # here, so that words are read while the next files are parsed
                    words.read(unit.symbol, unit.text)
        files.sort(key=lambda one: one[0])
        return CodeIndex([unit for _, units in files for unit in units], History(history.result()), words)


def _read_history(root: Path) -> list[Commit]:
    """Commits of the repository whose root is this folder; none where git cannot read it."""
    try:
        git_dir = find_git_dir(root)
        newest = None if git_dir is None else resolve_commit(git_dir)
        return [] if git_dir is None or newest is None else CommitLog(git_dir).before(newest)
    except GitError:
        return []
