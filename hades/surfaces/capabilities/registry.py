"""Every capability. A new one is a file beside this one and a line here."""

from __future__ import annotations

from hades.surfaces.capabilities.capability import Capability
from hades.surfaces.capabilities.judge import EXPLAIN, FEEDBACK, QUERIES
from hades.surfaces.capabilities.query import QUERY
from hades.surfaces.capabilities.written_answer import ANSWER

CAPABILITIES: tuple[Capability, ...] = (QUERY, ANSWER, EXPLAIN, FEEDBACK, QUERIES)


def capability_named(name: str) -> Capability:
    """The capability of this name."""
    return next(one for one in CAPABILITIES if one.name == name)
