"""JSON logs, audit, spans, lineage."""

from __future__ import annotations

import atexit
import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from hades.errors import SettingsError
from hades.files import append_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

    from schemas.answer import Retrieval


# Logs for machines: one JSON object a line on stderr, with the fields that lead from a line to a
# turn. Every module uses plain `logging`, and fields travel in `extra`. No line carries a secret,
# and no field carries a whole answer (requirement A78).
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
OURS = ("hades", "tasks", "flows", "models")
MASK = "**********"
_LONGEST_TEXT = 2_000  # characters of one field; a traceback may have more
_LONGEST_TRACE = 20_000
_SHORTEST_SECRET = 4  # masking every "a" would make lines unreadable and hide nothing
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_SHAPES = (
    re.compile(r"(hades_)[0-9a-f]{8}_[A-Za-z0-9_%-]+"),  # tokens of the service
    re.compile(r"((?i:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(//)[^/@\s:]+:[^/@\s]+(?=@)"),  # user and password of an address
    re.compile(r"((?i:password|passwd|secret|api[_-]?key|token)\"?\s*[=:]\s*\"?)[^\s\",}&]{4,}"),
)


def configure_logs(
    form: LogFormat = "text",
    level: LogLevel = "warning",
    secrets: Iterable[str] = (),
) -> None:
    """Write log lines to stderr in this form from now on; the last call holds.

    Our own loggers write from `level` on, those of libraries from warnings on. Each of the secrets
    is masked wherever it appears in a line.
    """
    root = logging.getLogger()
    for former in [handler for handler in root.handlers if isinstance(handler, _StderrHandler)]:
        root.removeHandler(former)

    handler = _StderrHandler()
    handler.setFormatter(LogLines(form, secrets))
    root.addHandler(handler)
    set_level(level)


def set_level(level: LogLevel) -> None:
    """Let our own loggers write from this level on."""
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())


def turn_fields(answer: Retrieval) -> dict[str, object]:
    """What a log line says of a turn: which, of what, at which cost. Neither the question nor the
    answer.
    """
    return {
        "query_id": answer.query_id,
        "snapshot": answer.snapshot,
        "recipe": answer.recipe,
        "ms": round(answer.telemetry.ms, 3),
        "reads": answer.telemetry.reads,
        "paths": len(answer.paths),
        "passages": len(answer.passages),
        "reasons": [str(reason) for reason in answer.reasons],
    }


class Masking:
    """Takes known secrets, and whatever has the shape of one, out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = set()
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                known.add(secret)

        longest_first = sorted(
            known,
            key=len,
            reverse=True,
        )
        pattern = "|".join(map(re.escape, longest_first))
        self._known = re.compile(pattern) if known else None

    def text(self, text: str) -> str:
        """The text without them."""
        if self._known is not None:
            text = self._known.sub(MASK, text)

        for shape in _SECRET_SHAPES:
            text = shape.sub(rf"\g<1>{MASK}", text)

        return text

    def value(self, value: object) -> object:
        """A field as JSON can hold it, masked and cut to a length."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(key): self.value(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(entry) for entry in value]

        return self.text(_shorten(str(value), _LONGEST_TEXT))


