"""Spans of turns and builds, sent to an OpenTelemetry collector where one is named.

Nothing of OpenTelemetry is loaded before `send_to`: without a collector a span is two function calls.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from hades.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

Fact: TypeAlias = str | bool | int | float | Sequence[str]

SERVICE = "hades"
_SEND_SECONDS = 5.0  # a collector that does not answer must not hold a command that is done


@dataclass
class _Sending:
    """Where spans go: one way a process, as in OpenTelemetry itself."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    provider: TracerProvider | None = None
    tracer: Tracer | None = None


_sending = _Sending()


class Mark:
    """A span that is open; facts that are known only at its end are noted on it."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def note(self, **facts: Fact) -> None:
        """Add attributes, under `hades.`."""
        if self._span is not None:
            self._span.set_attributes({f"hades.{name}": fact for name, fact in facts.items()})


_UNSEEN = Mark()


def send_to(endpoint: str) -> None:
    """Send spans to the OTLP/HTTP collector at this address (without `/v1/traces`); the first call decides.

    The name of the service and other attributes may be given by OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    """
    with _sending.lock:
        if _sending.provider is not None:
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise SettingsError(
                f"OTEL_EXPORTER_OTLP_ENDPOINT is {endpoint!r}, but {error.name} is not installed; "
                "install hades-graphrag[otel], or unset it"
            ) from error
        resource = Resource({SERVICE_NAME: SERVICE}).merge(OTELResourceDetector().detect())
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_SEND_SECONDS)
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        _sending.provider, _sending.tracer = provider, provider.get_tracer(SERVICE)
        atexit.register(stop_sending)


def stop_sending() -> None:
    """Send what is left, wait for it a short while, and send nothing more."""
    with _sending.lock:
        provider, _sending.provider, _sending.tracer = _sending.provider, None, None
    if provider is not None:
        provider.force_flush(int(_SEND_SECONDS * 1000))
        provider.shutdown()


@contextmanager
def span(name: str, **facts: Fact) -> Iterator[Mark]:
    """A span around a piece of work, inside the one that is open; an exception marks it as failed."""
    tracer = _sending.tracer
    if tracer is None:
        yield _UNSEEN
        return
    with tracer.start_as_current_span(name) as opened:
        mark = Mark(opened)
        mark.note(**facts)
        yield mark
