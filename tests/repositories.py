"""Small git repositories of documentation, made commit by commit."""

import os
import subprocess
from pathlib import Path

AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
}


def git(repository: Path, *arguments: str, code: int = 0, **environment: str) -> str:
    """What a git command prints."""
    done = subprocess.run(
        ["git", "-C", repository, *arguments],
        env={**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def start(folder: Path) -> Path:
    """An empty repository."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder


def write(repository: Path, pages: dict[str, str | None]) -> None:
    """Write files, or remove those without a text."""
    for name, text in pages.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")


def commit(repository: Path, pages: dict[str, str | None]) -> str:
    """A commit with these changes; its id."""
    write(repository, pages)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(repository, "rev-parse", "HEAD").strip()
