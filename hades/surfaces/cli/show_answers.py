"""What a person sees of an answer, in passages or in sentences, and of what explains one."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hades.surfaces.cli.output import bold, dim, list_records, table, warn
from hades.text.blocks import as_markdown, plain_words
from schemas.nodes import ChunkKind
from schemas.plan import Reason

Document = Mapping[str, Any]
View = Iterator[RenderableType]
_QUOTED = 200  # characters of a cited source
_BEFORE = 60  # of them before the cited sentence
_NEAREST = 3
_RANKED = 10
_BEGINNING = 400  # characters of a passage that are shown
# What a person can do about each reason of an answer.
ACTIONS = {
    Reason.CAP_EXCEEDED: "Mostly nothing. Raise the cap in `plan:` of `hades.yaml` where answers "
    "miss something.",
    Reason.COVERAGE_REACHED: "Nothing: it saved time.",
    Reason.TIMEOUT: "Ask again on a less busy machine, or raise `budget.latency_ms` and the "
    "stage's `timeout_ms`.",
    Reason.BUDGET_DOCS: "Raise `budget.docs_max`, or ask a narrower question.",
    Reason.PLAN_CLAMPED: "Lower the plan to its caps, or use a profile with higher ones (`long`).",
    Reason.NO_ENTITY_MATCH: "Name a thing as the corpus spells it; `hades overview` lists names.",
    Reason.NO_PATHS: "Read the passages; raise `graph.hops` to 2 where a path is needed.",
    Reason.HIERARCHY_UNAVAILABLE: "Run `hades build`, which builds the topics.",
    Reason.EMBEDDINGS_MISSING: "They follow while `hades watch` builds; else run `hades build`.",
    Reason.CONTEXT_FULL: "Nothing; raise `final_context` to see more.",
    Reason.PROMPT_FULL: "Raise `budget.tokens_max` where the reader has room for more.",
    Reason.KEY_UNUSED: "Leave the key out, or ask with a recipe that uses it; `why` names it.",
    Reason.EMBEDDER_SLOW: "Ask again; raise `budget.latency_ms`, or use an embedder on this "
    "machine (`minilm`).",
    Reason.ANALYZER_MISMATCH: "Run `hades provision` with the admin credential.",
    Reason.VIEW_DEGRADED: "Run `hades doctor`; publish again with `hades publish`.",
    Reason.STORE_UNAVAILABLE: "Run `hades doctor`, which says why the database is away.",
    Reason.NOT_BUILT: "`hades ingest workspace PATH` and `hades build` add vectors, paths and "
    "topics.",
    Reason.RANKER_UNAVAILABLE: "Nothing: weights rank. `hades run train_ranker` fits a new one.",
    Reason.GRAPH_FOLLOWS: "Ask again when `hades watch` says that the graph was updated.",
    Reason.TOPICS_LATER: "Build the graph of that moment: `hades run nightly --as-of TIME`.",
    Reason.UNDATED: "Give the documents a date, or limit the question with `--until`.",
    Reason.ABSTAINED: "Bring documents that hold the answer.",
    Reason.UNFINISHED: "Ask again, or raise `budget.latency_ms` or `budget.docs_max`.",
    Reason.STAGES_SHORTENED: "Nothing, or give the stages timeouts that fit the turn.",
}
# These describe an ordinary turn, or nothing follows from them: they are not shown under an answer.
_ORDINARY = (
    Reason.CAP_EXCEEDED,
    Reason.COVERAGE_REACHED,
    Reason.NO_ENTITY_MATCH,
    Reason.NO_PATHS,
    Reason.RANKER_UNAVAILABLE,
    Reason.CONTEXT_FULL,
)


def explain_reasons(codes: Iterable[str]) -> Iterator[Text]:
    """A sentence and what to do, for each reason that a person can act on."""
    reasons = set(codes)
    if Reason.STORE_UNAVAILABLE in reasons:
        reasons.discard(Reason.TIMEOUT)  # more time or a faster machine would not help

    for reason, action in ACTIONS.items():
        if reason in reasons and reason not in _ORDINARY:
            sentence = f"{reason.about[0].upper()}{reason.about[1:]}"
            yield warn(f"{sentence}. {action.replace('`', '')}")


def show_code(text: str, first: int, most: int) -> Iterator[Text]:
    """At most `most` lines of code that begins at line `first`, each with its number, and how many
    more there are.
    """
    lines = text.expandtabs(4).rstrip().split("\n")
    visible = textwrap.dedent("\n".join(lines[:most])).split("\n")
    yield from (dim(f"{number:>7} {line}") for number, line in enumerate(visible, first))

    if len(lines) > most:
        yield dim(f"        … {len(lines) - most} more lines")


def show_answer(answer: Document, format: str) -> View:
    """An answer: paths, passages, what it cost, what was cut; or the prompt alone."""
    if format == "prompt":
        yield answer["prompt"]
        return

    if answer.get("why"):
        yield f"{answer['recipe']}: {answer['why']}"

    yield from _show_changes(answer.get("changes"))
    for row in (answer.get("ranking") or ())[:_RANKED]:
        yield bold(f"{row['rank']}. {row['id']}")

    for path in answer["paths"]:
        yield bold(f"{path['rank']}. {path['text']}")
        yield dim(f"   {path['why']}")

    if answer["passages"] and Reason.ABSTAINED in answer["reasons"]:
        yield warn("The sources do not answer this; nearest:")
    if answer["passages"] and Reason.UNFINISHED in answer["reasons"]:
        yield warn("The search did not end; nearest so far:")

    for passage in answer["passages"]:
        yield from show_passage(passage)

    if not answer["paths"] and not answer["passages"]:
        yield "Nothing was found."

    yield from _notes(answer)
    yield _cost_table(answer)
    yield from explain_reasons(answer["reasons"])
    yield dim(f"{answer['query_id']} (snapshot {answer['snapshot'] or 'none'})")


def _show_changes(report: Document | None) -> Iterator[Text]:
    """What changed, a line for each state."""
    if report is None:
        return

    yield Text(report["sentence"], style="bold")
    for stated in report["statements"]:
        for mark, text in (("-", "before"), ("+", "now")):
            if stated[text]:
                line = Text(f"   {mark} {stated[text]}")
                state = stated[f"{text}_state"]
                yield line.append(f"  {stated['document']}, {state}", style="dim")


def show_passage(passage: Document) -> View:
    """A passage: code with its place as `path:line`, as editors open it; the beginning of other
    text as a page.
    """
    is_code = bool(passage.get("lines") and passage.get("path"))
    if is_code:
        first, last = passage["lines"]
        name = f"({passage['kind']})"
        if passage["symbol"]:
            name = f"{passage['symbol']} {name}"

        yield bold(
            f"[{passage['rank']}] {passage['path']}:{first}  {name}, lines {first}-{last}",
        )
    else:
        heading = " › ".join(passage["headings"]) or passage["title"]
        line = bold(f"[{passage['rank']}] {heading}")
        place = f"{passage['document']} [{passage['span'][0]}:{passage['span'][1]}]"
        yield line.append(
            f"  {place}  {passage['score']:.3f} {'+'.join(passage['from'])}",
            style="dim not bold",
        )

    if passage.get("number"):
        if passage["in_prompt"]:
            absent = ""
        else:
            absent = ", not in the prompt"

        yield dim(f"    number {passage['number']}{absent}")

    if passage.get("address"):
        yield dim(f"    {passage['address']}")

    yield from _show_age([passage])
    if passage.get("explained_by"):
        yield dim(f"    path {passage['explained_by']} leads here")
    elif passage.get("no_path"):
        yield dim(f"    {passage['no_path']}")

    if is_code:
        yield from show_code(passage["text"], first, 12)
    else:
        yield _markdown_block(
            as_markdown(
                passage["text"],
                passage["kind"] == ChunkKind.LISTING,
                _BEGINNING,
            )
        )


def _show_age(cited: Iterable[Document]) -> Iterator[Text]:
    """Which documents were not seen for longer than the schedule of their source allows."""
    ages = {}
    for row in cited:
        if row.get("overdue"):
            ages[row["document"]] = row["last_seen"]

    for document, seen in ages.items():
        if seen is None:
            when = "never seen"
        else:
            when = f"last seen {_age(datetime.fromisoformat(seen))}"

        yield warn(
            f"    {document} was {when} at its source; `hades sources list` says why",
        )


def _age(moment: datetime) -> str:
    """How long ago that was."""
    days = (datetime.now(UTC) - moment) / timedelta(days=1)
    if days >= 2:
        return f"{days:.0f} days ago"

    return f"{24 * days:.0f} hours ago"


def _notes(document: Document) -> Iterator[Text]:
    """What was searched where nothing answers, what the question carries on, and what its filters
    leave out.
    """
    if document.get("absence"):
        yield warn(document["absence"]["sentence"])

    if carried := document.get("carried"):
        if carried["words"]:
            parts = [", ".join(carried["words"])]
        else:
            parts = []

        for name, value in carried["filters"].items():
            parts.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")

        yield dim(
            f"carried from {carried['follows']}: {'; '.join(parts) or 'nothing'} (leave one out "
            "with --drop)",
        )

    if document.get("excluded") is not None:
        excluded = f"{document['excluded']:,} documents are left out"
        yield dim(f"{excluded} by the filters or the time of the question")


def _cost_table(answer: Document) -> Table:
    """What the turn cost, stage by stage, and its budget."""
    spent = answer["telemetry"]
    budget = answer["plan"]["budget"]

    rows = []
    for stage in spent["stages"]:
        notes = []
        if stage["capped"]:
            notes.append("capped")
        if stage["early_stop"]:
            notes.append("stopped early")

        counts = (stage["reads"], stage["work"], f"{stage['ms']:.1f}", stage["in"], stage["out"])
        rows.append((stage["name"], *counts, " ".join(notes)))

    totals = f"used {spent['reads']} reads, {spent['work']} work, {spent['ms']:.1f} ms, "
    totals += f"{answer['tokens']['prompt']} prompt tokens"
    if spent.get("loading_ms", 0.0) >= 1.0:
        totals += f"; loading took {spent['loading_ms']:.0f} ms more"

    rows.append(
        (
            "budget",
            budget["docs_max"],
            budget["work_max"],
            str(budget["latency_ms"]),
            "",
            "",
            totals,
        )
    )
    return table(("stage", "reads", "work", "ms", "in", "out", ""), rows)


def show_written_answer(document: Document) -> View:
    """The sentences, what is wrong with them, and the sources they cite."""
    cost = document["cost"]
    sentences = document["sentences"]
    sources = document["sources"]

    if document["mode"] == "estimate":
        completion_tokens = cost["completion_tokens_at_most"]
        yield (
            f"{cost['prompt_tokens']:,} tokens to send with {len(sources)} sources, at most "
            f"{completion_tokens:,} back"
        )
        return

    if (report := document.get("changes")) and not report["statements"]:
        yield Text(report["sentence"])

    if sentences and sentences[0]["kind"]:
        yield from _show_blocks(sentences, {source["number"]: source for source in sources})
    else:
        yield from _show_sentences(document)

    cited: set[int] = set()
    cited.update(*(sentence["citations"] for sentence in sentences))
    yield from _show_age(source for source in sources if source["number"] in cited)
    yield from _notes(document)

    if not sentences:
        yield from explain_reasons(document["reasons"])

    if document["problem"]:
        yield warn(
            f"quoted, because the language model did not answer: {document['problem']}",
        )

    if document["mode"] == "written":
        sent_tokens = cost["prompt_tokens"]
        received_tokens = cost["completion_tokens"]
        tokens = f"about {sent_tokens:,} tokens sent, {received_tokens:,} received"
        yield dim(f"{document['model']}: {tokens}")

    yield dim(document["query_id"])


def _show_blocks(blocks: Sequence[Document], sources: Mapping[int, Document]) -> View:
    """Quoted blocks as they read on a page, each source under its headings and place, the words
    that decide in bold.
    """
    for number, group in groupby(blocks, key=lambda block: block["citations"][0]):
        texts = []
        for block in group:
            if block["heading"]:
                line = Text(f"[{number}] ", style="cyan").append(
                    block["heading"],
                    style="bold",
                )
                place = sources[number].get("address") or sources[number]["document"]
                line.append(f"  {place}", style="dim")

                if sources[number]["carries"]:
                    line.append("  (said only here)", style="yellow")

                yield line

            text = block["text"]
            if block["kind"] not in ("code", "row"):
                for mark in block["marks"]:
                    text = text.replace(mark, f"**{mark.replace('**', '')}**")

            texts.append(text)

        yield _markdown_block("\n\n".join(texts))


def _markdown_block(markdown: str) -> Padding:
    """Markdown as it reads on a page, below the line that says where it stands."""
    from rich.markdown import Markdown  # a tenth of a second that only answers need

    return Padding(Markdown(markdown, code_theme="ansi_dark"), (0, 0, 1, 4))


def _show_sentences(document: Document) -> View:
    """Sentences of a language model, or places of code; what is wrong with them, and the sources
    they cite.
    """
    sentences = document["sentences"]
    sources = document["sources"]
    answer = Text()

    for sentence in sentences:
        answer.append(
            sentence["text"],
            style="" if sentence["is_supported"] else "yellow",
        )
        mark = "".join(f" [{number}]" for number in sentence["citations"])
        answer.append(
            mark + ("\n" if document["mode"] == "extracted" else " "),
            style="cyan",
        )

    answer.rstrip()
    if sentences:
        yield answer
    else:
        yield document["text"].partition("\n")[0] + (" Nearest:" if sources else "")

    for sentence in sentences:
        if not sentence["is_supported"]:
            yield warn(f"not supported: {sentence['problem']}: {sentence['text']}")

    yield ""
    first_quotes: dict[int, str] = {}  # by source: the first sentence that cites it
    for sentence in sentences:
        for number in sentence["citations"]:
            first_quotes.setdefault(number, sentence["text"])

    for source in sources:
        number = source["number"]
        if number not in first_quotes and (first_quotes or number > _NEAREST):
            continue

        line = bold(f"[{number}] {_place(source)}")
        yield line.append(
            "  (said only here)" if source["carries"] else "",
            style="yellow",
        )
        if source.get("code"):
            yield from show_code(
                source["text"],
                int(source["where"].rpartition(":")[2]),
                6,
            )
        else:
            yield dim(f"    {_quote(source['text'], first_quotes.get(number, ''))}")


def _place(source: Document) -> str:
    if re.search(r":\d+$", source["where"]):  # code: a terminal opens path:line
        return str(source["where"])
    return ", ".join(
        part for part in (source["document"] or source["title"], source["where"]) if part
    )


def _quote(text: str, first: str) -> str:
    """A few words around the first sentence that the answer takes from this source."""
    words = plain_words(text)
    offset = max(0, words.find(first) if first else 0)
    begin = 0

    if offset + len(first) > _QUOTED:
        begin = words.rfind(" ", 0, max(1, offset - _BEFORE)) + 1

    end = begin + max(_QUOTED, len(first) + _BEFORE)
    quotation = words[begin:end].rstrip()
    return f"{'…' if begin else ''}{quotation}{'…' if end < len(words) else ''}"


def show_explanation(document: Document) -> View:
    """The question, why each path was kept, why a node was not reached, what was cut, what to
    change.
    """
    yield bold(f"{document['query']}")
    yield dim(
        f"{document['recipe']}, asked {document['at']} of snapshot {document['snapshot']}",
    )

    for path in document["paths"]:
        yield bold(f"{path['rank']}. {path['text']}")
        yield dim("\n".join(f"   {reason}" for reason in path["why"].split("; ")))

    if not document["paths"]:
        yield "No path was kept."

    if (missing := document["missing"]) is not None:
        if missing["name"]:
            name = f"{missing['name']} ({missing['node']})"
        else:
            name = missing["node"]

        yield bold(f"{name}: {missing['code']}")
        yield f"   {missing['sentence']}"
        if seeds := missing["evidence"].get("seeds"):
            yield dim(f"   the search began at {', '.join(seeds)}")
        if missing["next"]:
            yield f"   to reach it: {missing['next']}"

    if document["sources"]:
        rows = []
        for source in document["sources"]:
            rows.append(
                {
                    **source,
                    "section": (source["headings"] or [source["title"]])[-1],
                }
            )

        yield list_records(
            rows,
            "rank cited_as=number section document needed said_only_here=carries also_in=instead",
        )

    if (without := document["without"]) is not None:
        yield from _show_without(without)

    yield from (warn(f"{code}: {sentence}") for code, sentence in document["reasons"].items())


def _show_without(without: Document) -> View:
    """Whether the answer stands without a source, and what is shown in its place."""
    if without["stands"]:
        verdict = "still stands"
    else:
        verdict = "does not stand"

    verdict += "; nothing supports one" if without["abstains"] else ""
    yield bold(f"Without {without['source']} the answer {verdict}.")
    old_texts, new_texts = without["answer"]

    if old_texts != new_texts:
        yield from (dim(f"   - {' '.join(text.split())}") for text in old_texts)
        yield from (f"   + {' '.join(text.split())}" for text in new_texts)

    yield from (
        f"   new at rank {passage['rank']}: {passage['title']} ({passage['document']})"
        for passage in without["new"]
    )


def show_query_report(figures: Document) -> View:
    """How many questions, how fast, and where the page is."""
    ms = figures["ms"]
    yield f"{figures['questions']} questions, p50 {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms"
    context = figures["context"]

    if file_tokens := context["file_tokens"]:
        returned_tokens = context["returned_tokens"]
        sentence = (
            f"{returned_tokens:,} tokens returned; the {context['files']:,} files they come from "
            f"hold {file_tokens:,}"
        )
        if returned_tokens < file_tokens:
            sentence += f": {1 - returned_tokens / file_tokens:.0%} of the context saved"

        yield sentence

    yield str(figures["path"])


def show_standing_answers(document: Document) -> View:
    """Which answers changed, why, and which lack their source."""
    for answer in document["answers"]:
        yield bold(f"{answer['question']} ({answer['change']})")
        before = after = "no answer"
        if answer["before"]:
            before = f"{answer['source_before']}: {answer['before']}"
        if answer["after"]:
            after = f"{answer['source_after']}: {answer['after']}"

        yield dim(f"   - {before}")
        yield f"   + {after}"
        for cause in answer["causes"]:
            yield warn(f"   because {cause['sentence']}")

    for answer in document["red"]:
        cited = answer["cited"] or "nothing"
        yield Text(
            f"{answer['question']}: must cite {answer['requires']}, but cites {cited}",
            style="red",
        )

    if document["before"] == document["after"]:
        yield (
            f"standing questions: {document['asked']}; no older snapshot is there to compare "
            "their answers with"
        )
    else:
        yield (
            f"{document['changed']} of {document['asked']} standing answers differ from "
            f"snapshot {document['before']}"
        )
