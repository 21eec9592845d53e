"""Every capability. A new one is a function of a file beside this one."""

from __future__ import annotations

from hades.surfaces.capabilities import graph, memory_recall, memory_states, questions, retrieval_tools
from hades.surfaces.capabilities.capability import Capability, declared_in

CAPABILITIES: tuple[Capability, ...] = tuple(
    one for module in (questions, retrieval_tools, graph, memory_states, memory_recall) for one in declared_in(module)
)
