"""Facts, changes, conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from hades.memory.history import rows as records
from hades.memory.history.edges import INVERSIONS, NewEdge, believe, draw, edges_around, end, find_inverse, redrawn
from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.history.states import Act, NewState, append, by_keys, named, pointer_to
from hades.ports.store import Direction, RowStore, Term
from hades.text.sentences import names_topic
from schemas.ids import Mask, iso, overlap
from schemas.memory import MemoryAudit, MemoryEdge, MemoryRelation, MemoryState

CLEAR = 0.15  # a smaller difference of confidence or trust decides nothing
LOW = 0.5  # below it a fact cannot overrule another
DEFAULT_TRUST = 0.5


class Outcome(StrEnum):
    """What became of two facts that exclude each other."""

    NEW = "new"
    OLD = "old"
    ASK = "needs_validation"


Verdict = tuple[Outcome, str]  # with the reason in a sentence


def judge(old: MemoryEdge | NewEdge, new: NewEdge, trust: Mapping[str, float] = MappingProxyType({})) -> Verdict:
    """Which of two facts that cannot both be true is kept; where nothing tells them apart, a person is asked.

    `trust` says how far sources are trusted, 0 to 1; what was said with a fact counts first.
    """
    if max(old.strength, new.strength) < LOW:
        return Outcome.ASK, f"neither is sure ({old.strength:g} and {new.strength:g}, both below {LOW:g})"
    if abs(new.strength - old.strength) >= CLEAR:
        is_new, why = new.strength > old.strength, f"confidence {new.strength:g} against {old.strength:g}"
        return Outcome.NEW if is_new else Outcome.OLD, why
    sources = [str(one.metadata.get("source", "")) for one in (new, old)]
    said = [one.metadata.get("trust") for one in (new, old)]
    trusted = [trust.get(name, DEFAULT_TRUST) if own is None else own for name, own in zip(sources, said, strict=True)]
    if abs(trusted[0] - trusted[1]) >= CLEAR:
        names = (f"{name or 'unnamed'} ({share:g})" for name, share in zip(sources, trusted, strict=True))
        return Outcome.NEW if trusted[0] > trusted[1] else Outcome.OLD, f"source {' against '.join(names)}"
    if new.valid_from and old.valid_from and new.valid_from != old.valid_from:
        is_new, why = new.valid_from > old.valid_from, f"since {new.valid_from.date()} against {old.valid_from.date()}"
        return Outcome.NEW if is_new else Outcome.OLD, f"true {why}"
    return Outcome.ASK, "equal confidence, equal trust and the same beginning"


CONFLICT = "conflict"
WITHDRAWN = "withdrawn"  # the outcome of a conflict whose fact was taken back
_ONE_AT_A_TIME = """
    assigned_to head_of lives_in located_in married_to owned_by reports_to status_is works_at
