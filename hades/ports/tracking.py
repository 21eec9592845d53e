"""The registry of fitted things, as builds see it: runs with what went in and came out, versions, and aliases.

Every adapter keeps these promises:

- Logging the same data twice is logging it once: a run and a version are known by their tag `data_hash`.
- A run is finished or it did not happen. What a killed process left behind is marked so, and never answers a search.
- What an alias names cannot be deleted.
- What is fetched is, byte for byte, what was logged; anything else raises `TrackingError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from hades.errors import HadesError

DATA_HASH = "data_hash"


class TrackingError(HadesError):
    """Something the registry could not do: which run, version or alias, and the next step."""


@dataclass(frozen=True)
class Version:
    """One registered version of a fitted thing."""

    name: str
    version: str
    created: datetime
    run: str
    tags: Mapping[str, str]
    aliases: tuple[str, ...] = ()


class Tracker(Protocol):
    """Keeps what was fitted, and says what serves."""

    def log_run(
        self,
        experiment: str,
        name: str,
        *,
        params: Mapping[str, object],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        tags: Mapping[str, str],
    ) -> str:
        """Log one finished run with its files; its id. `tags` must hold `data_hash`: the same data is logged once."""
        ...

    def register(self, name: str, run: str, artifact: str) -> str:
        """Make a file of a run a version of `name`; its number. The run's tags become the version's."""
        ...

    def versions(self, name: str) -> list[Version]:
        """Every version, newest first; none for a name nobody registered."""
        ...

    def version_of(self, name: str, data_hash: str) -> str | None:
        """The version that was made of this data, or None."""
        ...

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """Add tags to a version."""
        ...

    def alias(self, name: str, alias: str) -> str | None:
        """The version an alias names, or None."""
        ...

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """Let an alias name a version from now on; one step, so readers see the old one or the new."""
        ...

    def fetch(self, name: str, version: str) -> Path:
        """The file of a version on this machine, checked against its hash. Read it; do not change it."""
        ...

    def delete_version(self, name: str, version: str) -> None:
        """Remove a version and its file; refuses one that an alias names."""
        ...

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """Delete all but the newest `keep` versions, those an alias names and those with a needed tag; what went."""
        ...


def delete_older(tracker: Tracker, name: str, keep: int, needed: Sequence[str]) -> list[str]:
    """What `keep_newest` does, by the other methods."""
    gone = [one for one in tracker.versions(name)[keep:] if not one.aliases and set(needed).isdisjoint(one.tags)]
    for one in gone:
        tracker.delete_version(name, one.version)
    return [one.version for one in gone]


def version_with_hash(versions: Sequence[Version], data_hash: str) -> str | None:
    """The newest of these versions that was made of this data, or None."""
    return next((one.version for one in versions if one.tags.get(DATA_HASH) == data_hash), None)
