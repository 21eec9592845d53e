"""Memory: versions of topics, edges between them, and every change of either."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from hades.errors import SettingsError
from hades.memory.history.facts import Fact
from hades.memory.history.rows import MemoryRefused, UnknownMemory, plain
from hades.memory.memory import Memory
from hades.memory.upkeep.learn import known_trust, learn_trust
from hades.ports.store import Direction
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    AtMoment,
    Cli,
    Id,
    KnownAt,
    Mcp,
    Moment,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    capability,
    check_storable,
    field,
)
from hades.surfaces.capabilities.replies import edge_documents, unknown_topic
from schemas.ids import Mask
from schemas.memory import MemoryEdgeKind


def read_object(text: str) -> dict[str, Any]:
    """A JSON object from the command line."""
    expected = 'give an object such as \'{"source": "review"}\''
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--metadata is not JSON ({error}); {expected}") from error

    if not isinstance(value, dict):
        raise SettingsError(f"--metadata is {type(value).__name__}, not an object; {expected}")

    return value


TOPIC_CHARACTERS = 500
TOPIC_OR_STATE = "A topic, or the id of one version."
PlainTopic = Annotated[str, Field(min_length=1, max_length=TOPIC_CHARACTERS)]
Topic = Annotated[
    PlainTopic,
    Shell(metavar="TOPIC"),
    Field(description="Topic; may hold slashes, for example design/approach_x."),
]
TopicOrState = Annotated[
    str,
    Field(
        min_length=1,
        max_length=max(TOPIC_CHARACTERS, ID_CHARACTERS),
        description=TOPIC_OR_STATE,
    ),
    Shell(metavar="TOPIC_OR_STATE"),
]
Relation = Annotated[str, Field(min_length=1, max_length=64), Shell(metavar="RELATION")]
Content = Annotated[str, Field(min_length=1, max_length=100_000)]
StatedReason = Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS)]
ValidFrom = Annotated[
    Moment | None,
    Field(description="True from this time on, for example 2026-01-31; by default now."),
]
ValidUntil = Annotated[
    Moment | None, Field(description="True until this time, exclusive; by default without end.")
]
Why = Annotated[Reason, Field(description="Reason, kept in the audit.")]
Confidence = Annotated[Share, Field(description="Confidence, 0 to 1.")]
Strength = Annotated[Share, Field(description="Strength, 0 to 1.")]
Metadata = Annotated[
    dict[str, Any],
    Field(max_length=64),
    AfterValidator(check_storable),
    Shell(metavar="JSON", read=read_object),
]
Tag = Annotated[str, Field(max_length=100)]


@capability(
    "memory.add",
    "rw",
    Cli("topic content", who="--who"),
    Rest(
        "POST",
        "/memory/states",
        "Add a version to a topic",
        201,
        "state",
        examples=(
            {
                "topic": "design/approach_x",
                "content": "Approach X needs a second index.",
                "tags": ["design"],
            },
        ),
    ),
    Mcp(
        "memory_add",
        "Add to memory",
        replies.MemoryStateReply,
        is_idempotent=False,
    ),
)
def add(
    context: CallContext,
    *,
    topic: Topic = field(examples=["project/deadline", "user/preferences"]),
    content: Content = field(
        "What is known now, complete.",
        examples=["The deadline is May 2."],
    ),
    tags: tuple[Tag, ...] = field(
        "Tag to find it by; may be repeated.",
        (),
        "--tag",
        max_length=64,
    ),
    confidence: Confidence = 1.0,
    metadata: Metadata = field(
        "Object that is kept with the version.",
        default_factory=dict,
    ),
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    importance: Share | None = field("Importance, 0 to 1; by default 0.5.", None),
    why: Why = "",
) -> dict[str, Any]:
    """Add a version to a topic. Earlier versions are kept and can be read."""
    state = context.memory.add(
        topic,
        content,
        tags=tags,
        confidence=confidence,
        metadata=metadata,
        valid_from=valid_from,
        valid_until=valid_until,
        importance=importance,
        why=why,
        who=context.who,
    )
    holds = context.memory.latest(state.topic)

    if holds is None:
        current = None
    else:
        current = {
            "id": holds.id,
            "version": holds.version,
        }

    return {
        "topic": state.topic,
        "state": plain(state),
        "holds": current,
    }


@capability(
    "memory.topics",
    Cli("prefix"),
    Rest("GET", "/memory/topics", "Topics"),
)
def topics(
    context: CallContext,
    *,
    prefix: str = field(
        "Only topics that begin with this.",
        "",
        max_length=TOPIC_CHARACTERS,
    ),
    limit: int = field(
        "Maximum number of topics.",
        1000,
        ge=1,
        le=10_000,
    ),
) -> dict[str, Any]:
    """List the topics of the memory."""
    names = context.memory.topics(prefix)
    return {
        "topics": names[:limit],
        "total": len(names),
    }


@capability(
    "memory.latest",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/latest",
        "Newest version of a topic",
        part="state",
    ),
    Mcp(
        "memory_latest",
        "Newest version of a topic",
        replies.MemoryStateReply,
        null_when_unknown="state",
    ),
    also=AtMoment,
)
def latest(
    context: CallContext, *, topic: Topic = field(examples=["project/deadline"]), **when: Any
) -> dict[str, Any]:
    """Read the version of a topic that holds now, or at a time."""
    state = context.memory.latest(topic, mask=Mask(**when))
    if state is None and context.memory.history(topic, limit=1):
        raise UnknownMemory(
            f"nothing holds of {topic!r} then; `hades memory history` shows its versions"
        )

    if state is None:
        raise unknown_topic(topic)

    context.memory.log_accesses([state.id])
    return {"topic": topic, "state": plain(state)}


@capability(
    "memory.history",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/history",
        "Versions of a topic",
    ),
    also=AtMoment,
)
def history(
    context: CallContext,
    *,
    topic: Topic,
    limit: int = field(
        "Maximum number of versions; the newest are listed.",
        100,
        ge=1,
        le=1000,
    ),
    **when: Any,
) -> dict[str, Any]:
    """List the versions of a topic, oldest first, with who wrote each and why."""
    memory = context.memory
    mask = Mask(**when)
    states = memory.history(
        topic,
        limit=limit,
        mask=mask,
    )

    if not states:
        raise unknown_topic(topic)

    add_acts = {}
    for state in states:
        for act in memory.audit(state.id):
            if act.action == "add":
                add_acts[act.subject] = act

    rows = [
        {
            **plain(state),
            "act": plain(add_acts.get(state.id)),
        }
        for state in states
    ]
    holds = memory.latest(topic, mask=mask)
    return {
        "topic": topic,
        "states": rows,
        "holds": None if holds is None else holds.id,
    }


@capability(
    "memory.at",
    Cli("topic moment"),
    Rest(
        "GET",
        "/memory/{topic:path}/at",
        "What was true of a topic at a time",
        part="state",
    ),
    Mcp(
        "memory_at",
        "What was true at a time",
        replies.MemoryStateReply,
        null_when_unknown="state",
    ),
    task="query at time",
)
def at(
    context: CallContext,
    *,
    topic: Topic = field(examples=["project/deadline"]),
    moment: Moment = field(
        "The time, for example 2026-01-31 or 2026-01-31T12:00:00Z.",
        metavar="TIME",
        examples=["2026-01-31T12:00:00Z"],
    ),
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Read what was true of a topic at a time, with the edges that held then."""
    document = at_or_null(context.memory, topic, moment, known_at)
    if document["state"] is None:
        when = moment.isoformat()
        raise UnknownMemory(
            f"nothing was known of {topic!r} at {when}; `hades memory history` lists its versions"
        )

    return document


