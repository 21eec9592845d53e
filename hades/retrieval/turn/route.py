"""The recipe for a question, by what it wants to know; the choice says why in one sentence."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from hades.ports.view import GraphView

DEFAULT_RECIPE = "hirag_pathrag"
RECIPES = frozenset(
    {"vector", "lexical", "graphrag", "hirag", "pathrag", "hirag_pathrag", "hipporag", "nexus", "memory"}
)


class Intent(StrEnum):
    """What a question wants."""

    STATUS = "status"
    RECENT = "recent"
    OVERVIEW = "overview"
    WHY = "why"
    SIMILARITY = "similarity"
    RELATION = "relation"
    OTHER = "other"


# How coarse a memory the intent needs: 0 raw states, 1 days, 2 weeks, 3 months (requirement D51).
LEVELS = {Intent.STATUS: 0, Intent.RECENT: 1, Intent.OVERVIEW: 3, Intent.WHY: 0}
DEFAULT_LEVEL = 2

# For each intent the recipes that suit it, best first; the first one that is available is taken.
_SUITED: dict[Intent, tuple[str, ...]] = {
    Intent.STATUS: ("memory", "vector", "lexical"),
    Intent.RECENT: ("memory", "vector", "lexical"),
    Intent.OVERVIEW: ("hirag", "vector", "lexical"),
    Intent.WHY: ("pathrag", "hirag_pathrag", "vector", "lexical"),
    Intent.SIMILARITY: ("vector", "lexical"),
    Intent.RELATION: ("hipporag", "hirag_pathrag", "vector", "lexical"),
    Intent.OTHER: ("hirag_pathrag", "vector", "lexical"),
}
_NEEDS_GRAPH = frozenset({"graphrag", "pathrag", "hirag_pathrag", "hipporag", "nexus"})

_UNIT = r"(?:hours?|days?|nights?|weeks?|months?|quarters?|mornings?|evenings?|sprints?)"
_DAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_CUES: tuple[tuple[Intent, str], ...] = (
    (
        Intent.WHY,
        r"^\W*(?:why|how come|what (?:caused|causes|led to|is the (?:reason|cause)|was the (?:reason|cause)))\b",
    ),
    (
        Intent.STATUS,
        r"\b(?:(?:current|latest|present) (?:status|state|version|progress|value|situation|plan)"
        r"|status (?:of|on|update)|(?:what is|what's|whats) the status|where do we stand|how far (?:are|is|along)"
        r"|how (?:is|are) .{1,60} (?:going|coming along|progressing)|right now|as of now|at the moment)\b",
    ),
    (
        Intent.RECENT,
        rf"\b(?:(?:last|past|previous|this) (?:few |couple of |\d+ )?{_UNIT}|yesterday|today|lately"
        rf"|(?<!more )(?<!most )recently|since (?:yesterday|last|{_DAY})|last {_DAY}"
        r"|what(?: is|'s|s) new|what has changed|recent (?:changes?|updates?|events?|news|activity|work|commits?))\b",
    ),
    (
        Intent.OVERVIEW,
        r"\b(?:summari[sz]e|summary|overview|outline|recap|big picture|gist|tl;?dr|in general|high.level"
        r"|main (?:themes?|topics?|ideas?|points?|parts?)|key (?:themes?|topics?|ideas?|takeaways?)"
        r"|(?:what|which) topics|tell me (?:everything |all )?about|what (?:is|are) .{1,60} all about)\b",
    ),
    (
        Intent.WHY,
        r"\b(?:why|reasons? (?:for|behind|that)|(?:root )?cause of|rationale|motivat\w+ (?:for|behind)|what led to"
        r"|what made|because of what)\b",
    ),
    (
        Intent.SIMILARITY,
        r"\b(?:similar(?: to|ity)|resembl\w+|comparable|akin to|analogous|more like (?:this|these)"
        r"|(?:papers?|works?|articles?|documents?|methods?|functions?) (?:like|related to)|alternatives? to)\b",
    ),
    (
        Intent.RELATION,
        r"\b(?:who|whom|whose|which|what|where|when|how many|how much|related to|connected|relation(?:ship)?"
        r"|link(?:s|ed)? between|depends? on|implements?|calls?|cites?)\b"
        r"|^\W*(?:are|is|was|were|did|does|do|has|have)\b",
    ),
)
_COMPILED = tuple((intent, re.compile(pattern, re.IGNORECASE)) for intent, pattern in _CUES)


@dataclass(frozen=True)
class Route:
    """A recipe, why it was chosen, and the granularity of memory that suits the question.

    `needs_graph_filter` marks a question about causes: its states are told apart by the graph, not by their age.
    """

    recipe: str
    why: str
    level: int
    intent: Intent
    needs_graph_filter: bool = False


def route(text: str, view: GraphView | None = None, *, available: Collection[str] = RECIPES) -> Route:
    """The first available recipe that suits the question's intent and that this graph can serve."""
    intent, cue = intent_of(text)
    names = _names(text, view)
    said = f"{intent} question (“{cue}”)" if cue else "no cue of a special intent"
    if names:
        said += f" that names {' and '.join(names[:3])}"
    recipe, skipped = _first_served(intent, view, available)
    because = f"; {skipped}" if skipped else ""
    return Route(recipe, f"{said}: {recipe}{because}", consolidation_level(intent), intent, intent is Intent.WHY)


def intent_of(text: str) -> tuple[Intent, str]:
    """The intent and the words that show it; a question that begins with why is about causes whatever follows."""
    for intent, pattern in _COMPILED:
        if (match := pattern.search(text)) is not None:
            return intent, " ".join(match.group().split()).strip().lower()
    return Intent.OTHER, ""


def consolidation_level(intent: Intent) -> int:
    """How coarse a memory suits the intent."""
    return LEVELS.get(intent, DEFAULT_LEVEL)


def determine_consolidation_level(query: str) -> int:
    """How coarse a memory suits the question: status 0, recent 1, overview 3, why 0, anything else 2."""
    return consolidation_level(intent_of(query)[0])


def _first_served(intent: Intent, view: GraphView | None, available: Collection[str]) -> tuple[str, str]:
    """The recipe, and what kept better suited ones from being it."""
    skipped: list[str] = []
    for recipe in _SUITED[intent]:
        missing = "there is no such recipe here" if recipe not in available else _missing(recipe, view)
        if not missing:
            return recipe, ", ".join(skipped)
        skipped.append(f"not {recipe}, {missing}")
    return DEFAULT_RECIPE, ", ".join(skipped)


def _missing(recipe: str, view: GraphView | None) -> str:
    """What this graph lacks for a recipe; nothing when it can serve it or is not known."""
    if view is None:
        return ""
    info = view.info
    if recipe == "vector" and not any(info.models.values()):
        return "the graph has no vectors"
    if recipe == "hirag" and not info.nodes.get("clusters"):
        return "topics have not been built"
    if recipe in _NEEDS_GRAPH and not any(info.edges.values()):
        return "the graph has no edges"
    return ""


def _names(text: str, view: GraphView | None) -> list[str]:
    """Names of entities as the question spells them, each once, longest spans only."""
    if view is None:
        return []
    found = view.match_names(text)
    spelled = (text[start:end] for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    return list(dict.fromkeys(name for name in spelled if name[:1].isupper() or " " in name))
