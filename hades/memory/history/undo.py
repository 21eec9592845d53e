"""Undoing an act: every step of it, last first, as new beliefs and new versions; nothing that was said is lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hades.memory.history import rows as records
from hades.memory.history.audit import Act, act_of
from hades.memory.history.edges import beliefs_of, restore, withdraw
from hades.memory.history.names import EDGES, STATES, MemoryRefused
from hades.memory.history.states import NewState, append, by_keys, pointer_to
from hades.ports.store import RowStore
from schemas.memory import MemoryAudit, MemoryEdge, MemoryState

_EDGE_ACTIONS = ("link", "fact", "close", "withdraw", "restore")


@dataclass(frozen=True)
class Undone:
    """What undoing an act did."""

    undid: list[str]
    edges: list[str] = field(default_factory=list)
    new_states: list[MemoryState] = field(default_factory=list)
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
            done.new_states.append(_undo_state(rows, step, act))
        elif step.action == "erase":
            raise MemoryRefused(f"erasure {step.subject} cannot be undone; what was erased is gone")
    act.note("undo", steps[0].key, {"undoes": steps[0].key})
    return replace(done, act=act.key)


def _undo_edge(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    before, after = step.detail.get("before"), step.detail.get("after")
    current = beliefs_of(rows, step.subject)[-1]
    if current.key != (after or before) or (current.retracted_at is None) != (after is not None):
        raise MemoryRefused(
            f"edge {step.subject} changed after {step.key}; undo what came later first (`hades memory audit` lists it)"
        )
    if before is None:
        withdraw(rows, current, act)
    else:
        restore(rows, records.fetch(rows, EDGES, [before], MemoryEdge)[before], act)


def _undo_state(rows: RowStore, step: MemoryAudit, act: Act) -> MemoryState:
    """Say again what was said before; the version that is taken back stays in the trace."""
    topic, version = str(step.detail["topic"]), int(step.detail["version"])
    pointer = pointer_to(rows, topic)
    if pointer is None or pointer.version != version:
        raise MemoryRefused(f"{topic!r} has newer versions than {version}; undo those first")
    state = by_keys(rows, [step.subject])
    parent = by_keys(rows, [str(state[0].parent_state_id)]) if state else []
    if not parent:
        raise MemoryRefused(
            f"version {version} of {topic!r} has no version before it to go back to; `erase` removes it"
        )
    before = parent[0]
    kept = records.fetch(rows, STATES, [before.key], MemoryState)[before.key]
    again = NewState(
        topic,
        before.content,
        before.tags,
        before.confidence,
        {**before.metadata, "reverts": step.subject, "made_from": [before.key]},
        importance=before.importance_score,
        vector=kept.embedding,
        model=kept.embedding_model,
    )
    return append(rows, [again], act)[0]
