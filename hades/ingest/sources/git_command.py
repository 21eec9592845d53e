"""The git command, confined: no network, no prompt, no hooks, no programs that a repository's configuration names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hades.ingest.sources.reading import SourceError
from hades.settings.activation import child_environment

_SECONDS = 120.0
_SAFE = (
    *("-c", "protocol.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "safe.directory=*", "-c", "core.quotePath=false", "-c", "diff.renameLimit=200", "--no-replace-objects"),
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}


class GitError(SourceError):
    """The git command failed or is missing."""


def find_git_dir(folder: Path) -> Path | None:
    """The repository whose root is this folder, also for linked work trees; None where there is none or no git."""
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return None
    try:
        found = run_git(folder / ".git" if (folder / ".git").is_dir() else folder, "rev-parse", "--absolute-git-dir")
    except GitError:
        return None
    return Path(os.fsdecode(found).strip())


def resolve_commit(git_dir: Path, name: str = "HEAD") -> str | None:
    """The id of a commit; None when the name means none, as in a repository without commits."""
    try:
        return run_git(git_dir, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except GitError:
        return None


def is_ancestor(git_dir: Path, older: str, newer: str) -> bool:
    """Whether one commit is part of the history of another."""
    try:
        run_git(git_dir, "merge-base", "--is-ancestor", older, newer)
    except GitError:
        return False
    return True


def run_git(git_dir: Path, *arguments: str) -> bytes:
    """What a git command prints."""
    try:
        done = subprocess.run(
            _command(git_dir, arguments),
            capture_output=True,
            check=False,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {arguments[0]} in {git_dir} did not run: {error}") from error
    if done.returncode:
        raise GitError(f"git {arguments[0]} in {git_dir} failed: {_first_line(done.stderr)}; expected a repository")
    return done.stdout


@contextmanager
def stream_git(git_dir: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """The output of a git command while it runs; a command that fails or is left early raises nothing by itself."""
    child = subprocess.Popen(
        _command(git_dir, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    assert child.stdout is not None
    try:
        yield child.stdout
    finally:
        child.stdout.close()
        child.kill()
        child.wait()


class BlobReader:
    """File contents by their ids, from one `git cat-file` process."""

    def __init__(self, git_dir: Path) -> None:
        self._child = subprocess.Popen(
            _command(git_dir, ("cat-file", "--batch")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )

    def read(self, blob: str) -> bytes | None:
        """The bytes of a blob; None when the repository does not hold it, as in a partial clone."""
        sink, source = self._child.stdin, self._child.stdout
        assert sink is not None
        assert source is not None
        sink.write(f"{blob}\n".encode())
        sink.flush()
        header = source.readline().split()
        if len(header) != 3:
            return None
        data = source.read(int(header[2]))
        source.read(1)
        return data

    def close(self) -> None:
        """End the process."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        self._child.kill()
        self._child.wait()


def _command(git_dir: Path, arguments: tuple[str, ...]) -> list[str]:
    place = ("--git-dir", os.fspath(git_dir)) if _is_git_dir(git_dir) else ("-C", os.fspath(git_dir))
    return ["git", *_SAFE, *place, *arguments]


def _is_git_dir(path: Path) -> bool:
    return ((path / "objects").is_dir() and (path / "HEAD").exists()) or (path / "commondir").exists()


def _environment() -> dict[str, str]:
    kept = child_environment(without="GIT_")
    return {**kept, **_ENVIRONMENT}


def _first_line(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip().partition("\n")[0][:200]
