"""Changes of memory: promote, change and assert facts, decide conflicts, undo, erase, check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from hades.memory.history.facts import Fact
from hades.memory.history.rows import MemoryRefused
from hades.memory.upkeep.learn import known_trust, learn_trust
from hades.surfaces.capabilities.capability import (
    CONTENT_CHARACTERS,
    REASON_CHARACTERS,
    CallContext,
    Capability,
    Cli,
    Id,
    Mcp,
    Moment,
    OmittedSurface,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    Task,
)
from hades.surfaces.capabilities.memory_states import (
    NO_TASK,
    NO_TOOL,
    TOPIC,
    TOPIC_OR_STATE,
    VALID_FROM,
    VALID_UNTIL,
    WHY,
    Relation,
    Topic,
    TopicOrState,
    edge_documents,
    plain,
    state_document,
)

Content = Annotated[str, Field(min_length=1, max_length=CONTENT_CHARACTERS)]
StatedReason = Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS)]


def read_facts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Facts as the command line writes them: RELATION=TOPIC or RELATION=TOPIC@EDGE."""
    return [_read_fact(text) for text in texts]


def _read_fact(text: str) -> dict[str, Any]:
    relation, equals, rest = text.partition("=")
    target, _, replaces = rest.partition("@")
    if not equals or not target:
        raise MemoryRefused(f"{text!r} states no fact; write RELATION=TOPIC, or RELATION=TOPIC@EDGE_IT_REPLACES")
    return {"relation": relation.strip(), "target": target.strip(), "replaces": replaces.strip() or None}


class PromoteRequest(Request):
    """Make the next version of a topic from its history and its neighbours, or from the content given."""

    topic: Topic = Field(description=TOPIC)
    reason: Annotated[StatedReason, Shell(metavar="REASON")] = Field(description="Why there is a new version.")
    content: Content | None = Field(None, description="The new version; by default it is made from what is known.")


class FactPart(Request):
    """A fact that is true of the changed topic now."""

    relation: Relation = Field(description="Relation, for example enabled_by.")
    target: Id = Field(description=TOPIC_OR_STATE)
    replaces: Id | None = Field(None, description="The edge that it replaces, by id or by relation.")
    description: Reason = Field("", description="The fact in a sentence.")
    strength: Share = Field(1.0, description="Strength, 0 to 1.")


class ChangeRequest(Request):
    """State that a fact changed: a new version is written, edges that it makes untrue end, and each says why."""

    old_state_id: TopicOrState = Field(description=TOPIC_OR_STATE)
    change_description: Annotated[str, Field(min_length=1, max_length=4000), Shell(metavar="DESCRIPTION")] = Field(
        description="What changed."
    )
    facts: Annotated[
        tuple[FactPart, ...],
        Shell(flags=("--fact",), metavar="RELATION=TOPIC[@EDGE]", read=read_facts,
              help="What is true now, and the edge that it replaces; may be repeated."),
    ] = Field((), max_length=64, description="What is true now.")  # fmt: skip
    content: Content | None = Field(None, description="The new version; by default the description.")
    at: Moment | None = Field(None, description="When it changed; by default now.")


class FactRequest(Request):
    """Assert a fact. Where it excludes another, confidence, source and recency decide, and a record says how."""

    subject: TopicOrState = Field(description=TOPIC_OR_STATE)
    relation: Relation = Field(description="Relation, for example works_at.")
    object: Annotated[TopicOrState, Shell(metavar="OBJECT")] = Field(description=TOPIC_OR_STATE)
    valid_from: Moment | None = Field(None, description=VALID_FROM)
    valid_until: Moment | None = Field(None, description=VALID_UNTIL)
    confidence: Share = Field(1.0, description="Confidence, 0 to 1.")
    source: Reason = Field("", description="Where the fact comes from.")
    trust: Share | None = Field(
        None, description="Trust in the source, 0 to 1; decides between facts of equal confidence. By default 0.5."
    )
    functional: Annotated[bool, Shell(flags=("--functional/--not-functional",))] | None = Field(
        None, description="Whether the relation holds for one object at a time."
    )
    description: Reason = Field("", description="The fact in a sentence.")
    why: Reason = Field("", description=WHY)


