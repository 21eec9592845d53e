"""The coefficients of two linear rankings, read from a fitted file and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
REQUIRED = ("version", "data_sha256", "metric", "command", "first", "second")


class BadLooks(ValueError):
    """A fitted file that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class LinearLooks:
    """Coefficients by feature: of a candidate alone, and of a candidate beside the others."""

    first: Mapping[str, float]
    second: Mapping[str, float]


def read_looks(body: Mapping[str, Any]) -> LinearLooks:
    """The coefficients of a fitted file; `BadLooks` says why it cannot be used by this version."""
    missing = [name for name in REQUIRED if name not in body]
    if missing:
        raise BadLooks(f"it lacks {', '.join(missing)}")
    if body["version"] != VERSION:
        raise BadLooks(f"it has version {body['version']}, this program reads {VERSION}")
    for part in ("first", "second"):
        if not body[part] or not all(math.isfinite(float(value)) for value in body[part].values()):
            raise BadLooks(f"{part} is empty or holds numbers that are not finite")
    return LinearLooks(dict(body["first"]), dict(body["second"]))