"""
FUNCTIONAL = frozenset(_ONE_AT_A_TIME.split())


@dataclass(frozen=True)
class FactResult:
    """The edges that say the fact (none where older ones were kept instead), and the facts that it excluded."""

    edges: list[MemoryEdge]
    conflicts: list[tuple[MemoryEdge, Verdict]] = field(default_factory=list)
    act: str = ""


def believe_fact(
    rows: RowStore,
    fact: NewEdge,
    act: Act,
    trust: Mapping[str, float],
    created: Sequence[NewState] = (),
    functional: bool | None = None,
) -> FactResult:
    """Believe a fact between two topics or states wherever nothing stronger excludes it.

    Two facts exclude each other when they have the same subject and the same functional relation (one that holds of one
    object at a time), different objects, and intervals that share a moment. Everything else stays side by side. Topics
    nobody wrote of get a version that names them. `functional` None is as FUNCTIONAL says.
    """
    append(rows, [new for new in created if pointer_to(rows, new.topic) is None], act)
    subject, object_ = named(rows, fact.source, act.at), named(rows, fact.target, act.at)
    begins = records.aware("valid_from", fact.valid_from) if fact.valid_from else act.at
    until = records.aware("valid_until", fact.valid_until) if fact.valid_until else None
    source, target = records.state_id(subject.key), records.state_id(object_.key)
    new = replace(fact, source=source, target=target, valid_from=begins, valid_until=until)
    same, others = _met(rows, new, object_)
    if functional is None:
        functional = fact.relationship_type in FUNCTIONAL
    judged = [(one, judge(one, new, trust)) for one in others] if functional else []
    kept = [*same, *(one for one, (outcome, _) in judged if outcome is Outcome.OLD)]
    parts = records.without((begins, until), [_span(one) for one in kept])
    drawn = [
        draw(rows, replace(new, valid_from=start, valid_until=until), act, action="fact") for start, until in parts
    ]
    told = {
        "subject": subject.topic,
        "relation": fact.relationship_type,
        "object": object_.topic,
        "valid_from": iso(begins),
        "valid_until": iso(until) if until else None,
        "confidence": fact.strength,
        "source": fact.metadata["source"],
    }
    for one, (outcome, reason) in judged:
        if outcome is Outcome.NEW:
            _yield_to(rows, one, drawn, act)
        rival = next((part for part in drawn if overlap(_span(part), _span(one))), drawn[0] if drawn else None)
        met = {"old": one.id, "new": rival.id if rival else None, "outcome": str(outcome), "claim": told}
        act.note(CONFLICT, f"{CONFLICT}_{one.id}", met, why=reason)
    return FactResult(drawn or same[:1], judged, act.key)


def give_way(rows: RowStore, loser: MemoryEdge, winner: MemoryEdge, act: Act) -> list[MemoryEdge]:
    """Let a fact be true only where the winner is not: before it, and after it where it ended earlier."""
    left = records.without(_span(loser), [_span(winner)])
    begins = _span(loser)[0]
    # Where nothing is left at its beginning it was true at no moment; it stays for history.
    until = left[0][1] if left and left[0][0] == begins else begins
    kept = [end(rows, loser.id, act, at=until, superseded_by=winner.id)]
    for start, stop in left:
        if start != begins:
            changes = {"valid_from": start, "valid_until": stop, "metadata": {**loser.metadata, "continues": loser.id}}
            kept.append(draw(rows, redrawn(loser, kind=None, **changes), act, action="fact"))
    return kept


def _yield_to(rows: RowStore, loser: MemoryEdge, winners: Sequence[MemoryEdge], act: Act) -> None:
    """Let a fact give way to each part of another."""
    left = [loser]
    for winner in winners:
        left = [
            part
            for one in left
            for part in (give_way(rows, one, winner, act) if overlap(_span(one), _span(winner)) else [one])
        ]


@dataclass(frozen=True)
class ConflictRecord:
    """A conflict as it was recorded: the claim that came, the fact it met, and what was decided."""

    id: str
    at: datetime
    old_edge: str
    new_edge: str | None
    claim: dict[str, Any]
    outcome: Outcome
    reason: str


def record(rows: RowStore, *, open_only: bool = False) -> list[ConflictRecord]:
    """Every conflict, oldest first, with the last decision about it; not those whose fact was taken back."""
    found = []
    for notes in _notes(rows, Term("subject", "starts_with", f"{CONFLICT}_")).values():
        first, told, why = notes[0], notes[-1].detail, notes[-1].why
        if told["outcome"] == Outcome.ASK or not (open_only or told["outcome"] == WITHDRAWN):
            outcome = Outcome(told["outcome"])
            found.append(ConflictRecord(first.key, first.at, told["old"], told["new"], told["claim"], outcome, why))
    return found


def restore_conflict(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    """Let a conflict be as it was before a step about it: open, decided otherwise, or not met at all."""
    conflict = str(step.detail.get("conflict", step.key))
    notes = _notes(rows, Term("subject", "==", step.subject))[conflict]
    place = [note.key for note in notes].index(step.key)
    if notes[-1].detail["outcome"] != step.detail["outcome"]:
        raise MemoryRefused(f"conflict {conflict} was decided again after {step.key}; undo that first")
    before = notes[place - 1] if place else None
    detail = before.detail if before else {**step.detail, "outcome": WITHDRAWN}
    told = {name: value for name, value in detail.items() if name not in ("act", "steps")}
    why = before.why if before else "the fact was taken back"
    act.note(CONFLICT, step.subject, {**told, "conflict": conflict}, why=why)


def _notes(rows: RowStore, about: Term) -> dict[str, list[MemoryAudit]]:
    """What was recorded of each conflict, oldest first."""
    told: dict[str, list[MemoryAudit]] = {}
    for note in records.scan(rows, records.AUDIT, MemoryAudit, [about]):
        if note.action == CONFLICT and "erased" not in note.detail:
            told.setdefault(str(note.detail.get("conflict", note.key)), []).append(note)
    return told


def resolve_conflict(rows: RowStore, conflict: str, keep: str, act: Act) -> ConflictRecord:
    """Carry out a person's decision about a conflict that waits for one."""
    waiting = {one.id: one for one in record(rows, open_only=True)}
    if conflict not in waiting:
        raise UnknownMemory(
            f"no conflict {conflict!r} waits to be decided; `hades memory conflicts` lists those that do"
        )
    if keep not in (Outcome.NEW, Outcome.OLD):
        raise MemoryRefused(f"{keep!r} is not a decision; keep 'new' or 'old'")
    one = waiting[conflict]
    edges = [believe(rows, name) for name in (one.old_edge, one.new_edge) if name]
    loser, winner = edges if keep == Outcome.NEW else reversed(edges)
    give_way(rows, loser, winner, act)
    detail = {"old": one.old_edge, "new": one.new_edge, "outcome": keep, "claim": one.claim, "conflict": conflict}
    act.note(CONFLICT, f"{CONFLICT}_{one.old_edge}", detail)
    return replace(one, outcome=Outcome(keep), reason=act.why)


