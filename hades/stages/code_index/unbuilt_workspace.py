"""Questions before the first build: of a workspace that was ingested, or of the repository around HADES_HOME."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hades.ingest.sources.walk import walk
from hades.ports.text import Tokenizer
from hades.retrieval.code.index import CodeIndex
from hades.stages.code_index.workspace_index import index_workspace
from schemas.sources import SourceSpec

MAX_FILES = 5_000  # a larger folder is not read while someone waits; it is ingested first


@dataclass(frozen=True, eq=False)
class _IndexedFolder:
    """An index and the state of the files that it was made from."""

    state: int
    index: CodeIndex


class UnbuiltWorkspace:
    """Indexes a folder when the first question comes, and again when its files have changed.

    What was parsed is kept in the home, where there is one: the next process parses only what changed.
    """

    def __init__(self, workspaces: Callable[[], Sequence[SourceSpec]], home: Path, tokenizer: Tokenizer) -> None:
        self._workspaces, self._home, self._tokenizer = workspaces, home, tokenizer
        self._here = home.parent
        self._held: dict[Path, _IndexedFolder] = {}
        self._lock = threading.Lock()

    def index(self) -> CodeIndex | None:
        """The index of the one folder to search; None where there is no workspace, or a very large one."""
        chosen = self._choose()
        if chosen is None:
            return None
        root, exclude = chosen
        with self._lock:
            state = _state(root, exclude)
            if state is None:
                return None
            held = self._held.get(root)
            if held is None or held.state != state:
                scratch = self._home / "cache" if self._home.is_dir() else None
                index = index_workspace(root, self._tokenizer, exclude, scratch)
                held = self._held[root] = _IndexedFolder(state, index)
            return held.index

    def _choose(self) -> tuple[Path, Sequence[str]] | None:
        """The ingested workspace around the home, else the only one, else the repository around the home."""
        known = {Path(spec.path): spec.exclude for spec in self._workspaces() if Path(spec.path).is_dir()}
        around = [self._here, *self._here.parents]
        for folder in around:
            if folder in known:
                return folder, known[folder]
        if len(known) == 1:
            return next(iter(known.items()))
        return next(((folder, ()) for folder in around if (folder / ".git").exists()), None)


def _state(root: Path, exclude: Sequence[str]) -> int | None:
    """A number that changes with the files; None for a folder with more files than are read at once."""
    seen: list[tuple[str, int, int]] = []
    for found in walk(str(root), exclude=exclude):
        if found.problem is None:
            facts = os.lstat(found.path)
            seen.append((found.relative, facts.st_mtime_ns, facts.st_size))
        if len(seen) > MAX_FILES:
            return None
    return hash(tuple(seen))
