"""The names of the service's metrics, written once: the exposition makes them, the dashboards and alerts ask for them.

Names and labels are promises to whoever watches the service. Only constants live here, so that nothing below the
surfaces needs a metrics library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True)
class Metric:
    """One family of series: its name as it is exposed, its labels in order, and what it says."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    says: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of the samples a scrape shows."""
        return tuple(self.name + end for end in _ENDINGS[self.kind])


_ENDINGS: dict[Kind, tuple[str, ...]] = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}

REQUESTS = Metric(
    "hades_requests_total", "counter", ("mode", "route", "status"), "Requests answered, by boundary, route and status."
)
REQUEST_SECONDS = Metric("hades_request_seconds", "histogram", ("mode", "route"), "Seconds a request took.")
TURN_SECONDS = Metric(
    "hades_turn_seconds", "histogram", ("recipe", "stage"), "Seconds a stage of a turn took; stage `turn` is the whole."
)
TURN_READS = Metric("hades_turn_reads", "histogram", ("recipe",), "Documents and edges that a turn read.")
REASONS = Metric("hades_reasons_total", "counter", ("reason",), "Trims and early stops of turns, by reason code.")
SNAPSHOT_AGE_SECONDS = Metric(
    "hades_snapshot_age_seconds", "gauge", (), "Seconds since the snapshot that serves was published."
)
SNAPSHOT_INFO = Metric("hades_snapshot_info", "gauge", ("snapshot",), "1 for the snapshot that serves.")
CACHE_HITS = Metric("hades_cache_hits_total", "counter", ("tier",), "Lookups a cache tier answered.")
CACHE_BYTES = Metric("hades_cache_bytes", "gauge", ("tier",), "Bytes a cache tier holds.")

METRICS: tuple[Metric, ...] = (
    REQUESTS,
    REQUEST_SECONDS,
    TURN_SECONDS,
    TURN_READS,
    REASONS,
    SNAPSHOT_AGE_SECONDS,
    SNAPSHOT_INFO,
    CACHE_HITS,
    CACHE_BYTES,
)

# Upper bounds of the histograms' buckets, in seconds and in reads.
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
READS_BUCKETS = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0)