def _met(rows: RowStore, new: NewEdge, object_: MemoryState) -> tuple[list[MemoryEdge], list[MemoryEdge]]:
    """Believed facts of the same subject and relation whose time overlaps: about the same object, and about others."""
    subject = records.topic_of_key(new.source)
    now, types = Mask(known_at=records.NEWEST), [new.relationship_type]
    seen = edges_around(rows, new.source, now, direction=Direction.OUT, types=types, whole_topic=True)
    met = [
        edge
        for edge in seen
        if records.topic_of_key(edge.source) == subject
        and edge.valid_from != edge.valid_until
        and overlap((edge.valid_from, edge.valid_until), (new.valid_from, new.valid_until))
    ]
    same = [edge for edge in met if records.topic_of_key(edge.target) == records.topic_of_key(object_.key)]
    return same, [edge for edge in met if edge not in same]


def _span(edge: MemoryEdge) -> records.Span:
    return edge.valid_from or edge.timestamp, edge.valid_until


@dataclass(frozen=True)
class Fact:
    """What is true now: the changed topic stands in this relation to a topic or state.

    `replaces` names the edge it takes the place of, by id or by relation; without it, an edge whose relation inverts
    into this one ends.
    """

    relation: str
    target: str
    replaces: str | None = None
    description: str = ""
    strength: float = 1.0


@dataclass(frozen=True)
class Change:
    """What a change did, and why each edge that it might have touched was or was not."""

    new_state: MemoryState
    previous_state_id: str
    new_edges: list[MemoryEdge] = field(default_factory=list)
    obsolete_edges: list[MemoryEdge] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    act: str = ""


def change_fact(
    rows: RowStore, old: MemoryState, said: str, new: NewState, facts: Sequence[Fact], act: Act, at: datetime | None
) -> Change:
    """Write the new version and bring the topic's outgoing edges to what is true now.

    Without stated facts, an edge ends only when its relation has an inverse and the change names what it points at.
    """
    written = append(rows, [new], act)[0]
    moment = at or written.valid_from or act.at
    active = [
        edge
        for edge in edges_around(rows, old.topic, Mask(moment, records.NEWEST), direction=Direction.OUT)
        if edge.relationship_type != MemoryRelation.EVOLVES_TO
    ]
    done = Change(written, old.key, act=act.key)
    for fact in facts:
        drawn = draw(rows, _changed_edge(rows, written, fact, said, moment), act, action="fact")
        done.new_edges.append(drawn)
        for edge in active.copy():
            names = (edge.id, edge.key, edge.relationship_type)
            is_inverse = INVERSIONS.get(edge.relationship_type) == fact.relation
            if edge.id == drawn.id or not (is_inverse if fact.replaces is None else fact.replaces in names):
                continue
            active.remove(edge)
            done.obsolete_edges.append(end(rows, edge.id, act, at=moment, superseded_by=drawn.id))
            done.reasons.append(f"{_show(rows, edge)} ended: the stated {fact.relation} takes its place")
    for edge in active:
        if facts:
            done.reasons.append(f"{_show(rows, edge)} stays: no stated fact takes its place")
        else:
            _follow(rows, edge, written, said, act, moment, done)
    return done


def _follow(
    rows: RowStore, edge: MemoryEdge, written: MemoryState, said: str, act: Act, moment: datetime, done: Change
) -> None:
    """What the change alone, without stated facts, means for an edge."""
    shown, target = _show(rows, edge), _topic(rows, edge.target)
    if edge.relationship_type not in INVERSIONS:
        done.reasons.append(f"{shown} stays: {find_inverse(edge.relationship_type)[1]}")
        return
    if not names_topic(said, target):
        done.reasons.append(f"{shown} stays: the change does not name {target}")
        return
    inverse, why = find_inverse(edge.relationship_type)
    drawn = None
    if inverse is not None:
        drawn = draw(rows, _changed_edge(rows, written, Fact(inverse, target), said, moment), act, action="fact")
        done.new_edges.append(drawn)
    done.obsolete_edges.append(end(rows, edge.id, act, at=moment, superseded_by=drawn.id if drawn else None))
    done.reasons.append(f"{shown} ended: the change names {target}; {why}")


def _changed_edge(rows: RowStore, written: MemoryState, fact: Fact, said: str, moment: datetime) -> NewEdge:
    target = named(rows, fact.target, written.timestamp)
    return NewEdge(
        records.state_id(written.key),
        records.state_id(target.key),
        fact.relation,
        strength=fact.strength,
        valid_from=moment,
        description=fact.description or said,
    )


def _topic(rows: RowStore, identifier: str) -> str:
    found = by_keys(rows, [records.key_of(identifier)])
    return found[0].topic if found else identifier


def _show(rows: RowStore, edge: MemoryEdge) -> str:
    return f"{edge.relationship_type} {_topic(rows, edge.target)}"
