"""The commands `hades plan` and `hades apply`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from rich.text import Text

from hades.errors import SettingsError
from hades.files import write_whole
from hades.night.plan import folder as plans
from hades.night.plan.apply import apply_plan
from hades.night.plan.find import find_corpora
from hades.night.plan.make import WITHOUT_PLAN, make_plan
from hades.night.plan.page import (
    from_difference,
    headline,
    kind_rows,
    price_sentence,
    rollback_sentence,
    write_page,
)
from hades.settings.load import load_settings, require_embedded
from hades.surfaces.cli.output import (
    Answer,
    argument,
    local_command,
    option,
    show_progress,
    table,
)
from hades.wiring import hold_build, open_answers, open_hades, paid_models

CHANGES = 2  # exit code of a plan that changes something
_SHOWN = 3  # examples of a kind
_LISTED = 5  # answers and weights
_WIDTH, _VALUE = 100, 36  # characters of a line, of a value in it


@local_command("plan", "RO")
def run_plan(
    path: Annotated[
        Path | None,
        argument(
            "Folder or file to read; by default all corpora that were ingested.",
            "[PATH]",
        ),
    ] = None,
    settings_file: Annotated[
        Path | None,
        option(
            "Plan as if this file were hades.yaml.",
            "--settings",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("Also write the plan with every row it changes to this file.")
    ] = None,
    html: Annotated[Path | None, option("Also write it as an HTML page to this file.")] = None,
) -> Answer:
    """Show what a build would change, before it changes anything; `hades apply` then does exactly
    that.

    The next state is built beside the graph by the stages of the night, and is kept as a plan.
    Exit code 0: nothing would change, 2: something would, 1: failed.
    """
    if settings_file is not None and not settings_file.is_file():
        raise SettingsError(f"{settings_file} is not there; expected a file in the form hades.yaml")

    settings = load_settings(file=settings_file)
    require_embedded(settings, "a plan", WITHOUT_PLAN)
    with (
        show_progress() as progress,
        hold_build("hades plan"),
        open_hades(settings, progress=progress) as hades,
    ):
        specs = find_corpora(hades.store, path)
        context = hades.build_context
        paid = paid_models(settings)

        if settings_file is None:
            plan = make_plan(
                context,
                settings,
                specs=specs,
                paid=paid,
            )
        else:
            with closing(open_answers(load_settings())) as answers:
                plan = make_plan(
                    context,
                    settings,
                    specs=specs,
                    paid=paid,
                    tools_now=answers.tools,
                )

    if out is not None:
        write_whole(
            out,
            json.dumps(plan, ensure_ascii=False, indent=1, default=str) + "\n",
        )
    if html is not None:
        write_page(html, plan)

    document = {}
    for name, value in plan.items():
        if name not in plans.INNER:
            document[name] = value

    view = _plan_view(plan, html)
    return Answer(
        document,
        view,
        code=CHANGES if plan["changes"] else 0,
    )


def _plan_view(plan: Mapping[str, Any], html: Path | None) -> Iterator[RenderableType]:
    """A page of text: what changes, which answers, which rules, what it costs, what to do next."""
    yield Text(f"plan {plan['plan']}: {headline(plan)}", style="bold")
    if sentence := rollback_sentence(plan):
        yield Text(sentence, style="yellow")

    rows = kind_rows(plan)
    if rows:
        yield ""
        yield table(("", "added", "changed", "removed", "figures"), rows)

    for renamed in plan["rows"]["renamed"][:_LISTED]:
        yield f"  renamed    {renamed['from']} → {renamed['to']}"

    for name, kind in plan["rows"]["kinds"].items():
        yield from _examples(name, kind["examples"])

    yield from _answers(plan["standing"])
    yield ""
    yield from _contracts(plan["contracts"])
    yield f"cost: {price_sentence(plan)}"
    yield f"page: {html or Path(plan['folder']) / plans.PAGE}"

    if plan["changes"] and not plan["contracts"]["broken"]:
        yield f"do exactly this: hades apply {plan['plan']}"


_MARKS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
}


def _examples(name: str, examples: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The first rows of a kind, each with its mark."""
    lines = []
    for change, (mark, style) in _MARKS.items():
        rows = examples.get(change, ())[:_SHOWN]
        lines += [Text(f"  {mark} {_line(row)}", style=style) for row in rows]

    if lines:
        yield ""
        yield Text(name, style="bold")
        yield from lines


def _line(row: Mapping[str, Any]) -> str:
    """An example in a line: its name, or an edge with its weights, and what it says otherwise."""
    if "from" in row:
        old_value = row["before"] or 0.0
        new_value = row["after"] or 0.0
        return f"{row['from']} —{row['type']}→ {row['to']}: {old_value:.3f} → {new_value:.3f}"

    changed = [name for name in row.get("after", {}) if name != "text"]
    line = str(row["name"])[:_WIDTH]
    for name in changed[:2]:
        old_value, new_value = from_difference(
            row["before"][name],
            row["after"][name],
            _VALUE,
        )
        line += f"; {name}: {old_value or 'none'} → {new_value or 'none'}"

    return line


def _answers(standing: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Standing questions with their answers now and then."""
    if not standing:
        return

    yield ""
    yield Text(
        f"standing questions: {standing['changed']} of {standing['asked']} answers change",
        style="bold",
    )
    for answer in standing["answers"][:_LISTED]:
        causes = "; ".join(cause["sentence"] for cause in answer["causes"])
        yield f"  {answer['question']}  ({causes})"
        texts = from_difference(
            answer["before"],
            answer["after"],
            _WIDTH,
        )

        for word, text, style in zip(
            ("before", "after"),
            texts,
            ("red", "green"),
            strict=True,
        ):
            source = answer[f"source_{word}"] or "no source"
            yield Text(f"    {word:<6} {text or 'no answer'} [{source}]", style)


def _contracts(contracts: Mapping[str, Any]) -> Iterator[RenderableType]:
    if not contracts["broken"]:
        yield f"contracts: {contracts['rules']:,} rules hold"

    for rule in contracts["broken"]:
        keys = ", ".join(rule["keys"])
        yield Text(
            f"contract {rule['rule']} would break: {rule['sentence']} ({rule['rows']:,} rows: "
            f"{keys}); this plan cannot be applied",
            style="red",
        )


@local_command("apply", "RW")
def run_apply(
    plan: Annotated[str, argument("Id of a plan, its folder, or the file of --out.", "PLAN")],
    keep: Annotated[int, option("Number of newest snapshots to keep.", min=1)] = 7,
) -> Answer:
    """Do exactly what a plan says and nothing else: no text is embedded and no model asked again.

    Refused where the corpora, the store, the settings or the graph that serves moved on since.
    """
    settings = load_settings()
    require_embedded(settings, "a plan", WITHOUT_PLAN)
    folder = plans.find_plan(settings.home, plan)

    with (
        show_progress() as progress,
        hold_build("hades apply"),
        open_hades(settings, progress=progress) as hades,
    ):
        report = apply_plan(
            hades.build_context,
            settings,
            folder,
            keep,
        )

    rows = sum(sum(counts.values()) for counts in report["rows"].values())
    lines = [
        f"{report['plan']} is applied: {rows:,} rows changed, 0 texts embedded, 0 model calls",
        f"{report['snapshot']} serves, {'as' if report['as_planned'] else 'not as'} planned "
        f"({report['seconds']:.1f} s)",
    ]
    if report["report"]:
        lines.append(f"report: {report['report']}")

    return Answer(report, lines)
