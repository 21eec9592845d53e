"""Answers, explanations and judgements for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hades.surfaces.capabilities.query import QueryView
from hades.surfaces.cli.code_lines import show_code
from hades.surfaces.cli.plain_layout import Columns, Line
from hades.surfaces.reason_actions import explain_reasons

_QUOTED = 400  # characters of a passage that are printed
_CODE_LINES = 12
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
    yield Line(f"    {words[:_QUOTED]}{'…' if len(words) > _QUOTED else ''}", "dim")


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
    yield from show_code(passage["text"], first, _CODE_LINES)


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
