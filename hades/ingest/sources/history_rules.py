"""How much of a repository's history is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MAX_COMMITS = 2_000
MAX_AGE_DAYS = 1_826  # five years before the newest commit that is read


@dataclass(frozen=True)
class HistoryRules:
    """Bounds of a history; `cache` is a folder that keeps what was read."""

    max_commits: int = MAX_COMMITS
    max_age_days: int = MAX_AGE_DAYS
    keep_emails: bool = False
    cache: Path | None = None
