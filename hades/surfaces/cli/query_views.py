"""Answers, explanations and judgements for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.surfaces.capabilities.query import QueryView
from hades.surfaces.cli.code_lines import show_code
from hades.surfaces.reason_actions import explain_reasons

_QUOTED = 400  # characters of a passage that are printed
_CODE_LINES = 12
_RANKED = 10


def show_answer(answer: Mapping[str, Any], options: QueryView) -> Iterator[RenderableType]:
    """An answer: paths, passages, what it cost, what was cut; or the prompt alone."""
    if options.format == "prompt":
        yield Text(answer["prompt"])
        return
    if answer.get("why"):
        yield Text(f"{answer['recipe']}: {answer['why']}")
    if answer.get("ranking"):
        yield from (Text(f"{one['rank']}. {one['id']}", style="bold") for one in answer["ranking"][:_RANKED])
    for path in answer["paths"]:
        yield Text(f"{path['rank']}. {path['text']}", style="bold")
        yield Text(f"   {path['why']}", style="dim")
    for passage in answer["passages"]:
        yield from show_passage(passage)
    if not answer["paths"] and not answer["passages"]:
        yield Text("Nothing was found.")
    yield _cost(answer)
    yield from (Text(sentence, style="yellow") for sentence in explain_reasons(answer["reasons"]))
    yield Text(f"{answer['query_id']} (snapshot {answer['snapshot'] or 'none'})", style="dim")


def show_passage(passage: Mapping[str, Any]) -> Iterator[Text]:
    """A passage: code with its place as `path:line`, other text as one paragraph."""
    if passage.get("lines") and passage.get("path"):
        yield from _code(passage)
        return
    start, end = passage["span"]
    place = f"{passage['document']} [{start}:{end}]"
    yield Text(f"[{passage['rank']}] {passage['title']}  {place}  {passage['score']:.3f} {'+'.join(passage['from'])}")
    yield from _describe_path(passage)
    words = " ".join(passage["text"].split())
    yield Text(f"    {words[:_QUOTED]}{'…' if len(words) > _QUOTED else ''}", style="dim")


def _describe_path(passage: Mapping[str, Any]) -> Iterator[Text]:
    """Which path leads to a passage, or why none does."""
    if passage.get("explained_by"):
        yield Text(f"    path {passage['explained_by']} leads here", style="dim")
    elif passage.get("no_path"):
        yield Text(f"    {passage['no_path']}", style="dim")


def _code(passage: Mapping[str, Any]) -> Iterator[Text]:
    """Path and first line, as editors open them; the symbol; and the first lines of the code as they stand."""
    first, last = passage["lines"]
    name = f"  {passage['symbol']} ({passage['kind']})" if passage["symbol"] else f"  ({passage['kind']})"
    yield Text(f"[{passage['rank']}] {passage['path']}:{first}", style="bold").append(f"{name}, lines {first}-{last}")
    yield from _describe_path(passage)
    yield from show_code(passage["text"], first, _CODE_LINES)


def _cost(answer: Mapping[str, Any]) -> Table:
    """What the turn cost, stage by stage, and its budget."""
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "reads", "work", "ms", "in", "out", ""):
        table.add_column(name, justify="left" if name in ("stage", "") else "right")
    spent, budget = answer["telemetry"], answer["plan"]["budget"]
    for stage in spent["stages"]:
        marks = " ".join(
            word for word, is_so in (("capped", stage["capped"]), ("stopped early", stage["early_stop"])) if is_so
        )
        counts = (stage["reads"], stage["work"], f"{stage['ms']:.1f}", stage["in"], stage["out"])
        table.add_row(stage["name"], *map(str, counts), marks)
    table.add_row(
        "budget", str(budget["docs_max"]), str(budget["work_max"]), str(budget["latency_ms"]), "", "",
        f"used {spent['reads']} reads, {spent['work']} work, {spent['ms']:.1f} ms, "
        f"{answer['tokens']['prompt']} prompt tokens" + _loading(spent),
    )  # fmt: skip
    return table


def _loading(spent: Mapping[str, Any]) -> str:
    """What was loaded beside the turn, where that took a while."""
    loading = spent.get("loading_ms", 0.0)
    return f"; loading took {loading:.0f} ms more" if loading >= 1.0 else ""


def show_explanation(document: Mapping[str, Any]) -> Iterator[Text]:
    """The question, why each path was kept, why a node was not reached, what was cut, what to change."""
    yield Text(f"{document['query']}", style="bold")
    yield Text(f"{document['recipe']}, asked {document['at']} of snapshot {document['snapshot']}", style="dim")
    for path in document["paths"]:
        yield Text(f"{path['rank']}. {path['text']}", style="bold")
        yield Text("\n".join(f"   {reason}" for reason in path["why"].split("; ")), style="dim")
    if not document["paths"]:
        yield Text("No path was kept.")
    if (missing := document["missing"]) is not None:
        name = f"{missing['name']} ({missing['node']})" if missing["name"] else missing["node"]
        yield Text(f"{name}: {missing['code']}", style="bold")
        yield Text(f"   {missing['sentence']}")
        if seeds := missing["evidence"].get("seeds"):
            yield Text(f"   the search began at {', '.join(seeds)}", style="dim")
        if missing["next"]:
            yield Text(f"   to reach it: {missing['next']}")
    yield from (Text(f"{code}: {sentence}", style="yellow") for code, sentence in document["reasons"].items())


def show_feedback(document: Mapping[str, Any]) -> tuple[Text, ...]:
    """What is judged good and bad."""
    told = "; ".join(
        f"{name}: paths {document['feedback'][name]['paths']}, passages {document['feedback'][name]['passages']}"
        for name in ("good", "bad")
    )
    return (Text(f"{document['query_id']}: {told}"),)


def show_query_report(figures: Mapping[str, Any]) -> tuple[Text, ...]:
    """How many questions, how fast, and where the page is."""
    ms = figures["ms"]
    return (
        Text(f"{figures['questions']} questions, p50 {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms"),
        Text(str(figures["path"])),
    )