class LogLines(logging.Formatter):
    """Level, logger and message for people; or one JSON object: at, level, logger, message, fields,
    error.
    """

    def __init__(self, form: LogFormat, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._form = form
        self._masking = Masking(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The line without secrets, and in JSON without a line end in it."""
        if self._form == "text":
            return self._masking.text(super().format(record))

        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {
            name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS
        }
        values = {
            **fields,
            **extra,
            **fields,
        }  # the fields of every line come first and win
        line = {name: self._masking.value(value) for name, value in values.items()}

        if record.exc_info and record.exc_info[0] is not None:
            trace = _shorten(self.formatException(record.exc_info), _LONGEST_TRACE)
            line["error"] = {
                "type": record.exc_info[0].__name__,
                "trace": self._masking.text(trace),
            }

        return json.dumps(line, ensure_ascii=False)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Our handler, so that a second call finds the first; it writes to whatever stderr is at the
    time.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write to the stream as it is now."""
        self.stream = sys.stderr
        super().emit(record)


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


logger = logging.getLogger(__name__)
CallMode = Literal["RO", "RW"]


class Audit:
    """Appends {at, mode, path, status, ms} to `audit_ro.jsonl` or `audit_rw.jsonl` (requirements
    B35, B55).
    """

    def __init__(
        self,
        folder: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder, self._now = folder, now

    @contextmanager
    def call(self, mode: CallMode, path: str) -> Iterator[None]:
        """Write the line when the call ends, by return or exception; where there is no home after
        the call, none is made.
        """
        started = time.perf_counter()
        status = "ok"

        try:
            yield
        except BaseException as error:
            status = type(error).__name__
            raise
        finally:
            if self._folder.parent.exists():
                self.write(
                    mode,
                    path,
                    status,
                    (time.perf_counter() - started) * 1000,
                )

    def write(self, mode: CallMode, path: str, status: str, ms: float, **more: str) -> None:
        """Append the line of a call that has ended; `more` says who it was and which turn, where
        that is known.
        """
        line = {
            "at": self._now().isoformat(),
            "mode": mode,
            "path": path,
            "status": status,
            "ms": round(ms, 3),
            **more,
        }
        logger.debug("call", extra=line)

        try:
            append_line(
                self._folder / f"audit_{mode.lower()}.jsonl",
                line,
                0o640,
            )
        except OSError as error:  # a full or read-only disk must not cost the caller its answer
            logger.warning(
                "the audit line of %s %s could not be written: %s",
                mode,
                path,
                error,
            )


# Spans of turns and builds, sent to an OpenTelemetry collector where one is named. Nothing of
# OpenTelemetry is loaded before `send_to`: without a collector a span is two function calls.
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


_NO_MARK = Mark()


def send_to(endpoint: str) -> None:
    """Send spans to the OTLP/HTTP collector at this address (without `/v1/traces`); the first call
    decides.

    The name of the service and other attributes may be given by OTEL_SERVICE_NAME and
    OTEL_RESOURCE_ATTRIBUTES.
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
        exporter = OTLPSpanExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/traces",
            timeout=_SEND_SECONDS,
        )
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
    """A span around a piece of work, inside the one that is open; an exception marks it as
    failed.
    """
    tracer = _sending.tracer
    if tracer is None:
        yield _NO_MARK
        return

    with tracer.start_as_current_span(name) as opened:
        mark = Mark(opened)
        mark.note(**facts)
        yield mark


# Lineage events of builds are appended to `logs/lineage.jsonl` under the home, and sent to
# HADES_LINEAGE_URL where that is set. Lineage never stops a build: what cannot be delivered is
# logged as a warning.
FILE, FORMER = "lineage.jsonl", "lineage.former.jsonl"
FILE_BYTES = 16 << 20  # some fifty nights of a folder; a full file becomes FORMER, replacing it
_TIMEOUT_SECONDS = 5.0
Emit = Callable[[dict[str, Any]], None]


def emit_nothing(event: dict[str, Any]) -> None:
    """For a graph that was opened without settings."""


def emitter(folder: Path, url: str | None) -> Emit:
    """Appends events to a file of the folder, and sends them where an address is given."""

    def emit(event: dict[str, Any]) -> None:
        try:
            written = append_line(folder / FILE, event)
            if written.stat().st_size >= FILE_BYTES:
                written.replace(folder / FORMER)
        except OSError as error:
            logger.warning("a lineage event was not written: %s", error)

        if url is not None:
            _send(url, event)

    return emit


def _send(url: str, event: Mapping[str, Any]) -> None:
    import httpx

    try:
        httpx.post(
            url,
            json=event,
            timeout=_TIMEOUT_SECONDS,
        ).raise_for_status()
    except httpx.HTTPError as error:
        logger.warning(
            "a lineage event was not sent to %s: %s",
            url,
            error,
        )
