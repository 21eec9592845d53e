"""Facts, changes, conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from hades.memory.history.edges import (
    INVERSIONS,
    NewEdge,
    believe,
    draw,
    edges_around,
    end,
    find_inverse,
    redrawn,
)
from hades.memory.history.rows import (
    NEWEST,
    MemoryRefused,
    Span,
    UnknownMemory,
    aware,
    fetch,
    key_of,
    revision_key,
    scan,
    state_id,
    topic_of_key,
    without,
)
from hades.memory.history.states import Act, NewState, append, by_keys, named, pointer_to
from hades.ports.store import Direction, RowStore, Term
from hades.text.sentences import names_topic
from schemas.ids import Mask, iso, overlap
from schemas.memory import MemoryAudit, MemoryEdge, MemoryRelation, MemoryState
from schemas.record import JsonObject

CLEAR = 0.15  # a smaller difference of confidence or trust decides nothing
LOW = 0.5  # below it a fact cannot overrule another
DEFAULT_TRUST = 0.5


class Outcome(StrEnum):
    """What became of two facts that exclude each other."""

    NEW = "new"
    OLD = "old"
    ASK = "needs_validation"


Verdict = tuple[Outcome, str]  # with the reason in a sentence


def judge(
    old: MemoryEdge | NewEdge,
    new: NewEdge,
    trust: Mapping[str, float] = MappingProxyType({}),
) -> Verdict:
    """Which of two facts that cannot both be true is kept; where nothing tells them apart, a person
    is asked.

    `trust` says how far sources are trusted, 0 to 1; what was said with a fact counts first.
    """
    if max(old.strength, new.strength) < LOW:
        strengths = f"{old.strength:g} and {new.strength:g}"
        return Outcome.ASK, f"neither is sure ({strengths}, both below {LOW:g})"

    if abs(new.strength - old.strength) >= CLEAR:
        if new.strength > old.strength:
            outcome = Outcome.NEW
        else:
            outcome = Outcome.OLD

        return outcome, f"confidence {new.strength:g} against {old.strength:g}"

    new_source, new_trust = _source_and_trust(new, trust)
    old_source, old_trust = _source_and_trust(old, trust)
    if abs(new_trust - old_trust) >= CLEAR:
        if new_trust > old_trust:
            outcome = Outcome.NEW
        else:
            outcome = Outcome.OLD

        reason = f"{new_source} ({new_trust:g}) against {old_source} ({old_trust:g})"
        return outcome, f"source {reason}"

    if new.valid_from and old.valid_from and new.valid_from != old.valid_from:
        if new.valid_from > old.valid_from:
            outcome = Outcome.NEW
        else:
            outcome = Outcome.OLD

        return outcome, f"true since {_tell_apart(new.valid_from, old.valid_from)}"

    return Outcome.ASK, "equal confidence, equal trust and the same beginning"


def _source_and_trust(
    fact: MemoryEdge | NewEdge,
    trust: Mapping[str, float],
) -> tuple[str, float]:
    """The source of a fact and how far it is trusted: as the fact says, else as its source is."""
    source = str(fact.metadata.get("source", ""))
    stated = fact.metadata.get("trust")
    return source or "unnamed", trust.get(source, DEFAULT_TRUST) if stated is None else stated


def _tell_apart(new: datetime, old: datetime) -> str:
    """Two moments, as days where these differ, else with the time of day."""
    for shape in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"):
        texts = [moment.strftime(shape) for moment in (new, old)]
        if texts[0] != texts[1]:
            break

    return " against ".join(texts)


CONFLICT = "conflict"
WITHDRAWN = "withdrawn"  # the outcome of a conflict whose fact was taken back
_ONE_AT_A_TIME = """
    assigned_to head_of lives_in located_in married_to owned_by reports_to status_is works_at
