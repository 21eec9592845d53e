"""Limits of one request, one connection and one client."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds.

    `arrive_seconds` is the limit for receiving a whole request, however slowly its bytes arrive. `threads` calls run
    at the same time; at most `waiting` calls run or wait, further ones get status 503.
    """

    body_bytes: int = 256 * 1024
    header_bytes: int = 16 * 1024
    arrive_seconds: float = 10.0
    request_seconds: float = 30.0
    idle_seconds: float = 15.0
    connections: int = 1024
    per_second: float = 1000.0
    burst: float = 2000.0
    threads: int = 0
    waiting: int = 512
    cache_bytes: int = 64 * 1024 * 1024

    @property
    def answering(self) -> int:
        """Number of threads: as set, or one for each core."""
        return self.threads or max(2, os.cpu_count() or 1)
