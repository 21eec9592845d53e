"""Small git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.org" for role in ("AUTHOR", "COMMITTER")},
}


class Repository:
    """A repository in a folder; commits get one day after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._day = folder, 0
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        """Run a git command in it."""
        moment = f"2024-01-{1 + self._day:02d}T12:00:00+0000"
        env = {**os.environ, **_NOBODY, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=env, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def commit(self, message: str, files: dict[str, str | bytes | None]) -> str:
        """Write files (None removes one) and commit them; the id of the commit."""
        for path, content in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                target.unlink()
            else:
                target.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        self._day += 1
        return self.git("rev-parse", "HEAD")
