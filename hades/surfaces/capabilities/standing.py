"""Standing questions: keep them, list them, and ask them of two graphs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from hades.build.standing import (
    add_standing,
    check_standing,
    frequent_questions,
    list_standing,
    read_questions,
    remove_standing,
)
from hades.errors import SnapshotError
from hades.ports.services import utc_now
from hades.snapshot import open as published
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities.capability import Cli, Id, Question, Request, Rest, Shell, capability
from schemas.builds import StandingQuestion


class SomeQuestions(Request):
    """At least one question is named."""

    @model_validator(mode="after")
    def has_a_question(self) -> Self:
        """Refuse a request without a question."""
        given = self.arguments()
        if not (given["question"] or given["questions"] or given["from_log"]):
            raise ValueError("no question was given; give a text, --file or --from-log")
        return self


def _read_files(paths: Sequence[str]) -> list[dict[str, str]]:
    found = [one for path in paths for one in read_questions(Path(path))]
    return [{"question": text, "requires": source} for text, source in found]


def _row(one: StandingQuestion) -> dict[str, Any]:
    return {"id": one.key, **one.model_dump(mode="json", include={"question", "requires", "added"})}


@capability(
    "standing.add", "rw", cli=Cli("standing add", "question"), base=SomeQuestions,
    rest=Rest("POST", "/standing", "Keep standing questions", 201, tag="questions",
              examples=({"question": "who is on call for billing?", "requires": "oncall.md"},)),
)  # fmt: skip
def add(
    context: CallContext,
    *,
    question: Annotated[Question | None, Shell(metavar="TEXT"), Field(description="The question to keep.")] = None,
    requires: Annotated[
        Id | None, Shell(metavar="SOURCE"),
        Field(description="A source that the answer must cite, or a build does not publish."),
    ] = None,
    questions: Annotated[
        tuple[dict[str, str], ...],
        Shell(flags=("--file",), metavar="FILE", read=_read_files,
              help="File with a question a line, as text or as JSON with `question` and `requires`; may be repeated."),
        Field(max_length=1000, description="Several, each with `question` and perhaps `requires`."),
    ] = (),
    from_log: Annotated[bool, Field(description="Keep the questions that the log holds most often.")] = False,
) -> dict[str, Any]:  # fmt: skip
    """Keep questions that each build asks of the former and the next graph before the next one serves."""
    given = [(question, requires or "")] if question else []
    given += [(one.get("question", ""), one.get("requires", "")) for one in questions]
    given += frequent_questions(context.readable) if from_log else []
    return {"added": [_row(one) for one in add_standing(context.writable, given, utc_now())]}


@capability(
    "standing.list", cli=Cli("standing list"), rest=Rest("GET", "/standing", "Standing questions", tag="questions")
)
def show(context: CallContext) -> dict[str, Any]:
    """List the standing questions, with the sources that they require."""
    return {"questions": [_row(one) for one in list_standing(context.readable)]}


@capability(
    "standing.remove", "rw", cli=Cli("standing remove", "id"),
    rest=Rest("POST", "/standing/{id}/remove", "Drop a standing question", tag="questions"),
)  # fmt: skip
def remove(
    context: CallContext, *, id: Annotated[Id, Field(description="Id of the question, as the list shows it.")]
) -> dict[str, Any]:
    """Drop a standing question."""
    return {"removed": _row(remove_standing(context.writable, id))}


Before = Annotated[Id | None, Shell(metavar="SNAPSHOT"), Field(description="Older snapshot; by default the last one.")]


@capability(
    "standing.run", cli=Cli("standing run", succeeds=lambda document: bool(document["is_green"])),
    rest=Rest("GET", "/standing/run", "Ask the standing questions", tag="questions"),
)  # fmt: skip
def run(context: CallContext, *, before: Before = None) -> dict[str, Any]:
    """Ask the standing questions of the graph that serves and of an older one: which answers changed, and why."""
    home = context.settings.home
    known = [one.snapshot for one in published.snapshots(home) if one.problem is None]
    if not known:
        raise SnapshotError("nothing is published that could be asked; run `hades build`")
    older = before or next(iter(known[1:]), known[0])
    with closing(published.open_snapshot(home, older)) as old, closing(published.open_snapshot(home, known[0])) as new:
        report = check_standing(list_standing(context.readable), old, new, context.answers.tools)
    red = [one for one in report["required"] if not one["cites"]]
    return {**report, "before": older, "after": known[0], "is_green": not red, "red": red}
