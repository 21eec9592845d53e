"""Where the tiers of a graph lie, and how forgetting reaches them in every process.

A small file counts the times that something was forgotten. Its number is part of every key and is looked at before
every look-up, so that what was kept before is never found again, whichever process holds it.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from hades.cache.disk import DiskCache
from hades.settings import CacheSettings


@dataclass(frozen=True)
class CachePlace:
    """The folders of the two tiers on disk, and the file that counts acts of forgetting."""

    nvme: Path
    reliable: Path
    generation_file: Path

    @classmethod
    def under(cls, home: Path, settings: CacheSettings | None = None) -> CachePlace:
        """The folders that the settings name, else those under the home."""
        chosen, folder = settings or CacheSettings.model_construct(), home / "cache"
        return cls(
            nvme=chosen.nvme_cache_path or folder / "nvme",
            reliable=chosen.reliable_store_path or folder / "reliable",
            generation_file=folder / "generation",
        )

    def generation(self) -> int:
        """How often something was forgotten; cheap enough to ask before every look-up."""
        try:
            return int(self.generation_file.read_text("ascii"))
        except FileNotFoundError:
            return 0
        except ValueError:  # the file is damaged: no entry has this number
            return -1

    def forget_everything(self) -> int:
        """Make all that is kept unreachable in every process, then delete it from disk; how many entries went.

        In this order: whoever stores an answer meanwhile looks at the number afterwards and takes it back.
        """
        self._advance()
        gone = 0
        for folder in (self.nvme, self.reliable):
            if folder.is_dir():
                tier = DiskCache(folder)
                gone += tier.clear()
                tier.close()
        return gone

    def _advance(self) -> None:
        self.generation_file.parent.mkdir(parents=True, exist_ok=True)
        with self.generation_file.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            partial = self.generation_file.with_suffix(".new")
            with partial.open("w", encoding="ascii") as file:
                file.write(str(self.generation() + 1))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.generation_file)
