"""A tenant's part of a registry that several share: every experiment and every name carries the tenant's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hades.ports.tracking import Tracker, Version, delete_older, version_with_hash


class TenantTracker:
    """A `Tracker` whose callers use plain names and reach no version of another tenant."""

    def __init__(self, tracker: Tracker, tenant: str) -> None:
        self._tracker, self._tenant = tracker, tenant

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
        """See `Tracker.log_run`."""
        mine = {**tags, "tenant": self._tenant}
        return self._tracker.log_run(
            self._mine(experiment), name, params=params, metrics=metrics, artifacts=artifacts, tags=mine
        )

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`."""
        return self._tracker.register(self._mine(name), run, artifact)

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        return [replace(one, name=name) for one in self._tracker.versions(self._mine(name))]

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        return version_with_hash(self.versions(name), data_hash)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`."""
        return delete_older(self, name, keep, needed)

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        self._tracker.tag(self._mine(name), version, tags)

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return self._tracker.alias(self._mine(name), alias)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        self._tracker.set_alias(self._mine(name), alias, version)

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        return self._tracker.fetch(self._mine(name), version)

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`."""
        self._tracker.delete_version(self._mine(name), version)

    def _mine(self, name: str) -> str:
        return f"{self._tenant}.{name}"
