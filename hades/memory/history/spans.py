"""What is left of a half-open span of time when others are taken out of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

Span = tuple[datetime, datetime | None]  # an absent end is open


def without(span: Span, taken: Iterable[Span]) -> list[Span]:
    """The parts of a span that none of the others covers, in order; a span without a moment covers nothing."""
    left = [span]
    for start, end in taken:
        left = [part for one in left for part in _cut(one, start, end)]
    return left


def _cut(span: Span, start: datetime, end: datetime | None) -> list[Span]:
    first, last = span
    if (end is not None and end <= max(first, start)) or (last is not None and last <= start):
        return [span]
    before = [(first, start)] if first < start else []
    after = [(end, last)] if end is not None and (last is None or end < last) else []
    return [*before, *after]
