"""Keys that say what an entry depends on: which graph, in which state of forgetting, asked what, under which limits.

A key is a hash of a structure, so no character of a question has a meaning in it, and nothing can be read out of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True)
class Scope:
    """What holds for every entry: the snapshot that answers, the generation of the graph's caches, and whose it is."""

    snapshot: str
    generation: int = 0
    tenant: str = ""


def path_key(query: str, params: Mapping[str, Any], scope: Scope) -> str:
    """The key of an answer: `path:` and a hash. Every limit the answer was computed under belongs into `params`."""
    return _key("path", [query, dict(params)], scope)


def entity_key(key: str, scope: Scope) -> str:
    """The key of an entity: `entity:` and a hash."""
    return _key("entity", key, scope)


def _key(kind: str, subject: object, scope: Scope) -> str:
    parts = [kind, scope.snapshot, scope.generation, scope.tenant, subject]
    body = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return f"{kind}:{hashlib.blake2b(body, digest_size=20).hexdigest()}"
