"""Every capability. A new one is a function of a file beside this one and its name in that file's list."""

from __future__ import annotations

from hades.surfaces.capabilities.capability import Capability
from hades.surfaces.capabilities.graph import GRAPH
from hades.surfaces.capabilities.memory_recall import MEMORY_RECALL
from hades.surfaces.capabilities.memory_states import MEMORY_STATES
from hades.surfaces.capabilities.questions import QUESTIONS

CAPABILITIES: tuple[Capability, ...] = (*QUESTIONS, *GRAPH, *MEMORY_STATES, *MEMORY_RECALL)


def capability_named(name: str) -> Capability:
    """The capability of this name."""
    return next(one for one in CAPABILITIES if one.name == name)
