"""Every capability. A new one is a file beside this one and a line here."""

from __future__ import annotations

from hades.surfaces.capabilities.capability import Capability, LocalCommand
from hades.surfaces.capabilities.corpus import COMPARE, OVERVIEW
from hades.surfaces.capabilities.entities import ENTITY_CAPABILITIES
from hades.surfaces.capabilities.evaluation import EVALUATIONS
from hades.surfaces.capabilities.first_steps import FIRST_STEPS
from hades.surfaces.capabilities.graph import GRAPH_CAPABILITIES
from hades.surfaces.capabilities.judge import EXPLAIN, FEEDBACK, QUERIES
from hades.surfaces.capabilities.local_commands import LOCAL_COMMANDS
from hades.surfaces.capabilities.memory_changes import MEMORY_CHANGES
from hades.surfaces.capabilities.memory_edges import MEMORY_EDGES
from hades.surfaces.capabilities.memory_learning import MEMORY_LEARNING
from hades.surfaces.capabilities.memory_recall import MEMORY_RECALL
from hades.surfaces.capabilities.memory_versions import MEMORY_VERSIONS
from hades.surfaces.capabilities.query import QUERY
from hades.surfaces.capabilities.retrieve_paths import AGENT_RETRIEVAL
from hades.surfaces.capabilities.services import SERVICE_COMMANDS
from hades.surfaces.capabilities.snapshots import SNAPSHOT_CAPABILITIES
from hades.surfaces.capabilities.written_answer import ANSWER

CAPABILITIES: tuple[Capability, ...] = (
    QUERY,
    ANSWER,
    EXPLAIN,
    FEEDBACK,
    QUERIES,
    OVERVIEW,
    COMPARE,
    *AGENT_RETRIEVAL,
    *GRAPH_CAPABILITIES,
    *ENTITY_CAPABILITIES,
    *MEMORY_VERSIONS,
    *MEMORY_RECALL,
    *MEMORY_LEARNING,
    *MEMORY_EDGES,
    *MEMORY_CHANGES,
    *SNAPSHOT_CAPABILITIES,
)


COMMANDS: tuple[LocalCommand, ...] = (*FIRST_STEPS, *LOCAL_COMMANDS, *SERVICE_COMMANDS, *EVALUATIONS)


def capability_named(name: str) -> Capability:
    """The capability of this name."""
    return next(one for one in CAPABILITIES if one.name == name)
