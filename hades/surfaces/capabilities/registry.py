"""Where every capability and command is declared. A new one is a file beside this one and a line here.

A command imports its own declaration alone: reading all of them costs as long as a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeVar

from hades.surfaces.capabilities.capability import Capability, LocalCommand

Declared = TypeVar("Declared", Capability, LocalCommand)


class Place(NamedTuple):
    """Where declarations stand (a module of this folder and a name in it), and the first words of their commands."""

    module: str
    name: str
    words: str = ""


_COMMANDS = (
    Place("local_commands", "FIRST_STEPS", "completion init"),
    Place("local_commands", "LOCAL_COMMANDS", "demo doctor forget ingest provision publish status"),
    Place("local_commands", "BUILD_COMMANDS", "build repair run"),
    Place("local_commands", "BACKUP_COMMANDS", "backup export import restore"),
    Place("local_commands", "SERVICE_COMMANDS", "mcp serve token watch"),
    Place("local_commands", "EVALUATIONS", "eval"),
)
_CAPABILITIES = (
    Place("questions", "QUERY", "query"),
    Place("questions", "ANSWER", "answer"),
    Place("questions", "EXPLAIN", "explain"),
    Place("questions", "FEEDBACK", "feedback"),
    Place("questions", "QUERIES", "queries"),
    Place("graph", "OVERVIEW", "overview"),
    Place("graph", "COMPARE", "compare"),
    Place("agent_tools", "AGENT_RETRIEVAL"),
    Place("graph", "GRAPH_CAPABILITIES", "graph"),
    Place("graph", "ENTITY_CAPABILITIES", "entity"),
    Place("memory_states", "MEMORY_VERSIONS", "memory"),
    Place("memory_recall", "MEMORY_RECALL", "memory"),
    Place("memory_recall", "MEMORY_LEARNING", "memory"),
    Place("memory_states", "MEMORY_EDGES", "memory"),
    Place("memory_changes", "MEMORY_CHANGES", "memory"),
    Place("graph", "SNAPSHOT_CAPABILITIES", "rollback snapshots"),
)


@cache
def capabilities() -> tuple[Capability, ...]:
    """Every capability."""
    return _read(_CAPABILITIES, Capability)


@cache
def local_commands() -> tuple[LocalCommand, ...]:
    """Every command of this machine alone."""
    return _read(_COMMANDS, LocalCommand)


def capability_named(name: str) -> Capability:
    """The capability of this name."""
    return next(one for one in capabilities() if one.name == name)


def declared_under(word: str | None) -> tuple[Capability | LocalCommand, ...]:
    """Everything whose command begins with this word; everything there is when no command does."""
    wanted = [[place for place in places if word in place.words.split()] for places in (_COMMANDS, _CAPABILITIES)]
    if not any(wanted):
        return (*local_commands(), *capabilities())
    return (*_read(wanted[0], LocalCommand), *_read(wanted[1], Capability))


def _read(places: Sequence[Place], kind: type[Declared]) -> tuple[Declared, ...]:
    found: list[Declared] = []
    for place in places:
        value = getattr(import_module(f"{__package__}.{place.module}"), place.name)
        found += [value] if isinstance(value, kind) else value
    return tuple(found)
