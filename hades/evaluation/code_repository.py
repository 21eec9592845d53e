"""A repository at one commit after another: what changed is parsed and its words are read, the rest is reused."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hades.ingest.source_document import Material
from hades.ingest.sources.git_command import run_git
from hades.ingest.sources.git_tree import GitTreeSource
from hades.ports.text import Tokenizer
from hades.retrieval.code.history import History
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.unit_words import Words
from hades.stages.code_index.commit_log import CommitLog
from hades.stages.code_index.cut_units import cut_units


@dataclass(frozen=True, eq=False)
class Checkout:
    """A repository at a commit, ready to be asked."""

    index: CodeIndex
    seconds: float
    parsed: int


class CodeRepository:
    """Builds the index of any commit of a repository; what two commits share is parsed once."""

    def __init__(self, git_dir: Path, tokenizer: Tokenizer) -> None:
        self.git_dir, self._tokenizer = git_dir, tokenizer
        self._parsed: dict[str, Material] = {}
        self._units: dict[tuple[str, str], list[CodeUnit]] = {}
        self._words = Words()
        self._log = CommitLog(git_dir)

    def commit_time(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        return int(run_git(self.git_dir, "log", "--max-count=1", "--format=%ct", commit))

    def at(self, commit: str) -> Checkout:
        """The index of a commit, with the history before it and nothing later."""
        began = time.perf_counter()
        known = len(self._parsed)
        units: list[CodeUnit] = []
        for one in GitTreeSource(self.git_dir, commit, parsed=self._parsed).read():
            if isinstance(one, Material):
                key = (one.code.path if one.code else one.origin, one.text)
                if key not in self._units:
                    self._units[key] = list(cut_units(one, self._tokenizer))
                units += self._units[key]
        index = CodeIndex(units, History(self._log.before(commit)), self._words)
        return Checkout(index, round(time.perf_counter() - began, 3), len(self._parsed) - known)