def at_or_null(
    memory: Memory,
    topic: str,
    moment: datetime,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """The same with `state` None before the first version."""
    state = memory.at(topic, moment, known_at=known_at)
    edges = []

    if state is not None:
        edges = memory.edges(topic, mask=Mask(as_of=moment, known_at=known_at))

    return {
        "topic": topic,
        "state": plain(state),
        "edges": edge_documents(memory, edges),
    }


@capability(
    "memory.trace",
    Rest(
        "GET",
        "/memory/{topic:path}/trace",
        "All versions of a topic by id",
    ),
)
def trace(context: CallContext, *, topic: Topic) -> dict[str, Any]:
    """Read all versions of a topic by id, oldest first."""
    document: dict[str, Any] = plain(context.memory.trace(topic))
    return document


@capability(
    "memory.link",
    "rw",
    Cli("source relation target", who="--who"),
    Rest(
        "POST",
        "/memory/links",
        "Join two topics",
        201,
        "edge",
        examples=(
            {
                "source": "design/approach_x",
                "target": "design/index",
                "relation": "blocked_by",
            },
        ),
    ),
)
def link(
    context: CallContext,
    *,
    source: TopicOrState = field(
        "A topic, which means its newest version, or the id of one version."
    ),
    relation: Relation = field("Relation in small letters, digits and _, for example blocked_by."),
    target: TopicOrState,
    kind: Literal["temporal", "cross_topic", "causal", "reference"] | None = field(
        "Kind of the edge; by default it follows from the relation.", None
    ),
    strength: Strength = 1.0,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    description: Reason = field("The edge in a sentence.", ""),
    bidirectional: bool = field(
        "The relation holds in both directions.",
        False,
        "--both-ways",
    ),
    metadata: Metadata = field(
        "Object that is kept with the edge.",
        default_factory=dict,
    ),
    why: Why = "",
) -> dict[str, Any]:
    """Join two topics or states by a relation that holds over a time."""
    edge = context.memory.link(
        source=source,
        target=target,
        relation=relation,
        kind=None if kind is None else MemoryEdgeKind(kind),
        strength=strength,
        valid_from=valid_from,
        valid_until=valid_until,
        description=description,
        bidirectional=bidirectional,
        metadata=metadata,
        why=why,
        who=context.who,
    )
    return {"edge": edge_documents(context.memory, [edge])[0]}


@capability(
    "memory.close",
    "rw",
    Cli("edge_id", who="--who"),
    Rest(
        "POST",
        "/memory/links/{edge_id}/close",
        "End an edge",
        part="edge",
    ),
)
def close(
    context: CallContext,
    *,
    edge_id: Id = field(
        "Id of the edge, as `hades memory edges` prints it.",
        metavar="EDGE_ID",
    ),
    at: Moment | None = field("When it stopped being true; by default now.", None),
    superseded_by: Id | None = field(
        "The edge that replaces it.",
        None,
        metavar="EDGE_ID",
    ),
    why: Why = "",
) -> dict[str, Any]:
    """End an edge: from then on it is not true. It stays in the history."""
    edge = context.memory.close(
        edge_id,
        at=at,
        superseded_by=superseded_by,
        why=why,
        who=context.who,
    )
    return {"edge": edge_documents(context.memory, [edge])[0]}


@capability(
    "memory.edges",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/edges",
        "Edges of a topic",
    ),
    also=AtMoment,
)
def edges(
    context: CallContext,
    *,
    topic: TopicOrState,
    direction: Literal["any", "outbound", "inbound"] = field("Direction of the edges.", "any"),
    types: tuple[Id, ...] = field(
        "Only edges of this relation; may be repeated.",
        (),
        "--relation",
        max_length=32,
    ),
    everything: bool = field(
        "Also edges that have ended or have not begun.",
        False,
        "--all",
    ),
    **when: Any,
) -> dict[str, Any]:
    """List the edges of a topic or state that are true now, or were true at a time."""
    edges = context.memory.edges(
        topic,
        mask=Mask(**when),
        direction=Direction(direction),
        types=list(types) or None,
        everything=everything,
    )
    return {
        "topic": topic,
        "edges": edge_documents(context.memory, edges),
    }


