"""Undoing an act: every step of it, last first. Nothing that was said is lost.

A version that the act wrote is retracted: from now on it never held, and readers who ask what was known before still
see it. Edges get new beliefs, conflicts the decision they had. Undoing an undo says the versions again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hades.memory.history import rows as records
from hades.memory.history.edges import beliefs_of, meaning_of, restore, withdraw
from hades.memory.history.facts import CONFLICT, restore_conflict
from hades.memory.history.rows import EDGES, LATEST, STATES, MemoryRefused, state_key
from hades.memory.history.states import (
    INSTANT,
    RATED,
    Act,
    NewState,
    act_of,
    append,
    by_keys,
    evolution,
    is_erased,
    pointer_to,
    set_importance,
)
from hades.ports.store import RowStore
from schemas.memory import MemoryAudit, MemoryEdge, MemoryState

_EDGE_ACTIONS = ("link", "fact", "close", "withdraw", "restore")


@dataclass(frozen=True)
class Undone:
    """What undoing an act did: edges that changed, versions retracted, versions said again."""

    undid: list[str]
    edges: list[str] = field(default_factory=list)
    new_states: list[MemoryState] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)
    act: str = ""


def undo_act(rows: RowStore, audit_id: str, act: Act) -> Undone:
    """Take back an act. Refused when something later rests on it: undo that first."""
    steps = act_of(rows, audit_id)
    done = Undone([step.key for step in steps])
    for step in reversed(steps):
        if "erased" in step.detail:
            raise MemoryRefused(f"{step.action} of {step.subject} cannot be undone; what it was about was erased")
        if step.action in _EDGE_ACTIONS:
            _undo_edge(rows, step, act)
            done.edges.append(step.subject)
        elif step.action == "add":
            _retract(rows, step, act)
            done.retracted.append(step.subject)
        elif step.action == "retract":
            done.new_states.append(_say_again(rows, step, act))
        elif step.action == RATED:
            for state in by_keys(rows, [step.subject]):  # one that was erased since has no importance
                set_importance(rows, state, float(step.detail["before"]), act)
        elif step.action == CONFLICT:
            restore_conflict(rows, step, act)
        elif step.action == "erase":
            raise MemoryRefused(f"erasure {step.subject} cannot be undone; what was erased is gone")
    act.note("undo", steps[0].key, {"undoes": steps[0].key})
    return replace(done, act=act.key)


def _undo_edge(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    before, after = step.detail.get("before"), step.detail.get("after")
    beliefs = {belief.key: belief for belief in beliefs_of(rows, step.subject)}
    current = list(beliefs.values())[-1]
    is_believed = current.retracted_at is None
    # An undo writes another row with the old meaning, so meanings are compared and not rows.
    if is_believed != (after is not None) or (after is not None and meaning_of(current) != meaning_of(beliefs[after])):
        raise MemoryRefused(
            f"edge {step.subject} changed after {step.key}; undo what came later first (`hades memory audit` lists it)"
        )
    if before is None:
        withdraw(rows, current, act)
    else:
        restore(rows, beliefs[before], act)


def _retract(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    """Let a version never have held, from now on; its row, its text and its number stay."""
    topic, version = str(step.detail["topic"]), int(step.detail["version"])
    state = _check_unchanged(rows, topic, version)
    at = max(act.at, state.timestamp + INSTANT)
    records.put(rows, STATES, [state.model_copy(update={"retracted_at": at})])
    drawn = evolution(state)
    held = records.fetch(rows, EDGES, [drawn.key], MemoryEdge) if drawn else {}
    records.put(rows, EDGES, [one.model_copy(update={"retracted_at": at}) for one in held.values()])
    pointer = pointer_to(rows, topic)
    assert pointer is not None
    records.put(rows, LATEST, [pointer.model_copy(update={"in_order": False})])
    act.note("retract", state.key, {"topic": topic, "version": version})


def _check_unchanged(rows: RowStore, topic: str, version: int) -> MemoryState:
    """The row of a version that no later version rests on."""
    pointer = pointer_to(rows, topic)
    count = pointer.version if pointer else 0
    keys = [state_key(topic, number) for number in range(version, count + 1)]
    held = records.fetch(rows, STATES, keys, MemoryState)
    later = [one.version for one in held.values() if one.version > version and not is_gone(one)]
    if later:
        raise MemoryRefused(
            f"{topic!r} has newer versions than {version}; undo those first (the newest is {later[-1]})"
        )
    state = held.get(state_key(topic, version))
    if state is None or is_gone(state):
        raise MemoryRefused(f"version {version} of {topic!r} was undone or erased already; there is nothing to undo")
    return state


def is_gone(state: MemoryState) -> bool:
    """Whether a version was retracted or erased."""
    return state.retracted_at is not None or is_erased(state)


def _say_again(rows: RowStore, step: MemoryAudit, act: Act) -> MemoryState:
    """Say a retracted version again, for the same time; the retraction stays in the history."""
    whole = by_keys(rows, [step.subject])
    if not whole:
        raise MemoryRefused(f"{step.subject} cannot be said again; it was erased")
    before = whole[0]
    kept = records.fetch(rows, STATES, [before.key], MemoryState)[before.key]
    again = NewState(
        before.topic,
        before.content,
        before.tags,
        before.confidence,
        {**before.metadata, "reverts": step.subject, "made_from": [before.key]},
        before.valid_from,
        before.valid_until,
        before.importance_score,
        before.consolidated_from,
        before.consolidation_level,
        kept.embedding,
        kept.embedding_model,
    )
    return append(rows, [again], act)[0]