"""
FUNCTIONAL = frozenset(_ONE_AT_A_TIME.split())


@dataclass(frozen=True)
class FactResult:
    """The edges that say the fact (none where older ones were kept instead), and the facts that it
    excluded.
    """

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

    Two facts exclude each other when they have the same subject and the same functional relation
    (one that holds of one object at a time), different objects, and intervals that share a moment.
    Everything else stays side by side. Topics nobody wrote of get a version that names them.
    `functional` None is as FUNCTIONAL says.
    """
    append(
        rows,
        [new for new in created if pointer_to(rows, new.topic) is None],
        act,
    )
    subject = named(rows, fact.source, act.at)
    object_ = named(rows, fact.target, act.at)
    begins = aware("valid_from", fact.valid_from or act.at)

    if fact.valid_until:
        until = aware("valid_until", fact.valid_until)
    else:
        until = None

    source = state_id(subject.key)
    target = state_id(object_.key)
    new = replace(
        fact,
        source=source,
        target=target,
        valid_from=begins,
        valid_until=until,
    )
    same, rivals = _overlapping_facts(rows, new, object_)

    if functional is None:
        functional = fact.relationship_type in FUNCTIONAL

    if functional:
        judged = [(rival, judge(rival, new, trust)) for rival in rivals]
    else:
        judged = []

    standing = [*same, *(rival for rival, (outcome, _) in judged if outcome is Outcome.OLD)]
    parts = without((begins, until), [_span(edge) for edge in standing])

    drawn = []
    for part_begins, part_ends in parts:
        part = replace(
            new,
            valid_from=part_begins,
            valid_until=part_ends,
        )
        drawn.append(draw(rows, part, act, action="fact"))

    claim = _claim(subject.topic, object_.topic, new)
    for old_edge, (outcome, reason) in judged:
        if outcome is Outcome.NEW:
            _close_where_beaten(rows, old_edge, drawn, act)

        overlapping = [part for part in drawn if overlap(_span(part), _span(old_edge))]
        rival = next(iter(overlapping or drawn), None)
        ends = {
            "old": old_edge.id,
            "new": rival.id if rival else None,
        }
        detail = {
            **ends,
            "outcome": str(outcome),
            "claim": claim,
        }
        act.note(
            CONFLICT,
            f"{CONFLICT}_{old_edge.id}",
            detail,
            why=reason,
        )

    return FactResult(drawn or same[:1], judged, act.key)


def close_beaten(
    rows: RowStore,
    loser: MemoryEdge,
    winner: MemoryEdge,
    act: Act,
) -> list[MemoryEdge]:
    """Let a fact be true only where the winner is not: before it, and after it where it ended
    earlier.
    """
    remaining = without(_span(loser), [_span(winner)])
    begins = _span(loser)[0]

    # Where nothing is left at its beginning it was true at no moment; it stays for history.
    if remaining and remaining[0][0] == begins:
        until = remaining[0][1]
    else:
        until = begins

    edges = [
        end(
            rows,
            loser.id,
            act,
            at=until,
            superseded_by=winner.id,
        )
    ]
    metadata = {
        **loser.metadata,
        "continues": loser.id,
    }
    for start, stop in remaining:
        if start != begins:
            times = {
                "valid_from": start,
                "valid_until": stop,
            }
            rest = redrawn(
                loser,
                kind=None,
                metadata=metadata,
                **times,
            )
            edges.append(draw(rows, rest, act, action="fact"))

    return edges


def _close_where_beaten(
    rows: RowStore,
    loser: MemoryEdge,
    winners: Sequence[MemoryEdge],
    act: Act,
) -> None:
    """Let a fact give way to each part of another."""
    parts = [loser]
    for winner in winners:
        remaining: list[MemoryEdge] = []
        for part in parts:
            if overlap(_span(part), _span(winner)):
                remaining += close_beaten(rows, part, winner, act)
            else:
                remaining.append(part)

        parts = remaining


@dataclass(frozen=True)
class ConflictRecord:
    """A conflict as it was recorded: the claim that came, the fact it met (`against`), and what was
    decided.
    """

    id: str
    at: datetime
    old_edge: str
    new_edge: str | None
    claim: JsonObject
    outcome: Outcome
    reason: str
    against: JsonObject = field(default_factory=dict)


def record(rows: RowStore, *, open_only: bool = False) -> list[ConflictRecord]:
    """Every conflict, oldest first, with the last decision about it; not those whose fact was taken
    back.
    """
    conflicts = []
    for notes in _notes_by_conflict(rows, Term("subject", "starts_with", f"{CONFLICT}_")).values():
        decision = notes[-1].detail
        is_open = decision["outcome"] == Outcome.ASK
        is_withdrawn = decision["outcome"] == WITHDRAWN

        if is_open or not (open_only or is_withdrawn):
            conflict = ConflictRecord(
                id=notes[0].key,
                at=notes[0].at,
                old_edge=decision["old"],
                new_edge=decision["new"],
                claim=decision["claim"],
                outcome=Outcome(decision["outcome"]),
                reason=notes[-1].why,
                against=_claim_of(rows, decision["old"]),
            )
            conflicts.append(conflict)

    return conflicts


