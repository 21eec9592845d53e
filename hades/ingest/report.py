"""What a run of ingestion did, for people and for scripts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hades.ports.progress import Progress, silent

__all__ = ["IngestReport", "Progress", "silent"]

MAX_LISTED = 100


@dataclass
class IngestReport:
    """Counts of one run; everything that was not done is counted too."""

    source: str
    read: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    set_aside: list[dict[str, str]] = field(default_factory=list)  # the first MAX_LISTED of them, with their reasons
    chunks: int = 0
    embedded: int = 0
    derived: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "source": self.source,
            "documents": {
                "read": self.read,
                "new": self.new,
                "changed": self.changed,
                "unchanged": self.unchanged,
                "removed": self.removed,
            },
            "quarantined": dict(sorted(self.quarantined.items())),
            "set_aside": self.set_aside,
            "chunks": self.chunks,
            "embedded": self.embedded,
            "derived": self.derived,
            "seconds": {phase: round(value, 3) for phase, value in self.seconds.items()},
        }
