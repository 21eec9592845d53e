"""The service's metrics in Prometheus' text form, under the names of `hades.telemetry.metrics`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from hades.telemetry import metrics as names
from schemas.retrieval import Retrieval

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """Counts requests and turns of one process; each service has its own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which no dashboard asks
        self._registry = CollectorRegistry()
        self._requests = _counter(names.REQUESTS, self._registry)
        self._request_seconds = _histogram(names.REQUEST_SECONDS, names.SECONDS_BUCKETS, self._registry)
        self._turn_seconds = _histogram(names.TURN_SECONDS, names.SECONDS_BUCKETS, self._registry)
        self._turn_reads = _histogram(names.TURN_READS, names.READS_BUCKETS, self._registry)
        self._reasons = _counter(names.REASONS, self._registry)
        self._age = _gauge(names.SNAPSHOT_AGE_SECONDS, self._registry)
        self._snapshot = _gauge(names.SNAPSHOT_INFO, self._registry)
        self._hits = _counter(names.CACHE_HITS, self._registry)
        self._bytes = _gauge(names.CACHE_BYTES, self._registry)

    def request(self, mode: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(mode, route, str(status)).inc()
        self._request_seconds.labels(mode, route).observe(seconds)

    def turn(self, answer: Retrieval) -> None:
        """Count a turn that was worked out."""
        for stage in answer.telemetry.stages:
            self._turn_seconds.labels(answer.recipe, stage.name).observe(stage.ms / 1000)
        self._turn_seconds.labels(answer.recipe, "turn").observe(answer.telemetry.ms / 1000)
        self._turn_reads.labels(answer.recipe).observe(answer.telemetry.reads)
        for reason in answer.reasons:
            self._reasons.labels(str(reason)).inc()

    def hit(self, tier: str) -> None:
        """Count an answer that a cache gave."""
        self._hits.labels(tier).inc()

    def follow_bytes(self, tier: str, size: Callable[[], float]) -> None:
        """Ask a cache for its size at each scrape."""
        self._bytes.labels(tier).set_function(size)

    def serves(self, snapshot: str, published: datetime | None, now: datetime) -> None:
        """Say which snapshot serves and how old it is."""
        self._snapshot.clear()
        if snapshot:
            self._snapshot.labels(snapshot).set(1)
        if published is not None:
            self._age.set(max(0.0, (now - published).total_seconds()))

    def text(self) -> bytes:
        """Everything, as a scrape reads it."""
        return generate_latest(self._registry)


def _counter(metric: names.Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.name, metric.says, metric.labels, registry=registry)


def _gauge(metric: names.Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.name, metric.says, metric.labels, registry=registry)


def _histogram(metric: names.Metric, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(metric.name, metric.says, metric.labels, buckets=buckets, registry=registry)
