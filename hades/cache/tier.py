"""The tiers of memory by speed, what a miss looks like, and how a value becomes bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final

import orjson

MIB: Final = 1024**2
GIB: Final = 1024**3
# Python's own types only: what JSON would give back as something else is not written in the first place.
_EXACT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class MemoryTier(IntEnum):
    """Tiers in order of access speed; the last is the graph itself, which computes what the others do not hold."""

    RAM = 1
    NVME_RAID0 = 2
    RAID1 = 3
    RAID5 = 4


class Miss(Enum):
    """Nothing is stored: pass it as `default` where None, [], {} or 0 may be stored values."""

    MISS = "miss"


MISS: Final = Miss.MISS


@dataclass(frozen=True)
class TierHit:
    """A value and the tier that gave it."""

    value: Any
    tier: MemoryTier


@dataclass
class Counts:
    """What one process asked of a tier. `damaged` entries read as a miss and went; `failed` are disk errors."""

    asked: int = 0
    hits: int = 0
    stored: int = 0
    evicted: int = 0
    damaged: int = 0
    failed: int = 0


def to_json(value: object) -> bytes | None:
    """The value as JSON; None when JSON cannot hold it. Tuples come back as lists."""
    try:
        return orjson.dumps(value, option=_EXACT)
    except TypeError:
        return None


def from_json(payload: bytes) -> Any:
    """The value; `ValueError` when the bytes are no JSON."""
    return orjson.loads(payload)


Metadata = Mapping[str, Any]
