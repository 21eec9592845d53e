"""Logs for machines: one JSON object a line on stderr, with the fields that lead from a line to a turn.

Plain `logging` underneath: every module logs as it did, and fields travel in `extra` or are bound around a piece of
work. No line carries a secret, and no field carries a whole answer (requirement A78).
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from schemas.retrieval import Retrieval

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

OURS = ("hades", "tasks", "flows", "models")
MASK = "**********"
_LONGEST_TEXT = 2_000  # characters of one field; a traceback may have more
_LONGEST_TRACE = 20_000
_SHORTEST_SECRET = 4  # masking every "a" would make lines unreadable and hide nothing
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SHAPES = (
    re.compile(r"(hades_)[0-9a-f]{8}_[A-Za-z0-9_%-]+"),  # tokens of the service
    re.compile(r"((?i:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(//)[^/@\s:]+:[^/@\s]+(?=@)"),  # user and password of an address
    re.compile(r"((?i:password|passwd|secret|api[_-]?key|token)\"?\s*[=:]\s*\"?)[^\s\",}&]{4,}"),
)

_NOTHING: MappingProxyType[str, object] = MappingProxyType({})
_bound: ContextVar[MappingProxyType[str, object]] = ContextVar("fields of log lines", default=_NOTHING)


def configure_logs(
    form: LogFormat = "text", level: LogLevel = "warning", secrets: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Write log lines to stderr (or a stream) in this form from now on; called again, the last call holds.

    Our own loggers speak from `level` on, those of libraries from warnings on. Each of the secrets is masked wherever
    it appears in a line.
    """
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, _Lines)]:
        root.removeHandler(handler)
    lines = _Lines(stream)
    lines.setFormatter(JsonLines(secrets) if form == "json" else TextLines(secrets))
    root.addHandler(lines)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Give these fields to every line that is logged inside, in this thread or task."""
    token = _bound.set(MappingProxyType({**_bound.get(), **fields}))
    try:
        yield
    finally:
        _bound.reset(token)


def turn_fields(answer: Retrieval) -> dict[str, object]:
    """What a log line says of a turn: which, of what, at which cost. Neither the question nor the answer."""
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
        known = sorted({one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """The text without them."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        for shape in _SHAPES:
            text = shape.sub(rf"\g<1>{MASK}", text)
        return text

    def value(self, value: object) -> object:
        """A field as JSON can hold it, masked and cut to a length."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(one) for one in value]
        return self.text(_cut(str(value), _LONGEST_TEXT))


class JsonLines(logging.Formatter):
    """A line a record: at, level, logger, message, bound fields, extra fields, error."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._masking = Masking(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The record as one JSON object without a line end in it."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        told = {**fields, **{name: value for name, value in {**_bound.get(), **extra}.items() if name not in fields}}
        line = {name: self._masking.value(value) for name, value in told.items()}
        if record.exc_info and record.exc_info[0] is not None:
            trace = _cut(self.formatException(record.exc_info), _LONGEST_TRACE)
            line["error"] = {"type": record.exc_info[0].__name__, "trace": self._masking.text(trace)}
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """For people: level, logger, message."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._masking = Masking(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The line without secrets."""
        return self._masking.text(super().format(record))


class _Lines(logging.StreamHandler[TextIO]):
    """Our handler, so that a second call finds the first; without a stream, whatever stderr is at the time."""

    def __init__(self, stream: TextIO | None) -> None:
        self._given = stream
        super().__init__(stream)

    def emit(self, record: logging.LogRecord) -> None:
        """Write to the stream as it is now."""
        if self._given is None:
            self.stream = sys.stderr
        super().emit(record)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"
