"""What the tiers did and hold, for telemetry: hit rate and bytes of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hades.cache.tier import Counts, MemoryTier


@dataclass(frozen=True)
class TierReport:
    """One tier. Bytes and entries are what it holds now, for all processes; the counts are of this process."""

    tier: str
    entries: int
    bytes: int
    max_bytes: int | None
    asked: int
    hits: int
    hit_rate: float
    stored: int = 0
    evicted: int = 0
    damaged: int = 0
    failed: int = 0


@dataclass(frozen=True)
class CacheReport:
    """All tiers, fastest first. `hit_rate` is the share of look-ups that the store did not have to answer."""

    tiers: tuple[TierReport, ...]
    asked: int
    hits: int
    hit_rate: float

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def tier_report(
    tier: MemoryTier, counts: Counts, entries: int = 0, held: int = 0, limit: int | None = None
) -> TierReport:
    """The report of a tier from what it counted."""
    return TierReport(
        tier.name, entries, held, limit, counts.asked, counts.hits, rate(counts.hits, counts.asked), counts.stored,
        counts.evicted, counts.damaged, counts.failed,
    )  # fmt: skip


def rate(part: int, whole: int) -> float:
    """A share, 0 of nothing."""
    return part / whole if whole else 0.0