@capability(
    "memory.why",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/why",
        "What holds of a topic, and why",
    ),
    also=AtMoment,
)
def why_it_holds(context: CallContext, *, topic: Topic, **when: Any) -> dict[str, Any]:
    """Say what holds of a topic, why it holds, and what held before."""
    return context.memory.why(topic, mask=Mask(**when))


@capability(
    "memory.when",
    Cli(
        "topic from_rel to_rel",
        succeeds=lambda document: document["at"] is not None,
    ),
    Rest(
        "GET",
        "/memory/{topic:path}/when",
        "When one relation was replaced by another",
    ),
    task="find edge change",
)
def when(
    context: CallContext,
    *,
    topic: Topic,
    from_rel: Relation = field("The relation that ended.", metavar="FROM_RELATION"),
    to_rel: Relation = field("The relation that began.", metavar="TO_RELATION"),
) -> dict[str, Any]:
    """Find when one relation of a topic was replaced by another; `at` is null when it never was."""
    change = context.memory.find_edge_change(
        topic,
        from_rel,
        to_rel,
    )
    if change is None:
        return {"at": None}

    at, *edges = change
    ended, began = edge_documents(context.memory, edges)
    return {
        "at": at.isoformat(),
        "ended": ended,
        "began": began,
    }


@capability(
    "memory.audit",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/audit",
        "Who did what to a topic",
    ),
)
def audit(
    context: CallContext,
    *,
    topic: TopicOrState = field(
        "A topic, or the id of a state or an edge.",
        metavar="TOPIC_STATE_OR_EDGE",
    ),
) -> dict[str, Any]:
    """List who did what to a topic, a state or an edge, when and why."""
    return {
        "subject": topic,
        "acts": [plain(act) for act in context.memory.audit(topic)],
    }


