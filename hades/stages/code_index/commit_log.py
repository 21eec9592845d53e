"""The commits before a commit, with the files that each touched; what two commits share is read once."""

from __future__ import annotations

from pathlib import Path

from hades.ingest.sources.git_history import Commit as GitCommit
from hades.ingest.sources.git_history import list_commits, name_as_newest, read_commits
from hades.ingest.sources.history_documents import KEPT_FILES
from hades.retrieval.code.history import Commit


class CommitLog:
    """Reads commits of a repository, merges left out. Contents are not read, so partial clones work."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._known: dict[str, GitCommit] = {}

    def before(self, commit: str) -> list[Commit]:
        """The commit and those before it, newest first, whose files carry the names that they have at the commit."""
        ids = list_commits(self._git_dir, commit)
        missing = [one for one in ids if one not in self._known]
        self._known |= {one.id: one for one in read_commits(self._git_dir, missing)}
        held = sorted((self._known[one] for one in ids if one in self._known), key=lambda one: one.at, reverse=True)
        return [
            Commit(one.id, one.at.timestamp(), one.message, paths[:KEPT_FILES]) for one, paths in name_as_newest(held)
        ]
