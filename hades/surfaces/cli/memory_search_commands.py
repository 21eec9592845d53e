"""`hades memory search`, `context`, `working`, `consolidate`, `drill-down`: asking memory and looking after it."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.surfaces.cli.memory_commands import AsOfOption, KnownOption, TopicArgument, WhoOption, memory_app
from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

QuestionArgument = Annotated[str, typer.Argument(metavar="QUESTION", help="In plain words.")]
LimitOption = Annotated[int, typer.Option(min=1, max=100, help="At most so many topics.")]


def register() -> None:
    """Add the commands to `hades memory`."""
    for name, command in (("search", search), ("context", context), ("working", working),
                          ("consolidate", consolidate), ("drill-down", drill_down), ("compact", compact)):  # fmt: skip
        memory_app.command(name)(command)


def search(
    question: QuestionArgument,
    limit: LimitOption = 10,
    since: Annotated[str | None, typer.Option("--from", help="Only versions that began then or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Only versions that began before then.")] = None,
    level: Annotated[int, typer.Option(min=0, max=3, help="0 what was said, 1 to 3 summaries of it.")] = 0,
    related: Annotated[int, typer.Option(min=0, max=5, help="Also follow so many edges.")] = 0,
    as_of: AsOfOption = None,
    known_at: KnownOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Topics near to a question by words and meaning, each as it is now; weak ones rank lower and are never hidden."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.search(
            question, limit=limit, since=since, until=until, level=level, related=related, as_of=as_of,
            known_at=known_at,
        )  # fmt: skip

    answer_with(body, as_json=as_json, debug=debug)


def context(
    question: QuestionArgument,
    max_tokens: Annotated[int, typer.Option(min=1, help="The whole, with room to reason.")] = 100_000,
    focus: Annotated[list[str] | None, typer.Option(help="A topic or summary to show in detail; repeat.")] = None,
    as_of: AsOfOption = None,
    known_at: KnownOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """What a language model should read to answer: what holds now, what it hangs on, summaries, details; never more."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.context(question, max_tokens, focus or (), as_of, known_at)

    answer_with(body, as_json=as_json, debug=debug)


def working(
    topic: TopicArgument,
    question: Annotated[str | None, typer.Option("--ask", help="A question to what is in mind.")] = None,
    limit: LimitOption = 10,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """What comes to mind with a topic: its last versions, its important ones, what it is joined to."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.working(topic, question, limit)

    answer_with(body, as_json=as_json, debug=debug)


def consolidate(
    level: Annotated[int, typer.Option(min=1, max=3, help="1 days, 2 also weeks, 3 also months.")] = 1,
    as_of: Annotated[str | None, typer.Option(help="The moment that counts as now.")] = None,
    who: WhoOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Summarise the days, weeks and months that are over; twice is once, and the originals stay."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.consolidate(level, as_of, who)

    answer_with(body, as_json=as_json, debug=debug)


def drill_down(
    summary: Annotated[str, typer.Argument(metavar="SUMMARY", help="A topic under summary/, or the id of a version.")],
    originals: Annotated[bool, typer.Option("--originals", help="All the way down.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """What a summary was made of."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.drill_down(summary, originals)

    answer_with(body, as_json=as_json, debug=debug)


def compact(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Rewrite the store's files without what was deleted: finishes an erasure while other processes were reading."""

    def body() -> Answer:
        from hades.surfaces.cli import memory_search_views as cli_memory_search

        return cli_memory_search.compact()

    answer_with(body, as_json=as_json, debug=debug)
