"""An agent over memory by fixed rules: assess what a question needs, plan, carry out, check what came of it.

The same question of the same memory takes the same steps. A language model is only asked where one is given to the
memory, and then only for what it misses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hades.memory.recall.context import MAX_TOKENS, Context
from hades.memory.recall.intent import Strategy, strategy_for
from hades.memory.recall.search import MemoryMatch
from hades.memory.recall.strength import strength
from hades.memory.service import Memory
from hades.memory.upkeep.promote import Promotion
from schemas.intervals import Mask
from schemas.memory import MemoryState


@dataclass(frozen=True)
class Plan:
    """What will be looked for, in order."""

    query: str
    strategy: Strategy
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What was found, and which steps of the plan found nothing."""

    plan: Plan
    contexts: list[Context]
    missing: tuple[str, ...]

    @property
    def is_grounded(self) -> bool:
        """Whether there is something to answer from."""
        return "latest" not in self.missing

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "intent": str(self.plan.strategy.intent),
            "steps": list(self.plan.steps),
            "missing": list(self.missing),
            "grounded": self.is_grounded,
            "contexts": [context.as_dict() for context in self.contexts],
        }


def plan_retrieval(query: str) -> Plan:
    """What a question needs: always what holds now; by its intent also neighbours, summaries, history."""
    strategy = strategy_for(query)
    wanted = (
        ("latest", True),
        ("related", strategy.related),
        ("summaries", strategy.level > 0),
        ("details", strategy.history),
    )
    return Plan(query, strategy, tuple(name for name, is_wanted in wanted if is_wanted))


def process_query(memory: Memory, query: str, max_tokens: int = MAX_TOKENS, *, mask: Mask = Mask()) -> Outcome:
    """Plan, retrieve in as many looks as are needed, and say which steps came back empty."""
    plan = plan_retrieval(query)
    contexts = memory.retrieve_in_passes(query, max_tokens=max_tokens, mask=mask)
    missing = tuple(step for step in plan.steps if not any(getattr(context, step) for context in contexts))
    return Outcome(plan, contexts, missing)


def reconsolidate(memory: Memory, topic: str, *, who: str = "") -> Promotion | None:
    """Recall a topic and, where a neighbour has moved on since, make its next version; nothing is edited in place."""
    state = memory.latest(topic)
    if state is None:
        return None
    newer = sorted(
        related.since.topic
        for match in memory.enhance([_recall(memory, state)], 1).matches
        for related in match.related
        if related.since is not None and related.since.timestamp > state.timestamp
    )
    if not newer:
        return None
    return memory.promote(topic, f"since then {', '.join(dict.fromkeys(newer))} changed", who=who)


def _recall(memory: Memory, state: MemoryState) -> MemoryMatch:
    return MemoryMatch(state, 1.0, strength(state, memory.now()), state.key, None, 1.0)
