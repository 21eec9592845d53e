"""`hades memory`: names and flags; bodies are imported when they run. Other commands join `memory_app`."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

memory_app = typer.Typer(help="What an agent or a team knows through time: versions, edges, what was believed when.")

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="For example design/approach_x.")]
NameArgument = Annotated[str, typer.Argument(metavar="TOPIC_OR_STATE", help="A topic, or the id of one version.")]
WhoOption = Annotated[str | None, typer.Option(help="Who does it; by default you.")]
WhyOption = Annotated[str, typer.Option(help="Why; kept in the audit.")]
FromOption = Annotated[str | None, typer.Option(help="True since then, for example 2026-01-31; by default now.")]
UntilOption = Annotated[str | None, typer.Option(help="True until then, not at it; by default for ever.")]
AsOfOption = Annotated[str | None, typer.Option(help="As it was true then, for example 2026-01-31.")]
KnownOption = Annotated[str | None, typer.Option(help="As it was known then.")]
ShareOption = Annotated[float, typer.Option(min=0, max=1, help="How sure, 0 to 1.")]
DIRECTIONS = ("any", "outbound", "inbound")


def register(app: typer.Typer) -> None:
    """Add `hades memory`."""
    app.add_typer(memory_app, name="memory", no_args_is_help=True)


@memory_app.command()
def add(
    topic: TopicArgument,
    content: Annotated[str, typer.Argument(help="What is known now.")],
    tag: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    confidence: ShareOption = 1.0,
    importance: Annotated[float | None, typer.Option(min=0, max=1, help="0 to 1; by default the middle.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="An object, kept with the version.")] = None,
    valid_from: FromOption = None,
    valid_until: UntilOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say something new about a topic: its next version. Nothing before it is lost."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.add(
            topic, content, tags=tag or (), confidence=confidence, importance=importance, metadata=metadata,
            valid_from=valid_from, valid_until=valid_until, who=who, why=why,
        )  # fmt: skip

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def latest(topic: TopicArgument, as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """The newest version of a topic."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.latest(topic)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def history(
    topic: TopicArgument,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the newest so many.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """The versions of a topic, oldest first, with who wrote each and why."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.history(topic, limit)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command("at")
def at_time(
    topic: TopicArgument,
    moment: Annotated[str, typer.Argument(metavar="WHEN", help="For example 2026-01-31 or 2026-01-31T12:00:00Z.")],
    known_at: KnownOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """What was true of a topic at a moment, and the edges that held then."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.at(topic, moment, known_at)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def topics(
    prefix: Annotated[str, typer.Argument(help="Only names that begin so.")] = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """The topics memory holds."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.topics(prefix)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def link(
    source: NameArgument,
    relation: Annotated[str, typer.Argument(help="For example blocked_by; small letters, digits and _.")],
    target: NameArgument,
    strength: ShareOption = 1.0,
    description: Annotated[str, typer.Option(help="In a sentence.")] = "",
    bidirectional: Annotated[bool, typer.Option("--both-ways", help="It holds both ways.")] = False,
    valid_from: FromOption = None,
    valid_until: UntilOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Join two topics or states by a relation that is true over a time."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.link(
            source, relation, target, strength=strength, description=description, bidirectional=bidirectional,
            valid_from=valid_from, valid_until=valid_until, who=who, why=why,
        )  # fmt: skip

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def close(
    edge: Annotated[str, typer.Argument(metavar="EDGE_ID", help="As `hades memory edges` prints it.")],
    at: Annotated[str | None, typer.Option(help="When it stopped being true; by default now.")] = None,
    superseded_by: Annotated[str | None, typer.Option(metavar="EDGE_ID", help="The edge that took its place.")] = None,
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say that an edge stopped being true; what was believed before can still be asked for."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.close(edge, at, superseded_by, who, why)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def edges(
    name: NameArgument,
    as_of: AsOfOption = None,
    known_at: KnownOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that had ended or were yet to begin.")] = False,
    direction: Annotated[str, typer.Option(help="any, outbound or inbound.")] = "any",
    relation: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """The edges at a topic or state that are true now, or were then."""
    if direction not in DIRECTIONS:
        raise typer.BadParameter(f"{direction!r} is no direction; use {', '.join(DIRECTIONS)}")

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.edges(
            name, as_of=as_of, known_at=known_at, everything=everything, direction=direction, types=relation or ()
        )

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def why(
    topic: TopicArgument,
    as_of: AsOfOption = None,
    known_at: KnownOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """What holds of a topic, why it holds, and what held before and no longer does."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.why(topic, as_of, known_at)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def when(
    topic: TopicArgument,
    from_relation: Annotated[str, typer.Argument(help="The relation that ended.")],
    to_relation: Annotated[str, typer.Argument(help="The relation that began.")],
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """When one relation of a topic gave way to another; exit code 1 when it never did."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.when(topic, from_relation, to_relation)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def promote(
    topic: TopicArgument,
    reason: Annotated[str, typer.Argument(help="Why there is a new version.")],
    content: Annotated[str | None, typer.Option(help="The new version; without it one is made.")] = None,
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Make the next version of a topic out of its history and its neighbours."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.promote(topic, reason, content, who)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def change(
    name: NameArgument,
    description: Annotated[str, typer.Argument(help="What changed.")],
    fact: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION=TOPIC[@EDGE]", help="What is true now, and what it replaces; may be repeated."),
    ] = None,
    content: Annotated[str | None, typer.Option(help="The new version; by default the description.")] = None,
    at: Annotated[str | None, typer.Option(help="When it changed; by default now.")] = None,
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say that a fact changed: a new version, edges it makes untrue end, and each edge says why it did or did not."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.change(name, description, fact or (), content, at, who)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def fact(
    subject: NameArgument,
    relation: Annotated[str, typer.Argument(help="For example works_at.")],
    object_: Annotated[str, typer.Argument(metavar="OBJECT", help="A topic or a state.")],
    valid_from: FromOption = None,
    valid_until: UntilOption = None,
    confidence: ShareOption = 1.0,
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "",
    functional: Annotated[
        bool | None, typer.Option("--functional/--not-functional", help="It holds of one object at a time.")
    ] = None,
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Assert a fact; where it excludes another, confidence, source and recency decide and a record says how."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.fact(
            subject, relation, object_, valid_from=valid_from, valid_until=valid_until, confidence=confidence,
            source=source, functional=functional, who=who, why_=why,
        )  # fmt: skip

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def conflicts(
    open_only: Annotated[bool, typer.Option("--open", help="Only those that wait for a decision.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Facts that excluded each other, and what was decided."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.conflicts(open_only)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def resolve(
    conflict: Annotated[str, typer.Argument(metavar="CONFLICT_ID", help="As `hades memory conflicts` prints it.")],
    keep: Annotated[str, typer.Argument(help="new or old.")],
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Decide a conflict that neither confidence, source nor recency could."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.resolve(conflict, keep, who, why)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def undo(
    act: Annotated[str, typer.Argument(metavar="ACT_ID", help="As `hades memory audit` prints it.")],
    who: WhoOption = None,
    why: WhyOption = "",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Take an act back whole, by new beliefs and new versions; refused when something later rests on it."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.undo(act, who, why)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def audit(
    subject: Annotated[str, typer.Argument(metavar="TOPIC_STATE_OR_EDGE", help="What was acted on.")],
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Who did what to a topic, a state or an edge, when and why."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.audit(subject)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def erase(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC_OR_STATE...", help="Whole topics, or single versions.")],
    why: Annotated[str, typer.Option(help="Why; an erasure without a reason is refused.")],
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Erase for good, with all that was made of it; prints a certificate. Exit code 1 when words are left elsewhere."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.erase(names, who, why)

    answer_with(body, as_json=as_json, debug=debug)


@memory_app.command()
def check(
    write_out: Annotated[bool, typer.Option("--traces", help="Also write memory_traces, for other tools.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Read all of memory and say what is wrong: gaps, parents, pointers, beliefs that overlap, circles."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_views as cli_memory

        return cli_memory.check(write_out)

    answer_with(body, as_json=as_json, debug=debug)
