"""`hades memory ...`: what each command does, as a document and for the eye."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from hades.errors import SettingsError
from hades.memory.history.change import Fact
from hades.memory.history.names import MemoryRefused, UnknownMemory
from hades.memory.service import Memory
from hades.ports.store import Direction
from hades.settings import load_settings
from hades.surfaces.cli.memory_trees import (
    account_view,
    act_document,
    edge_document,
    edge_table,
    shown,
    state_document,
    table_of,
)
from hades.surfaces.cli.moments import moment
from hades.surfaces.cli.output import Answer
from hades.text.keywords import day
from hades.wiring import open_memory
from schemas.intervals import Mask
from schemas.memory import MemoryState

_SHOWN = 100  # characters of a content in a table


def with_memory(do: Callable[[Memory], Answer]) -> Answer:
    """Run a body on the memory of the settings."""
    with open_memory(load_settings()) as memory:
        return do(memory)


def add(
    topic: str,
    content: str,
    *,
    tags: Sequence[str],
    confidence: float,
    importance: float | None,
    metadata: str | None,
    valid_from: str | None,
    valid_until: str | None,
    who: str | None,
    why: str,
) -> Answer:
    """Say something new about a topic."""

    def do(memory: Memory) -> Answer:
        state = memory.add(
            topic,
            content,
            tags=tags,
            confidence=confidence,
            importance=importance,
            metadata=_object(metadata),
            valid_from=moment(valid_from, "--valid-from"),
            valid_until=moment(valid_until, "--valid-until"),
            who=person(who),
            why=why,
        )
        return Answer(
            {"state": state_document(state)},
            (Text(f"{state.topic} is at version {state.version}"), Text(f"id {state.id}")),
        )

    return with_memory(do)


def latest(topic: str) -> Answer:
    """The newest version."""
    return with_memory(lambda memory: _one(memory.latest(topic), f"memory holds no topic {topic!r}"))


def at(topic: str, when: str, known_at: str | None) -> Answer:
    """What was true then, with the edges that held."""

    def do(memory: Memory) -> Answer:
        then = _required(when)
        known = moment(known_at, "--known-at")
        state = memory.at(topic, then, known_at=known)
        if state is None:
            raise UnknownMemory(f"nothing was known of {topic!r} at {when}; `hades memory history` shows its versions")
        edges = memory.edges(topic, mask=Mask(as_of=then, known_at=known))
        document = {"state": state_document(state), "edges": [edge_document(edge) for edge in edges]}
        return Answer(document, (*shown(state), edge_table(memory, edges)))

    return with_memory(do)


def history(topic: str, limit: int | None) -> Answer:
    """The versions, oldest first, each with who wrote it and why."""

    def do(memory: Memory) -> Answer:
        states = memory.history(topic, limit=limit)
        if not states:
            raise UnknownMemory(f"memory holds no topic {topic!r}; `hades memory topics` lists what there is")
        acts = {act.subject: act for state in states for act in memory.audit(state.id) if act.action == "add"}
        rows = [{**state_document(state), "act": act_document(acts.get(state.id))} for state in states]
        table = table_of("version", "since", "who", "why", "content")
        for state in states:
            act = acts.get(state.id)
            table.add_row(
                str(state.version), day(state.valid_from), act.who if act else "", act.why if act else "",
                state.content[:_SHOWN],
            )  # fmt: skip
        return Answer({"topic": topic, "states": rows}, (table,))

    return with_memory(do)


def topics(prefix: str) -> Answer:
    """The names of topics."""

    def do(memory: Memory) -> Answer:
        names = memory.topics(prefix)
        return Answer({"topics": names}, (Text("\n".join(names) or "memory is empty"),))

    return with_memory(do)


def link(
    source: str,
    relation: str,
    target: str,
    *,
    strength: float,
    description: str,
    bidirectional: bool,
    valid_from: str | None,
    valid_until: str | None,
    who: str | None,
    why: str,
) -> Answer:
    """Join two topics or states."""

    def do(memory: Memory) -> Answer:
        edge = memory.link(
            source,
            target,
            relation,
            strength=strength,
            description=description,
            bidirectional=bidirectional,
            valid_from=moment(valid_from, "--valid-from"),
            valid_until=moment(valid_until, "--valid-until"),
            who=person(who),
            why=why,
        )
        return Answer({"edge": edge_document(edge)}, (edge_table(memory, [edge]),))

    return with_memory(do)


def close(edge_id: str, at_: str | None, superseded_by: str | None, who: str | None, why: str) -> Answer:
    """Say that an edge stopped being true."""

    def do(memory: Memory) -> Answer:
        edge = memory.close(edge_id, at=moment(at_, "--at"), superseded_by=superseded_by, who=person(who), why=why)
        return Answer({"edge": edge_document(edge)}, (edge_table(memory, [edge]),))

    return with_memory(do)


def edges(
    name: str, *, as_of: str | None, known_at: str | None, everything: bool, direction: str, types: Sequence[str]
) -> Answer:
    """The edges at a topic or state."""

    def do(memory: Memory) -> Answer:
        mask = Mask(as_of=moment(as_of, "--as-of"), known_at=moment(known_at, "--known-at"))
        found = memory.edges(
            name, mask=mask, everything=everything, direction=Direction(direction), types=list(types) or None
        )
        return Answer({"edges": [edge_document(edge) for edge in found]}, (edge_table(memory, found),))

    return with_memory(do)


def why(topic: str, as_of: str | None, known_at: str | None) -> Answer:
    """What holds, why, and what no longer does."""

    def do(memory: Memory) -> Answer:
        mask = Mask(as_of=moment(as_of, "--as-of"), known_at=moment(known_at, "--known-at"))
        account = memory.why(topic, mask=mask)
        return Answer(account.as_dict(), account_view(account))

    return with_memory(do)


def when(topic: str, from_rel: str, to_rel: str) -> Answer:
    """When one relation gave way to another."""

    def do(memory: Memory) -> Answer:
        change = memory.find_edge_change(topic, from_rel, to_rel)
        if change is None:
            return Answer({"at": None}, (Text(f"{from_rel} never gave way to {to_rel}"),), ok=False)
        document = {
            "at": change.at.isoformat(),
            "ended": edge_document(change.ended),
            "began": edge_document(change.began),
        }
        return Answer(document, (Text(f"at {day(change.at)}"), edge_table(memory, [change.ended, change.began])))

    return with_memory(do)


def promote(topic: str, reason: str, content: str | None, who: str | None) -> Answer:
    """Make the next version out of what is known."""

    def do(memory: Memory) -> Answer:
        done = memory.promote(topic, reason, content, who=person(who))
        document = {
            "state": state_document(done.state),
            "edges": [edge_document(edge) for edge in done.edges],
            "act": done.act,
        }
        return Answer(document, (*shown(done.state), edge_table(memory, done.edges)))

    return with_memory(do)


def change(name: str, said: str, facts: Sequence[str], content: str | None, at_: str | None, who: str | None) -> Answer:
    """Say that a fact changed."""

    def do(memory: Memory) -> Answer:
        stated = [_fact(text) for text in facts]
        done = memory.change(name, said, facts=stated, content=content, at=moment(at_, "--at"), who=person(who))
        document = {
            "new_state": state_document(done.new_state),
            "previous_state_id": done.previous_state_id,
            "new_edges": [edge_document(edge) for edge in done.new_edges],
            "obsolete_edges": [edge_document(edge) for edge in done.obsolete_edges],
            "reasons": done.reasons,
            "act": done.act,
        }
        return Answer(document, (*shown(done.new_state), Text("\n".join(done.reasons)), Text(f"act {done.act}")))

    return with_memory(do)


def fact(
    subject: str,
    relation: str,
    object_: str,
    *,
    valid_from: str | None,
    valid_until: str | None,
    confidence: float,
    source: str,
    functional: bool | None,
    who: str | None,
    why_: str,
) -> Answer:
    """Assert a fact; conflicts are decided and recorded."""

    def do(memory: Memory) -> Answer:
        done = memory.assert_fact(
            subject,
            relation,
            object_,
            valid_from=moment(valid_from, "--valid-from"),
            valid_until=moment(valid_until, "--valid-until"),
            confidence=confidence,
            source=source,
            functional=functional,
            who=person(who),
            why=why_,
        )
        met = [{"old": one.old.id, "outcome": one.verdict.outcome, "why": one.verdict.reason} for one in done.conflicts]
        document = {"edges": [edge_document(edge) for edge in done.edges], "conflicts": met, "act": done.act}
        lines = [f"excludes {one['old']}: {one['outcome']}, {one['why']}" for one in met]
        return Answer(document, (edge_table(memory, done.edges), Text("\n".join(lines) or "no conflict")))

    return with_memory(do)


def conflicts(open_only: bool) -> Answer:
    """Facts that excluded each other."""

    def do(memory: Memory) -> Answer:
        found = memory.conflicts(open_only=open_only)
        rows = [{**vars(one), "at": one.at.isoformat()} for one in found]
        table = table_of("conflict", "claim", "outcome", "why")
        for one in found:
            said = f"{one.claim['subject']} {one.claim['relation']} {one.claim['object']}"
            table.add_row(one.id, said, str(one.outcome), one.reason)
        return Answer({"conflicts": rows}, (table,))

    return with_memory(do)


def resolve(conflict: str, keep: str, who: str | None, why_: str) -> Answer:
    """Decide a conflict."""

    def do(memory: Memory) -> Answer:
        done = memory.resolve(conflict, keep, who=person(who), why=why_)
        return Answer({"id": done.id, "outcome": str(done.outcome)}, (Text(f"the {done.outcome} fact is kept"),))

    return with_memory(do)


def undo(act: str, who: str | None, why_: str) -> Answer:
    """Take an act back."""

    def do(memory: Memory) -> Answer:
        done = memory.undo(act, who=person(who), why=why_)
        again = [state_document(state) for state in done.new_states]
        document = {
            "undid": done.undid,
            "edges": done.edges,
            "new_states": again,
            "retracted": done.retracted,
            "act": done.act,
        }
        lines = [f"took back {len(done.undid)} steps", f"act {done.act}"]
        return Answer(document, (Text("\n".join(lines)),))

    return with_memory(do)


def audit(subject: str) -> Answer:
    """Who did what to it, when and why."""

    def do(memory: Memory) -> Answer:
        names = [subject]
        if subject in memory.topics(subject):
            names = [*memory.trace(subject).states, *(edge.id for edge in memory.edges(subject, everything=True))]
        acts = sorted((act for name in names for act in memory.audit(name)), key=lambda act: act.key)
        table = table_of("act", "when", "what", "who", "why")
        for act in acts:
            table.add_row(act.key, day(act.at), f"{act.action} {act.subject}", act.who, act.why)
        return Answer({"acts": [act_document(act) for act in acts]}, (table,))

    return with_memory(do)


def erase(names: Sequence[str], who: str | None, why_: str) -> Answer:
    """Erase for good and print the certificate."""

    def do(memory: Memory) -> Answer:
        certificate = memory.erase(list(names), who=person(who), why=why_)
        lines = [
            f"certificate {certificate.id}",
            f"erased {len(certificate.states)} versions ({len(certificate.derived)} made of others), "
            f"{len(certificate.edges)} edges; blanked {certificate.audit_blanked} records, "
            f"redacted {certificate.redacted} rows and {len(certificate.masked_files)} files",
            "complete: a search of every row and every file of the home finds nothing of it"
            if certificate.is_complete
            else "not complete; these commands remove the rest:",
            *certificate.commands,
        ]
        return Answer(certificate.as_dict(), (Text("\n".join(lines)),), ok=certificate.is_complete)

    return with_memory(do)


def check(write_out: bool) -> Answer:
    """Say what is wrong with memory."""

    def do(memory: Memory) -> Answer:
        found = memory.check(write_out=write_out)
        return Answer({"problems": found}, (Text("\n".join(found) or "memory is sound"),), ok=not found)

    return with_memory(do)


def _one(state: MemoryState | None, missing: str) -> Answer:
    if state is None:
        raise UnknownMemory(f"{missing}; `hades memory topics` lists what there is")
    return Answer({"state": state_document(state)}, shown(state))


def _fact(text: str) -> Fact:
    relation, equals, rest = text.partition("=")
    target, _, replaces = rest.partition("@")
    if not equals or not target:
        raise MemoryRefused(f"{text!r} states no fact; write RELATION=TOPIC, or RELATION=TOPIC@EDGE_IT_REPLACES")
    return Fact(relation.strip(), target.strip(), replaces.strip() or None)


def _object(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    wanted = 'give an object like \'{"source": "review"}\''
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--metadata is not JSON ({error}); {wanted}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"--metadata is {type(value).__name__}, not an object; {wanted}")
    return value


def _required(text: str) -> datetime:
    parsed = moment(text, "the moment")
    assert parsed is not None
    return parsed


def person(given: str | None) -> str:
    """Who does it: the name that was given, or the user of this session."""
    return given if given is not None else getpass.getuser()