def _claim_of(rows: RowStore, edge_id: str) -> JsonObject:
    """What an edge said at first; nothing where it was erased."""
    edge = next(iter(fetch(rows, MemoryEdge, [revision_key(edge_id, 1)]).values()), None)
    if edge is None:
        return {}

    return _claim(
        _topic_of(rows, edge.source),
        _topic_of(rows, edge.target),
        edge,
    )


def _claim(
    subject: str,
    object_: str,
    fact: NewEdge | MemoryEdge,
) -> JsonObject:
    """What a fact says of two topics."""
    return {
        "subject": subject,
        "relation": fact.relationship_type,
        "object": object_,
        "valid_from": iso(fact.valid_from) if fact.valid_from else None,
        "valid_until": iso(fact.valid_until) if fact.valid_until else None,
        "confidence": fact.strength,
        "source": fact.metadata.get("source", ""),
    }


def restore_conflict(
    rows: RowStore,
    step: MemoryAudit,
    act: Act,
) -> None:
    """Let a conflict be as it was before a step about it: open, decided otherwise, or not met at
    all.
    """
    conflict = str(step.detail.get("conflict", step.key))
    notes = _notes_by_conflict(rows, Term("subject", "==", step.subject))[conflict]
    place = [note.key for note in notes].index(step.key)

    if notes[-1].detail["outcome"] != step.detail["outcome"]:
        raise MemoryRefused(
            f"conflict {conflict} was decided again after {step.key}; undo that first"
        )

    previous = notes[place - 1] if place else None
    if previous:
        detail = previous.detail
    else:
        detail = {**step.detail, "outcome": WITHDRAWN}

    decision = {}
    for name, value in detail.items():
        if name not in ("act", "steps"):
            decision[name] = value

    why = previous.why if previous else "the fact was taken back"
    act.note(
        CONFLICT,
        step.subject,
        {**decision, "conflict": conflict},
        why=why,
    )


def _notes_by_conflict(rows: RowStore, about: Term) -> dict[str, list[MemoryAudit]]:
    """What was recorded of each conflict, oldest first."""
    notes_by_conflict: dict[str, list[MemoryAudit]] = {}
    for note in scan(rows, MemoryAudit, [about]):
        if note.action == CONFLICT and "erased" not in note.detail:
            conflict = str(note.detail.get("conflict", note.key))
            notes_by_conflict.setdefault(conflict, []).append(note)

    return notes_by_conflict


def resolve_conflict(
    rows: RowStore,
    conflict_id: str,
    keep: str,
    act: Act,
) -> ConflictRecord:
    """Carry out a person's decision about a conflict that waits for one."""
    waiting = {conflict.id: conflict for conflict in record(rows, open_only=True)}
    if conflict_id not in waiting:
        raise UnknownMemory(
            f"no conflict {conflict_id!r} waits to be decided; `hades memory conflicts` lists "
            "those that do"
        )

    if keep not in (Outcome.NEW, Outcome.OLD):
        raise MemoryRefused(f"{keep!r} is not a decision; keep 'new' or 'old'")

    conflict = waiting[conflict_id]
    edges = []
    for name in (conflict.old_edge, conflict.new_edge):
        if name:
            edges.append(believe(rows, name))

    loser, winner = edges if keep == Outcome.NEW else reversed(edges)
    close_beaten(rows, loser, winner, act)
    detail = {
        "old": conflict.old_edge,
        "new": conflict.new_edge,
        "outcome": keep,
        "claim": conflict.claim,
        "conflict": conflict_id,
    }
    act.note(
        CONFLICT,
        f"{CONFLICT}_{conflict.old_edge}",
        detail,
    )
    return replace(
        conflict,
        outcome=Outcome(keep),
        reason=act.why,
    )


def _overlapping_facts(
    rows: RowStore,
    new: NewEdge,
    object_: MemoryState,
) -> tuple[list[MemoryEdge], list[MemoryEdge]]:
    """Believed facts of the same subject and relation whose time overlaps: about the same object,
    and about others.
    """
    subject = topic_of_key(new.source)
    same: list[MemoryEdge] = []

    rivals: list[MemoryEdge] = []
    for edge in edges_around(
        rows,
        new.source,
        Mask(known_at=NEWEST),
        direction=Direction.OUT,
        types=[new.relationship_type],
        whole_topic=True,
    ):
        is_forward = topic_of_key(edge.source) == subject
        is_empty = edge.valid_from == edge.valid_until
        spans = (edge.valid_from, edge.valid_until), (new.valid_from, new.valid_until)

        if is_forward and not is_empty and overlap(*spans):
            is_same = topic_of_key(edge.target) == topic_of_key(object_.key)
            (same if is_same else rivals).append(edge)

    return same, rivals


