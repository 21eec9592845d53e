"""The night on one page of Markdown, for whoever opens its run: what changed, what it cost, what
holds, and where it stopped if it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from hades.night.contracts.check import describe_checked
from hades.night.stage import EDGES, Night, Report
from hades.night.stages import NIGHT, STAGES
from hades.night.standing import standing_rows

_CHANGES = ("added", "changed", "removed")
_LONGEST_CELL = 160
Cells = Sequence[object]  # of a row of a table


def stage_reached(report: Report) -> str:
    """The stage that a night was in when it stopped, in words."""
    begun = list(report.get("began", ()))
    if not begun:
        return "before its first stage"

    stage = STAGES[begun[-1]]
    if stage.name in report:
        return f"in the contracts after {stage.title!r}"

    return f"in {stage.title!r}"


def describe_stop(report: Report, error: BaseException) -> str:
    """At which stage a night stopped, in a few words; an error is a failure, anything else was a
    request.
    """
    if isinstance(error, Exception):
        return f"failed {stage_reached(report)}"
    return f"cancelled {stage_reached(report)}; the next run goes on from there"


def describe_past(report: Report | None) -> str:
    """Whether a night was one of the past, kept aside, or goes on to be built as the newest."""
    if report is None:
        return "not asked for, this is the newest night"
    return f"{report['released']['snapshot']} is kept as {report['released']['kept_as']}"


def night_page(
    night: Night,
    report: Report,
    graph: str,
    former: str,
    error: BaseException | None = None,
) -> str:
    """The page of a night; `report` ends where the night stopped, `former` is what served."""
    released = report.get("released", {})
    parts = [
        f"## {_title(report, former, error)}",
        *_section("Why", _reason(error)),
        markdown_table(("", ""), _facts(night, report, graph, former)),
        *_section("What changed", _changes(report)),
        *_section("Topics", _describe_topics(report)),
        *_section("What it cost", _costs(report)),
        *_section("Contracts", _contracts(report, error)),
        *_section("Standing questions whose answer changed", _standing(released)),
    ]
    return "\n\n".join(parts) + "\n"


def _title(
    report: Report,
    former: str,
    error: BaseException | None,
) -> str:
    released = report.get("released", {})
    current = released.get("snapshot", "")
    if error is not None:
        stop = describe_stop(report, error)
        return stop[:1].upper() + stop[1:]

    if "kept_as" in released:
        return f"{current} is kept as {released['kept_as']}; what served still serves"
    if current == former:
        return "Nothing changed"

    return f"{current} serves"


def _reason(error: BaseException | None) -> str:
    """What an error says, as it was printed."""
    if not isinstance(error, Exception):
        return ""
    return f"```text\n{type(error).__name__}: {error}\n```"


def _facts(
    night: Night,
    report: Report,
    graph: str,
    former: str,
) -> list[Cells]:
    current = report.get("released", {}).get("snapshot", "")
    unpublished = "not published; what served still serves"
    former_snapshot = f"`{former}`" if former else "none"
    snapshot = f"`{current}`" if current else unpublished
    facts: list[Cells] = [
        ("night", f"{night.as_of:%Y-%m-%d}, run {night.name}"),
        ("graph", graph),
        ("snapshot before", former_snapshot),
        ("snapshot after", snapshot),
    ]

    if "report" in report:
        page = Path(report["report"])
        facts.append(("report", f"[{page.name}]({page.resolve().as_uri()})"))
        facts.append(("its folder", f"`{page.parent}`"))

    return facts


def _changes(report: Report) -> str:
    """A row for each kind of row that the night changed, and how many relations there are of each
    type.
    """
    document_counts = report.get("sources", {}).get("documents", {})
    weights = report.get("weights", {})
    changes: dict[str, Mapping[str, int]] = {
        "documents": {
            **document_counts,
            "added": document_counts.get("new", 0),
        },
        **report.get("edges", {}).get("derived", {}),
    }
    totals = {
        "documents": document_counts.get("read"),
        "entities": report.get("topics", {}).get("entities"),
        **weights.get("rows", {}),
    }

    rows: list[Cells] = []
    for kind in ("documents", *EDGES):
        counts = []
        for name in _CHANGES:
            counts.append(changes.get(kind, {}).get(name, 0))

        if any(counts):
            rows.append((kind.replace("_", " "), *counts, totals.get(kind) or ""))

    weighed = sum(weights.get("changed", {}).values())
    if weighed:
        rows.append(("weights", "", weighed, "", ""))

    types = [f"{name} {kind['count']:,}" for name, kind in weights.get("types", {}).items()]
    if types:
        relations = f"Relations by type: {', '.join(types)}"
    else:
        relations = ""

    table = markdown_table(("", *_CHANGES, "there now"), rows) or "No row of the graph."
    return "\n\n".join(filter(None, (table, relations)))


def _describe_topics(report: Report) -> str:
    topics = report.get("topics")
    if topics is None or topics["mode"] == "skipped":
        return ""

    counts = (
        "{mode}: {why}. Topics: {topics:,}, of which new: {topics_new:,}; gone: {topics_gone:,}; "
        "super-topics: {supertopics:,}; entities placed: {placed:,}, moved: {moved:,}"
    )
    biggest = "; ".join(f"{topic['name']} ({topic['size']:,})" for topic in topics["biggest"][:5])
    return f"{counts.format_map(topics)}\n\nLargest: {biggest}"


def _costs(report: Report) -> str:
    """Seconds by stage with what each did, texts embedded, calls of a model."""
    rows: list[Cells] = []
    contract_seconds = sum(outcome["took"] for outcome in report.get("contracts", ()))
    total = contract_seconds

    for stage in NIGHT:
        stage_report = report.get(stage.name, {})
        if "took" in stage_report:
            total += stage_report["took"]
            log = stage.describe(stage_report)
            rows.append((stage.title, f"{stage_report['took']:.1f}", log))

    rows.append(("check contracts", f"{contract_seconds:.1f}", ""))
    rows.append(("**together**", f"**{total:.1f}**", ""))
    embedded = report.get("embeddings", {}).get("embedded", 0)
    calls = report.get("topics", {}).get("summaries_written", 0)
    paid = f"{calls:,} calls of a language model"

    if not calls:
        paid = "no call of a language model, so nothing was paid"

    table = markdown_table(("stage", "seconds", "what it did"), rows)
    return f"{table}\n\n{embedded:,} texts embedded; {paid}"


def _contracts(report: Report, error: BaseException | None) -> str:
    checked = list(chain.from_iterable(check["contracts"] for check in report.get("contracts", ())))
    if not checked:
        return ""

    if error is None:
        until = ""
    else:
        until = ", of those that were checked before it stopped"

    return f"{describe_checked({'contracts': checked})}{until}"


def _standing(released: Report) -> str:
    answers = standing_rows(released.get("standing", {}))
    names = tuple(answers[0]) if answers else ()
    return markdown_table(names, [list(answer.values()) for answer in answers])


def _section(title: str, body: str) -> list[str]:
    return [f"### {title}", body] if body else []


def markdown_table(names: Sequence[str], rows: Sequence[Cells]) -> str:
    """A table of Markdown; nothing where there are no rows."""
    if not rows:
        return ""

    lines = (" | ".join(map(_cell, row)) for row in (names, ["---"] * len(names), *rows))
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    """One short line that does not end the cell it stands in."""
    if isinstance(value, int):
        text = f"{value:,}"
    else:
        text = " ".join(str(value).split())

    is_short = len(text) <= _LONGEST_CELL or text.startswith("[")  # a link stays whole
    cut = text if is_short else f"{text[:_LONGEST_CELL]}…"
    return cut.replace("|", "\\|").replace("`" * 3, "")
