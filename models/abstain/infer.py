"""The rule of abstention: a weighted sum of three signals; below 0 there is no support for an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
REQUIRED = ("version", "data_sha256", "metric", "command", "with_vectors", "without_vectors")


class BadRules(ValueError):
    """A fitted file that cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class Rule:
    """Weights of the signals; `similarity` 0 means that cosine is not asked."""

    similarity: float
    held: float
    together: float
    bias: float


@dataclass(frozen=True)
class Rules:
    """The rule where the question can be compared by vector, and the one for words alone."""

    with_vectors: Rule
    without_vectors: Rule


def read_rules(body: Mapping[str, Any]) -> Rules:
    """The rules of a fitted file; `BadRules` says why it cannot be used by this version."""
    missing = [name for name in REQUIRED if name not in body]
    if missing:
        raise BadRules(f"it lacks {', '.join(missing)}")
    if body["version"] != VERSION:
        raise BadRules(f"it has version {body['version']}, this program reads {VERSION}")
    found = {}
    for name in ("with_vectors", "without_vectors"):
        try:
            rule = Rule(**{part: float(value) for part, value in body[name].items()})
        except TypeError as error:
            raise BadRules(f"{name} does not hold similarity, held, together and bias: {error}") from error
        if not all(map(math.isfinite, (rule.similarity, rule.held, rule.together, rule.bias))):
            raise BadRules(f"{name} holds numbers that are not finite")
        found[name] = rule
    return Rules(**found)