def read_facts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Facts as the command line writes them: RELATION=TOPIC or RELATION=TOPIC@EDGE."""
    facts = []
    for text in texts:
        relation, equals, target_text = text.partition("=")
        target, _, replaces = (part.strip() for part in target_text.partition("@"))
        if not equals or not target:
            raise MemoryRefused(
                f"{text!r} states no fact; write RELATION=TOPIC, or RELATION=TOPIC@EDGE_IT_REPLACES"
            )

        facts.append(
            {
                "relation": relation.strip(),
                "target": target,
                "replaces": replaces or None,
            }
        )

    return facts


class FactPart(Request):
    """A fact that is true of the changed topic now."""

    relation: Relation = Field(description="Relation, for example enabled_by.")
    target: Id = Field(description=TOPIC_OR_STATE)
    replaces: Id | None = Field(
        None,
        description="The edge that it replaces, by id or by relation.",
    )
    description: Reason = Field("", description="The fact in a sentence.")
    strength: Share = Field(1.0, description="Strength, 0 to 1.")


@capability(
    "memory.promote",
    "rw",
    Cli("topic reason", who="--who"),
    Rest(
        "POST",
        "/memory/{topic:path}/promote",
        "Make the next version of a topic",
        201,
    ),
    task="promote memory",
)
def promote(
    context: CallContext,
    *,
    topic: Topic,
    reason: StatedReason = field("Why there is a new version.", metavar="REASON"),
    content: Content | None = field(
        "The new version; by default it is made from what is known.", None
    ),
) -> dict[str, Any]:
    """Make the next version of a topic from its history and its neighbours, or from the content
    given.
    """
    promotion = context.memory.promote(
        topic,
        reason,
        content,
        who=context.who,
    )
    edges = edge_documents(context.memory, promotion.edges)
    return {
        "state": plain(promotion.state),
        "edges": edges,
        "act": promotion.act,
    }


@capability(
    "memory.change",
    "rw",
    Cli("old_state_id change_description", who="--who"),
    Rest(
        "POST",
        "/memory/change",
        "State that a fact changed",
        201,
        examples=(
            {
                "old_state_id": "design/approach_x",
                "change_description": "The index was built, X works now.",
                "facts": [
                    {
                        "relation": "enabled_by",
                        "target": "design/index",
                        "replaces": "blocked_by",
                    }
                ],
            },
        ),
    ),
    task="handle fact change",
)
def change(
    context: CallContext,
    *,
    old_state_id: TopicOrState,
    change_description: str = field(
        "What changed.",
        min_length=1,
        max_length=4000,
        metavar="DESCRIPTION",
    ),
    facts: tuple[FactPart, ...] = field(
        "What is true now.",
        (),
        "--fact",
        metavar="RELATION=TOPIC[@EDGE]",
        read=read_facts,
        help="What is true now, and the edge that it replaces; may be repeated.",
        max_length=64,
    ),
    content: Content | None = field("The new version; by default the description.", None),
    at: Moment | None = field("When it changed; by default now.", None),
) -> dict[str, Any]:
    """State that a fact changed: a new version is written, edges that it makes untrue end, and each
    says why.
    """
    new_facts = [Fact(**dict(fact)) for fact in facts]
    report = context.memory.change(
        old_state_id,
        change_description,
        facts=new_facts,
        content=content,
        at=at,
        who=context.who,
    )
    return {
        "new_state": plain(report.new_state),
        "previous_state_id": report.previous_state_id,
        "new_edges": edge_documents(context.memory, report.new_edges),
        "obsolete_edges": edge_documents(context.memory, report.obsolete_edges),
        "reasons": report.reasons,
        "act": report.act,
    }


@capability(
    "memory.fact",
    "rw",
    Cli("subject relation object", who="--who"),
    Rest("POST", "/memory/facts", "Assert a fact", 201),
)
def fact(
    context: CallContext,
    *,
    subject: TopicOrState,
    relation: Relation = field("Relation, for example works_at."),
    object: TopicOrState = field(metavar="OBJECT"),
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    confidence: Confidence = 1.0,
    source: Reason = field("Where the fact comes from.", ""),
    trust: Share | None = field(
        "Trust in the source, 0 to 1; decides between facts of equal confidence. By default 0.5.",
        None,
    ),
    functional: bool | None = field(
        "Whether the relation holds for one object at a time.",
        None,
        "--functional/--not-functional",
    ),
    description: Reason = field("The fact in a sentence.", ""),
    why: Why = "",
) -> dict[str, Any]:
    """Assert a fact. Where it excludes another, confidence, source and recency decide, and a record
    says how.
    """
    memory = context.memory
    report = memory.assert_fact(
        subject,
        relation,
        object,
        valid_from=valid_from,
        valid_until=valid_until,
        confidence=confidence,
        source=source,
        trust=known_trust(memory) if trust is None else trust,
        functional=functional,
        description=description,
        why=why,
        who=context.who,
    )
    conflicts = [
        {
            "old": edge.id,
            "outcome": outcome,
            "why": cause,
        }
        for edge, (outcome, cause) in report.conflicts
    ]
    edges = edge_documents(memory, report.edges)
    return {
        "edges": edges,
        "conflicts": conflicts,
        "act": report.act,
    }


@capability(
    "memory.conflicts",
    Cli(),
    Rest(
        "GET",
        "/memory/conflicts",
        "Facts that excluded each other",
    ),
)
def conflicts(
    context: CallContext,
    *,
    open_only: bool = field(
        "Only conflicts that need a decision.",
        False,
        "--open",
    ),
) -> dict[str, Any]:
    """List facts that excluded each other, and what was decided; oldest first."""
    return {"conflicts": plain(context.memory.conflicts(open_only=open_only))}


@capability(
    "memory.resolve",
    "rw",
    Cli("conflict_id keep", who="--who"),
    Rest(
        "POST",
        "/memory/conflicts/{conflict_id}/resolve",
        "Decide a conflict",
    ),
)
def resolve(
    context: CallContext,
    *,
    conflict_id: Id = field(
        "Id of the conflict, as `hades memory conflicts` prints it.",
        metavar="CONFLICT_ID",
    ),
    keep: Literal["new", "old"] = field("Which fact is kept."),
    why: Why = "",
) -> dict[str, Any]:
    """Decide a conflict that neither confidence, source nor recency could."""
    memory = context.memory
    conflict = memory.resolve(
        conflict_id,
        keep,
        who=context.who,
        why=why,
    )
    winner = conflict.new_edge if keep == "new" else conflict.old_edge
    loser = conflict.old_edge if keep == "new" else conflict.new_edge
    learn_trust(
        memory,
        _source_of(memory, winner),
        _source_of(memory, loser),
        who=context.who,
    )
    return {
        "id": conflict.id,
        "outcome": str(conflict.outcome),
    }


def _source_of(memory: Memory, edge: str | None) -> str:
    """The source that the newest belief about an edge names."""
    if not edge:
        return ""
    return str(memory.beliefs(edge)[-1].metadata.get("source", ""))


@capability(
    "memory.undo",
    "rw",
    Cli("act_id", who="--who"),
    Rest(
        "POST",
        "/memory/acts/{act_id}/undo",
        "Undo an act",
    ),
)
def undo(
    context: CallContext,
    *,
    act_id: Id = field(
        "Id of the act, as `hades memory audit` prints it.",
        metavar="ACT_ID",
    ),
    why: Why = "",
) -> dict[str, Any]:
    """Undo an act by new versions and new edges; refused when later acts depend on it."""
    document: dict[str, Any] = plain(
        context.memory.undo(
            act_id,
            who=context.who,
            why=why,
        )
    )
    return document


@capability(
    "memory.erase",
    "admin",
    Cli(
        "names",
        who="--who",
        succeeds=lambda document: bool(document["complete"]),
    ),
    Rest("POST", "/memory/erase", "Erase permanently"),
    Mcp(
        "memory_erase",
        "Erase permanently",
        replies.MemoryErasureReply,
    ),
)
def erase(
    context: CallContext,
    *,
    names: tuple[Id, ...] = field(
        "Topics by name, single versions by id.",
        metavar="TOPIC_OR_STATE...",
        min_length=1,
        max_length=1000,
    ),
    why: StatedReason = field("Reason; required."),
) -> dict[str, Any]:
    """Erase topics or states permanently, with everything derived from them; returns a certificate
    of hashes.
    """
    return context.memory.erase(
        list(names),
        who=context.who,
        why=why,
    )


@capability(
    "memory.compact",
    "admin",
    Cli(succeeds=lambda document: bool(document["compacted"])),
)
def compact(context: CallContext) -> dict[str, Any]:
    """Rewrite the files of the store without deleted rows: completes an erasure that other readers
    delayed.
    """
    return {"compacted": context.memory.compact()}


@capability(
    "memory.check",
    "rw",
    Cli(succeeds=lambda document: not document["problems"]),
    task="check memory",
)
def check(
    context: CallContext,
    *,
    write_out: bool = field(
        "Also write memory_traces, for other tools.",
        False,
        "--traces",
    ),
) -> dict[str, Any]:
    """Check all of memory: version gaps, parents, pointers, overlapping beliefs, cycles."""
    return {"problems": context.memory.check(write_out=write_out)}
