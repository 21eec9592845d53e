"""The commits before a commit, with the files that each touched; what two commits share is read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hades.ingest.sources.git_command import run_git
from hades.retrieval.code.history import Commit

MAX_COMMITS = 2_000
_FEW = 5  # commits that are read one by one; more are read with all that the list holds
_MARK, _END = "\x01", "\x02"


@dataclass(frozen=True)
class _Record:
    """A commit as git tells it; `renames` are (old, new)."""

    time: float
    message: str
    paths: tuple[str, ...]
    renames: tuple[tuple[str, str], ...]


class CommitLog:
    """Reads commits of a repository, merges left out. Contents are not read, so partial clones work."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._known: dict[str, _Record] = {}

    def before(self, commit: str) -> list[Commit]:
        """The commit and those before it, newest first, whose files carry the names that they have at the commit."""
        listed = run_git(self._git_dir, "rev-list", "--no-merges", "--date-order", f"--max-count={MAX_COMMITS}", commit)
        ids = listed.decode().split()
        missing = [one for one in ids if one not in self._known]
        if len(missing) > _FEW:
            self._read(commit, MAX_COMMITS)
        else:
            for one in missing:
                self._read(one, 1)
        return list(_follow_renames((one, self._known[one]) for one in ids))

    def _read(self, commit: str, count: int) -> None:
        shape = f"--format={_MARK}%H %ct{_END}%B{_END}"
        arguments = ("--no-merges", "--date-order", "-M100%", "--name-status", f"--max-count={count}", shape, commit)
        for record in run_git(self._git_dir, "log", *arguments).decode("utf-8", "replace").split(_MARK)[1:]:
            head, message, names = record.split(_END, 2)
            identifier, seconds = head.split()
            rows = [line.split("\t") for line in names.strip().split("\n") if "\t" in line]
            renames = tuple((row[1], row[2]) for row in rows if len(row) == 3)
            self._known[identifier] = _Record(float(seconds), message.strip(), tuple(row[-1] for row in rows), renames)


def _follow_renames(records: Iterator[tuple[str, _Record]]) -> Iterator[Commit]:
    names: dict[str, str] = {}
    for identifier, record in records:
        yield Commit(identifier, record.time, record.message, tuple(names.get(path, path) for path in record.paths))
        names |= {old: names.get(new, new) for old, new in record.renames}