def _span(edge: MemoryEdge) -> Span:
    return edge.valid_from or edge.timestamp, edge.valid_until


@dataclass(frozen=True)
class Fact:
    """What is true now: the changed topic stands in this relation to a topic or state.

    `replaces` names the edge it takes the place of, by id or by relation; without it, an edge whose
    relation inverts into this one ends.
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
    rows: RowStore,
    old: MemoryState,
    new: NewState,
    facts: Sequence[Fact],
    act: Act,
    *,
    at: datetime | None,
) -> Change:
    """Write the new version and bring the topic's outgoing edges to what is true now.

    Without stated facts, an edge ends only when its relation has an inverse and the change, which
    is described by `act.why`, names what it points at.
    """
    written = append(rows, [new], act)[0]
    moment = at or written.valid_from or act.at
    mask = Mask(moment, NEWEST)
    around = edges_around(
        rows,
        old.topic,
        mask,
        direction=Direction.OUT,
    )
    active = [edge for edge in around if edge.relationship_type != MemoryRelation.EVOLVES_TO]
    done = Change(written, old.key, act=act.key)

    for fact in facts:
        drawn = _draw_changed(rows, written, fact, act, moment)
        done.new_edges.append(drawn)
        for edge in active.copy():
            if edge.id == drawn.id or not _takes_place_of(fact, edge):
                continue

            active.remove(edge)
            done.obsolete_edges.append(
                end(
                    rows,
                    edge.id,
                    act,
                    at=moment,
                    superseded_by=drawn.id,
                )
            )
            done.reasons.append(
                f"{_show_edge(rows, edge)} ended: the stated {fact.relation} takes its place"
            )

    for edge in active:
        if facts:
            done.reasons.append(f"{_show_edge(rows, edge)} stays: no stated fact takes its place")
        else:
            _end_named(rows, edge, act, moment, done)

    return done


def _takes_place_of(fact: Fact, edge: MemoryEdge) -> bool:
    if fact.replaces is None:
        return INVERSIONS.get(edge.relationship_type) == fact.relation
    return fact.replaces in (edge.id, edge.key, edge.relationship_type)


def _end_named(
    rows: RowStore,
    edge: MemoryEdge,
    act: Act,
    moment: datetime,
    done: Change,
) -> None:
    """What the change alone, without stated facts, means for an edge."""
    shown = _show_edge(rows, edge)
    target = _topic_of(rows, edge.target)

    if edge.relationship_type not in INVERSIONS:
        done.reasons.append(f"{shown} stays: {find_inverse(edge.relationship_type)[1]}")
        return

    if not names_topic(act.why, target):
        done.reasons.append(f"{shown} stays: the change does not name {target}")
        return

    inverse, why = find_inverse(edge.relationship_type)
    drawn = None
    if inverse is not None:
        drawn = _draw_changed(
            rows,
            done.new_state,
            Fact(inverse, target),
            act,
            moment,
        )
        done.new_edges.append(drawn)

    successor = drawn.id if drawn else None
    done.obsolete_edges.append(
        end(
            rows,
            edge.id,
            act,
            at=moment,
            superseded_by=successor,
        )
    )
    done.reasons.append(f"{shown} ended: the change names {target}; {why}")


def _draw_changed(
    rows: RowStore,
    written: MemoryState,
    fact: Fact,
    act: Act,
    moment: datetime,
) -> MemoryEdge:
    target = named(rows, fact.target, written.timestamp)
    new = NewEdge(
        state_id(written.key),
        state_id(target.key),
        fact.relation,
        strength=fact.strength,
        valid_from=moment,
        description=fact.description or act.why,
    )
    return draw(rows, new, act, action="fact")


def _topic_of(rows: RowStore, identifier: str) -> str:
    states = by_keys(rows, [key_of(identifier)])
    return states[0].topic if states else identifier


def _show_edge(rows: RowStore, edge: MemoryEdge) -> str:
    return f"{edge.relationship_type} {_topic_of(rows, edge.target)}"