class ConflictsRequest(Request):
    """List facts that excluded each other, and what was decided; oldest first."""

    open_only: Annotated[bool, Shell(flags=("--open",))] = Field(
        False, description="Only conflicts that need a decision."
    )


class ResolveRequest(Request):
    """Decide a conflict that neither confidence, source nor recency could."""

    conflict_id: Annotated[Id, Shell(metavar="CONFLICT_ID")] = Field(
        description="Id of the conflict, as `hades memory conflicts` prints it."
    )
    keep: Literal["new", "old"] = Field(description="Which fact is kept.")
    why: Reason = Field("", description=WHY)


class UndoRequest(Request):
    """Undo an act by new versions and new edges; refused when later acts depend on it."""

    act_id: Annotated[Id, Shell(metavar="ACT_ID")] = Field(
        description="Id of the act, as `hades memory audit` prints it."
    )
    why: Reason = Field("", description=WHY)


class EraseRequest(Request):
    """Erase topics or states permanently, with everything derived from them; returns a certificate of hashes."""

    names: Annotated[tuple[Id, ...], Shell(metavar="TOPIC_OR_STATE...")] = Field(
        min_length=1, max_length=1000, description="Topics by name, single versions by id."
    )
    why: StatedReason = Field(description="Reason; required.")


class CheckRequest(Request):
    """Check all of memory: version gaps, parents, pointers, overlapping beliefs, cycles."""

    write_out: Annotated[bool, Shell(flags=("--traces",))] = Field(
        False, description="Also write memory_traces, for other tools."
    )


class CompactRequest(Request):
    """Rewrite the files of the store without deleted rows: completes an erasure that other readers delayed."""


def promote(request: PromoteRequest, context: CallContext) -> dict[str, Any]:
    """Write the version and its edges."""
    memory = context.memory
    done = memory.promote(request.topic, request.reason, request.content, who=context.who)
    return {"state": state_document(done.state), "edges": edge_documents(memory, done.edges), "act": done.act}


def change(request: ChangeRequest, context: CallContext) -> dict[str, Any]:
    """Write the version, the edges that began and the ends of those that it makes untrue."""
    memory = context.memory
    facts = [Fact(**fact.arguments()) for fact in request.facts]
    done = memory.change(
        request.old_state_id,
        request.change_description,
        facts=facts,
        content=request.content,
        at=request.at,
        who=context.who,
    )
    return {
        "new_state": state_document(done.new_state),
        "previous_state_id": done.previous_state_id,
        "new_edges": edge_documents(memory, done.new_edges),
        "obsolete_edges": edge_documents(memory, done.obsolete_edges),
        "reasons": done.reasons,
        "act": done.act,
    }


def assert_fact(request: FactRequest, context: CallContext) -> dict[str, Any]:
    """Write the fact; conflicts are decided and recorded."""
    given = request.arguments()
    subject, relation, target = given.pop("subject"), given.pop("relation"), given.pop("object")
    if given.get("trust") is None:
        given["trust"] = known_trust(context.memory)
    done = context.memory.assert_fact(subject, relation, target, **given, who=context.who)
    met = [{"old": one.old.id, "outcome": one.verdict.outcome, "why": one.verdict.reason} for one in done.conflicts]
    return {"edges": edge_documents(context.memory, done.edges), "conflicts": met, "act": done.act}


def conflicts(request: ConflictsRequest, context: CallContext) -> dict[str, Any]:
    """The records of conflicts."""
    return {"conflicts": plain(context.memory.conflicts(open_only=request.open_only))}


def resolve(request: ResolveRequest, context: CallContext) -> dict[str, Any]:
    """Write the decision; the sources of both facts are trusted more and less for it."""
    memory = context.memory
    done = memory.resolve(request.conflict_id, request.keep, who=context.who, why=request.why)
    facts = (done.new_edge, done.old_edge) if request.keep == "new" else (done.old_edge, done.new_edge)
    won, lost = (str(memory.beliefs(edge)[-1].metadata.get("source", "")) if edge else "" for edge in facts)
    learn_trust(memory, won, lost, who=context.who)
    return {"id": done.id, "outcome": str(done.outcome)}


def undo(request: UndoRequest, context: CallContext) -> dict[str, Any]:
    """Write what reverses the act."""
    done = context.memory.undo(request.act_id, who=context.who, why=request.why)
    document: dict[str, Any] = plain(done)
    return {**document, "new_states": [state_document(state) for state in done.new_states]}


