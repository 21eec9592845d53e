"""Every capability. A new one is a function of a file beside this one."""

from __future__ import annotations

from hades.surfaces.capabilities import (
    graph,
    history,
    memory_recall,
    memory_states,
    questions,
    retrieval_tools,
)
from hades.surfaces.capabilities.capability import Capability, declared_in

CAPABILITIES: tuple[Capability, ...] = (
    *declared_in(questions),
    *declared_in(retrieval_tools),
    *declared_in(graph),
    *declared_in(history),
    *declared_in(memory_states),
    *declared_in(memory_recall),
)
