"""Answers and graph for a person."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.surfaces.capabilities.questions import QueryView
from hades.surfaces.cli.output import Columns, Line
from hades.text.sentences import plain_text
from schemas.plan import Reason

# Code in a terminal: its lines as they stand, each with its number.


def show_code(text: str, first: int, most: int) -> Iterator[Line]:
    """At most `most` lines of code that begins at line `first`, and how many more there are."""
    lines = text.expandtabs(4).rstrip().split("\n")
    shown = textwrap.dedent("\n".join(lines[:most])).split("\n")
    for number, line in enumerate(shown, first):
        yield Line(f"{number:>7} {line}", "dim")
    if len(lines) > most:
        yield Line(f"        … {len(lines) - most} more lines", "dim")


# A written answer for a person: sentences, then the sources that they cite.


_NEAREST = 3  # sources that are printed where none is cited
_QUOTED = 200  # characters of a source that are printed
_CODE_LINES = 6  # of code
_BEFORE = 60  # of them before the sentence that the answer cites
_EXPLAINED = {
    "timeout": "The search ran out of time; ask again, or raise budget.latency_ms in the plan of hades.yaml.",
    "abstained": "What was found is too weak to answer with; `hades query` shows it.",
    "embeddings_missing": "The graph has no vectors of this model; run `hades build`.",
}


def show_written_answer(document: Mapping[str, Any]) -> Iterator[Text | Line]:
    """The sentences, what is wrong with them, and the sources they cite."""
    cost = document["cost"]
    if document["mode"] == "estimate":
        most = cost["completion_tokens_at_most"]
        yield Text(
            f"{cost['prompt_tokens']:,} tokens to send with {len(document['sources'])} sources, at most {most:,} back"
        )
        return
    code = {source["number"] for source in document["sources"] if source.get("code")}
    answer = Text()
    for sentence in document["sentences"]:
        answer.append(sentence["text"], style="" if sentence["is_supported"] else "yellow")
        mark = "".join(f" [{number}]" for number in sentence["citations"])
        is_place = document["mode"] == "extracted" and code.issuperset(sentence["citations"])
        answer.append(mark + ("\n" if is_place else " "), style="cyan")
    answer.rstrip()
    yield answer if document["sentences"] else Text(document["text"])
    for sentence in document["sentences"]:
        if not sentence["is_supported"]:
            yield Text(f"not supported: {sentence['problem']}: {sentence['text']}", style="yellow")
    yield Text("")
    cited = {number for sentence in document["sentences"] for number in sentence["citations"]}
    for source in document["sources"]:
        if source["number"] in cited or (not cited and source["number"] <= _NEAREST):
            yield Text(f"[{source['number']}] {_place(source)}", style="bold")
            first = next((one["text"] for one in document["sentences"] if source["number"] in one["citations"]), "")
            if source.get("code"):
                yield from show_code(source["text"], int(source["where"].rpartition(":")[2]), _CODE_LINES)
            else:
                yield Text(f"    {_quote(source['text'], first)}", style="dim")
    if not document["sentences"]:
        yield from (Text(_EXPLAINED[code], style="yellow") for code in document["reasons"] if code in _EXPLAINED)
    if document["problem"]:
        yield Text(f"quoted, because the language model did not answer: {document['problem']}", style="yellow")
    if document["mode"] == "written":
        sent, received = cost["prompt_tokens"], cost["completion_tokens"]
        yield Text(f"{document['model']}: about {sent:,} tokens sent, {received:,} received", style="dim")
    yield Text(document["query_id"], style="dim")


def _place(source: Mapping[str, Any]) -> str:
    if re.search(r":\d+$", source["where"]):  # code: a terminal opens path:line
        return str(source["where"])
    parts = [source["document"] or source["title"], source["where"]]
    return ", ".join(part for part in parts if part)


def _quote(text: str, first: str) -> str:
    """A few words around the first sentence that the answer takes from this source."""
    words = plain_text(text)
    at = max(0, words.find(first) if first else 0)
    begin = 0 if at + len(first) <= _QUOTED else words.rfind(" ", 0, max(1, at - _BEFORE)) + 1
    end = begin + max(_QUOTED, len(first) + _BEFORE)
    return ("…" if begin else "") + words[begin:end].rstrip() + ("…" if end < len(words) else "")


# What a person can do about each reason of an answer: for the reference, and for the terminal.


ACTIONS = {
    Reason.CAP_EXCEEDED: "Mostly nothing. Raise the cap in `plan:` of `hades.yaml` where answers miss something.",
    Reason.COVERAGE_REACHED: "Nothing: it saved time.",
    Reason.TIMEOUT: "Ask again on a less busy machine, or raise `budget.latency_ms` and the stage's `timeout_ms`.",
    Reason.BUDGET_DOCS: "Raise `budget.docs_max`, or ask a narrower question.",
    Reason.PLAN_CLAMPED: "Lower the plan to its caps, or use a profile with higher ones (`long`).",
    Reason.NO_ENTITY_MATCH: "Name a thing as the corpus spells it; `hades overview` lists names.",
    Reason.NO_PATHS: "Read the passages; raise `graph.hops` to 2 where a path is needed.",
    Reason.HIERARCHY_UNAVAILABLE: "Run `hades build`, which builds the topics.",
    Reason.EMBEDDINGS_MISSING: "Run `hades build`.",
    Reason.ANALYZER_MISMATCH: "Run `hades provision` with the admin credential.",
    Reason.VIEW_DEGRADED: "Run `hades doctor`; publish again with `hades publish`.",
    Reason.NOT_BUILT: "`hades ingest workspace PATH` and `hades build` add vectors, paths and topics.",
    Reason.RANKER_UNAVAILABLE: "Nothing: weights rank. `hades run train_ranker` fits a new one.",
    Reason.ABSTAINED: "Look at the nearest passages with `hades query`; bring documents that hold the answer.",
}
# Shown under an answer; the others describe an ordinary turn, or nothing follows from them.
SHOWN = (
    Reason.TIMEOUT,
    Reason.BUDGET_DOCS,
    Reason.PLAN_CLAMPED,
    Reason.HIERARCHY_UNAVAILABLE,
    Reason.EMBEDDINGS_MISSING,
    Reason.ANALYZER_MISMATCH,
    Reason.VIEW_DEGRADED,
    Reason.NOT_BUILT,
    Reason.ABSTAINED,
)


def explain_reasons(codes: Iterable[str]) -> Iterator[str]:
    """A sentence and what to do, for each reason that a person can act on."""
    told = set(codes)
    for reason in SHOWN:
        if reason in told:
            yield f"{reason.about[0].upper()}{reason.about[1:]}. {ACTIONS[reason].replace('`', '')}"


# Answers, explanations and judgements for a person.


_QUERY_QUOTED = 400  # characters of a passage that are printed
_QUERY_CODE_LINES = 12
_RANKED = 10


def show_answer(answer: Mapping[str, Any], options: QueryView) -> Iterator[Line | Columns]:
    """An answer: paths, passages, what it cost, what was cut; or the prompt alone."""
    if options.format == "prompt":
        yield Line(answer["prompt"])
        return
    if answer.get("why"):
        yield Line(f"{answer['recipe']}: {answer['why']}")
    if answer.get("ranking"):
        yield from (Line(f"{one['rank']}. {one['id']}", "bold") for one in answer["ranking"][:_RANKED])
    for path in answer["paths"]:
        yield Line(f"{path['rank']}. {path['text']}", "bold")
        yield Line(f"   {path['why']}", "dim")
    for passage in answer["passages"]:
        yield from show_passage(passage)
    if not answer["paths"] and not answer["passages"]:
        yield Line("Nothing was found.")
    yield _cost(answer)
    yield from (Line(sentence, "yellow") for sentence in explain_reasons(answer["reasons"]))
    yield Line(f"{answer['query_id']} (snapshot {answer['snapshot'] or 'none'})", "dim")


def show_passage(passage: Mapping[str, Any]) -> Iterator[Line]:
    """A passage: code with its place as `path:line`, other text as one paragraph."""
    if passage.get("lines") and passage.get("path"):
        yield from _code(passage)
        return
    start, end = passage["span"]
    place = f"{passage['document']} [{start}:{end}]"
    yield Line(f"[{passage['rank']}] {passage['title']}  {place}  {passage['score']:.3f} {'+'.join(passage['from'])}")
    yield from _describe_path(passage)
    words = " ".join(passage["text"].split())
    yield Line(f"    {words[:_QUERY_QUOTED]}{'…' if len(words) > _QUERY_QUOTED else ''}", "dim")


def _describe_path(passage: Mapping[str, Any]) -> Iterator[Line]:
    """Which path leads to a passage, or why none does."""
    if passage.get("explained_by"):
        yield Line(f"    path {passage['explained_by']} leads here", "dim")
    elif passage.get("no_path"):
        yield Line(f"    {passage['no_path']}", "dim")


def _code(passage: Mapping[str, Any]) -> Iterator[Line]:
    """Path and first line, as editors open them; the symbol; and the first lines of the code as they stand."""
    first, last = passage["lines"]
    name = f"  {passage['symbol']} ({passage['kind']})" if passage["symbol"] else f"  ({passage['kind']})"
    yield Line(f"[{passage['rank']}] {passage['path']}:{first}{name}, lines {first}-{last}", "bold")
    yield from _describe_path(passage)
    yield from show_code(passage["text"], first, _QUERY_CODE_LINES)


def _cost(answer: Mapping[str, Any]) -> Columns:
    """What the turn cost, stage by stage, and its budget."""
    names = ("stage", "reads", "work", "ms", "in", "out", "")
    spent, budget = answer["telemetry"], answer["plan"]["budget"]
    rows: list[tuple[str, ...]] = []
    for stage in spent["stages"]:
        marks = " ".join(
            word for word, is_so in (("capped", stage["capped"]), ("stopped early", stage["early_stop"])) if is_so
        )
        counts = (stage["reads"], stage["work"], f"{stage['ms']:.1f}", stage["in"], stage["out"])
        rows.append((stage["name"], *map(str, counts), marks))
    limits = tuple(str(budget[name]) for name in ("docs_max", "work_max", "latency_ms"))
    used = f"used {spent['reads']} reads, {spent['work']} work, {spent['ms']:.1f} ms, "
    used += f"{answer['tokens']['prompt']} prompt tokens" + _loading(spent)
    rows.append(("budget", *limits, "", "", used))
    return Columns(names, tuple(name not in ("stage", "") for name in names), tuple(rows))


def _loading(spent: Mapping[str, Any]) -> str:
    """What was loaded beside the turn, where that took a while."""
    loading = spent.get("loading_ms", 0.0)
    return f"; loading took {loading:.0f} ms more" if loading >= 1.0 else ""


def show_explanation(document: Mapping[str, Any]) -> Iterator[Line]:
    """The question, why each path was kept, why a node was not reached, what was cut, what to change."""
    yield Line(f"{document['query']}", "bold")
    yield Line(f"{document['recipe']}, asked {document['at']} of snapshot {document['snapshot']}", "dim")
    for path in document["paths"]:
        yield Line(f"{path['rank']}. {path['text']}", "bold")
        yield Line("\n".join(f"   {reason}" for reason in path["why"].split("; ")), "dim")
    if not document["paths"]:
        yield Line("No path was kept.")
    if (missing := document["missing"]) is not None:
        name = f"{missing['name']} ({missing['node']})" if missing["name"] else missing["node"]
        yield Line(f"{name}: {missing['code']}", "bold")
        yield Line(f"   {missing['sentence']}")
        if seeds := missing["evidence"].get("seeds"):
            yield Line(f"   the search began at {', '.join(seeds)}", "dim")
        if missing["next"]:
            yield Line(f"   to reach it: {missing['next']}")
    yield from (Line(f"{code}: {sentence}", "yellow") for code, sentence in document["reasons"].items())


def show_feedback(document: Mapping[str, Any]) -> tuple[Line, ...]:
    """What is judged good and bad."""
    told = "; ".join(
        f"{name}: paths {document['feedback'][name]['paths']}, passages {document['feedback'][name]['passages']}"
        for name in ("good", "bad")
    )
    return (Line(f"{document['query_id']}: {told}"),)


def show_query_report(figures: Mapping[str, Any]) -> tuple[Line, ...]:
    """How many questions, how fast, and where the page is."""
    ms = figures["ms"]
    return (
        Line(f"{figures['questions']} questions, p50 {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms"),
        Line(str(figures["path"])),
    )


# How a person sees a part of the graph and its topics.


def show_subgraph(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """The nodes by distance, then the edges."""
    nodes = _table(("node", "name", "type", "hops"), (
        (one["id"], one["name"], one["type"], one["depth"]) for one in document["nodes"]
    ))  # fmt: skip
    edges = _table(("from", "edge", "to", "weight"), (
        (one["from"], one["label"] or one["type"], one["to"], f"{one['weight']:.3f}") for one in document["edges"]
    ))  # fmt: skip
    note = [Text("There are more; raise --fanout, or the limits of nodes and edges.", style="yellow")]
    return (nodes, Text(""), edges, *(note if document["capped"] else ()))


def show_topics(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """Super-topics first, then topics, with their sizes."""
    rows = ((one["id"], one["level"], one["name"], one["size"]) for one in document["topics"])
    shown, total = len(document["topics"]), document["total"]
    return _table(("topic", "level", "name", "members"), rows), Text(f"{shown} of {total} topics")


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    return table


# Two snapshots beside each other, for a person.


_NAMED = 8


def show_comparison(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Counts side by side, then some names of what came and went."""
    yield Text(f"{document['before']} → {document['after']}", style="bold")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "before", "after", "added", "removed"):
        table.add_column(heading, justify="left" if not heading else "right")
    for kind, row in document["nodes"].items():
        table.add_row(kind, *(f"{row[part]:,}" for part in ("before", "after", "added", "removed")))
    for kind, row in document["edges"].items():
        table.add_row(kind, f"{row['before']:,}", f"{row['after']:,}", "", "")
    yield table
    for kind, row in document["nodes"].items():
        for word in ("added", "removed"):
            if row[f"{word}_names"]:
                named = ", ".join(row[f"{word}_names"][:_NAMED])
                yield Text(f"{word} {kind}: {named}{' ...' if row[word] > _NAMED else ''}", style="dim")


# Corrections of entities for a person.


def show_edit(report: Mapping[str, Any]) -> Iterator[Text]:
    """What was changed, what it said before, and what it waits for."""
    yield Text(f"{report['entity']}: {report['state']}; {report['note']}")
    yield from (
        Text(f"  {name}: {report['before'].get(name)!r} -> {value!r}") for name, value in report["fields"].items()
    )
    if report["state"] == "pending":
        yield from (Text(f"  waits, because {need}") for need in report["needs"])
    if report["edit"]:
        yield Text(f"  edit {report['edit']}")


def show_edits(document: Mapping[str, Any]) -> tuple[RenderableType]:
    """The corrections as a table."""
    if not document["edits"]:
        return (Text("No entity was edited."),)
    table = Table(box=None, pad_edge=False)
    for heading in ("edit", "entity", "state", "who", "approved by", "says", "why"):
        table.add_column(heading, overflow="fold")
    for edit in document["edits"]:
        says = "; ".join(f"{name}: {value}" for name, value in edit["fields"].items())
        approved = ", ".join(edit["approved_by"])
        table.add_row(edit["_key"], edit["entity"], edit["state"], edit["who"], approved, says, edit["why"])
    return (table,)