def erase(request: EraseRequest, context: CallContext) -> dict[str, Any]:
    """Erase and certify."""
    return context.memory.erase(list(request.names), who=context.who, why=request.why).as_dict()


def check(request: CheckRequest, context: CallContext) -> dict[str, Any]:
    """The problems, none when memory is consistent."""
    return {"problems": context.memory.check(write_out=request.write_out)}


def compact(request: CompactRequest, context: CallContext) -> dict[str, Any]:
    """Rewrite the files."""
    return {"compacted": context.memory.compact()}


_VIEWS = "hades.surfaces.cli.show_memory"
PROMOTE = Capability(
    "memory.promote", "rw", PromoteRequest, promote,
    cli=Cli(("memory", "promote"), ("topic", "reason"), f"{_VIEWS}:show_state", who="--who"),
    rest=Rest("POST", "/memory/{topic:path}/promote", "memory", "Make the next version of a topic", 201),
    mcp=NO_TOOL, task=Task("promote memory"),
)  # fmt: skip
CHANGE = Capability(
    "memory.change", "rw", ChangeRequest, change,
    cli=Cli(("memory", "change"), ("old_state_id", "change_description"), f"{_VIEWS}:show_change", who="--who"),
    rest=Rest("POST", "/memory/change", "memory", "State that a fact changed", 201, examples=({
        "old_state_id": "design/approach_x", "change_description": "The index was built, X works now.",
        "facts": [{"relation": "enabled_by", "target": "design/index", "replaces": "blocked_by"}]},)),
    mcp=NO_TOOL, task=Task("handle fact change"),
)  # fmt: skip
FACT = Capability(
    "memory.fact", "rw", FactRequest, assert_fact,
    cli=Cli(("memory", "fact"), ("subject", "relation", "object"), f"{_VIEWS}:show_fact", who="--who"),
    rest=Rest("POST", "/memory/facts", "memory", "Assert a fact", 201), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
CONFLICTS = Capability(
    "memory.conflicts", "ro", ConflictsRequest, conflicts,
    cli=Cli(("memory", "conflicts"), view=f"{_VIEWS}:show_conflicts"),
    rest=Rest("GET", "/memory/conflicts", "memory", "Facts that excluded each other"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
RESOLVE = Capability(
    "memory.resolve", "rw", ResolveRequest, resolve,
    cli=Cli(("memory", "resolve"), ("conflict_id", "keep"), f"{_VIEWS}:show_resolution", who="--who"),
    rest=Rest("POST", "/memory/conflicts/{conflict_id}/resolve", "memory", "Decide a conflict"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
UNDO = Capability(
    "memory.undo", "rw", UndoRequest, undo,
    cli=Cli(("memory", "undo"), ("act_id",), f"{_VIEWS}:show_undone", who="--who"),
    rest=Rest("POST", "/memory/acts/{act_id}/undo", "memory", "Undo an act"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
ERASE = Capability(
    "memory.erase", "admin", EraseRequest, erase,
    cli=Cli(("memory", "erase"), ("names",), f"{_VIEWS}:show_certificate", who="--who",
            succeeds=lambda document: bool(document["complete"])),
    rest=Rest("POST", "/memory/erase", "memory", "Erase permanently"),
    mcp=Mcp("memory_erase", "Erase permanently", "hades.surfaces.mcp.tools:MemoryErasureReply"), task=NO_TASK,
)  # fmt: skip
CHECK = Capability(
    "memory.check", "rw", CheckRequest, check,
    cli=Cli(("memory", "check"), view=f"{_VIEWS}:show_problems", succeeds=lambda document: not document["problems"]),
    rest=OmittedSurface("reads the whole memory; run it beside the store"), mcp=NO_TOOL, task=Task("check memory"),
)  # fmt: skip
COMPACT = Capability(
    "memory.compact", "admin", CompactRequest, compact,
    cli=Cli(("memory", "compact"), view=f"{_VIEWS}:show_compaction",
            succeeds=lambda document: bool(document["compacted"])),
    rest=OmittedSurface("needs the store for itself; run it beside the store"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_CHANGES = (PROMOTE, CHANGE, FACT, CONFLICTS, RESOLVE, UNDO, ERASE, COMPACT, CHECK)
