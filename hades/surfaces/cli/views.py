"""What a person sees of a capability's reply, where lines and tables of its own say more than the generic ones."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hades.reports.page import write_comparison_page
from hades.surfaces.cli.output import day, list_records, table
from hades.text.blocks import as_markdown, plain_words
from schemas.nodes import ChunkKind
from schemas.plan import Reason

Document = Mapping[str, Any]
View = Iterator[RenderableType]
_QUOTED, _BEFORE = 200, 60  # characters of a cited source, of them before the cited sentence
_NEAREST, _RANKED, _NAMED, _SHOWN = 3, 10, 8, 100
_BEGINNING = 400  # characters of a passage that are shown
# What a person can do about each reason of an answer.
ACTIONS = {
    Reason.CAP_EXCEEDED: "Mostly nothing. Raise the cap in `plan:` of `hades.yaml` where answers miss something.",
    Reason.COVERAGE_REACHED: "Nothing: it saved time.",
    Reason.TIMEOUT: "Ask again on a less busy machine, or raise `budget.latency_ms` and the stage's `timeout_ms`.",
    Reason.BUDGET_DOCS: "Raise `budget.docs_max`, or ask a narrower question.",
    Reason.PLAN_CLAMPED: "Lower the plan to its caps, or use a profile with higher ones (`long`).",
    Reason.NO_ENTITY_MATCH: "Name a thing as the corpus spells it; `hades overview` lists names.",
    Reason.NO_PATHS: "Read the passages; raise `graph.hops` to 2 where a path is needed.",
    Reason.HIERARCHY_UNAVAILABLE: "Run `hades build`, which builds the topics.",
    Reason.EMBEDDINGS_MISSING: "They follow while `hades watch` builds; else run `hades build`.",
    Reason.CONTEXT_FULL: "Nothing; raise `final_context` to see more.",
    Reason.PROMPT_FULL: "Raise `budget.tokens_max` where the reader has room for more.",
    Reason.KEY_UNUSED: "Leave the key out, or ask with a recipe that uses it; `why` names it.",
    Reason.EMBEDDER_SLOW: "Ask again; raise `budget.latency_ms`, or use an embedder on this machine (`minilm`).",
    Reason.ANALYZER_MISMATCH: "Run `hades provision` with the admin credential.",
    Reason.VIEW_DEGRADED: "Run `hades doctor`; publish again with `hades publish`.",
    Reason.NOT_BUILT: "`hades ingest workspace PATH` and `hades build` add vectors, paths and topics.",
    Reason.RANKER_UNAVAILABLE: "Nothing: weights rank. `hades run train_ranker` fits a new one.",
    Reason.ABSTAINED: "Bring documents that hold the answer.",
}
# These describe an ordinary turn, or nothing follows from them: they are not shown under an answer.
_ORDINARY = (
    Reason.CAP_EXCEEDED, Reason.COVERAGE_REACHED, Reason.NO_ENTITY_MATCH, Reason.NO_PATHS, Reason.RANKER_UNAVAILABLE,
    Reason.CONTEXT_FULL,
)  # fmt: skip


def explain_reasons(codes: Iterable[str]) -> Iterator[Text]:
    """A sentence and what to do, for each reason that a person can act on."""
    for reason, action in ACTIONS.items():
        if reason in codes and reason not in _ORDINARY:
            about = f"{reason.about[0].upper()}{reason.about[1:]}"
            yield Text(f"{about}. {action.replace('`', '')}", style="yellow")


def _list(part: str, columns: str, empty: str = "", after: str = "") -> Callable[[Document], View]:
    """The view of a reply that is a list of records; `empty` is said where there are none, `after` below them."""

    def show(document: Document) -> View:
        records = document[part] if isinstance(document[part], list) else [document[part]]
        yield list_records(records, columns) if records or not empty else empty
        if after:
            yield after.format(**document, listed=len(records))

    return show


def _line(text: Callable[[Document], str]) -> Callable[[Document], View]:
    """The view of a reply that is said in a few words."""
    return lambda document: iter([text(document)])


# Questions.


def show_code(text: str, first: int, most: int) -> Iterator[Text]:
    """At most `most` lines of code that begins at line `first`, each with its number, and how many more there are."""
    lines = text.expandtabs(4).rstrip().split("\n")
    shown = textwrap.dedent("\n".join(lines[:most])).split("\n")
    yield from (Text(f"{number:>7} {line}", style="dim") for number, line in enumerate(shown, first))
    if len(lines) > most:
        yield Text(f"        … {len(lines) - most} more lines", style="dim")


def show_answer(answer: Document, format: str) -> View:
    """An answer: paths, passages, what it cost, what was cut; or the prompt alone."""
    if format == "prompt":
        yield answer["prompt"]
        return
    if answer.get("why"):
        yield f"{answer['recipe']}: {answer['why']}"
    for one in (answer.get("ranking") or ())[:_RANKED]:
        yield Text(f"{one['rank']}. {one['id']}", style="bold")
    for path in answer["paths"]:
        yield Text(f"{path['rank']}. {path['text']}", style="bold")
        yield Text(f"   {path['why']}", style="dim")
    if answer["passages"] and Reason.ABSTAINED in answer["reasons"]:
        yield Text("The sources do not answer this; nearest:", style="yellow")
    for passage in answer["passages"]:
        yield from show_passage(passage)
    if not answer["paths"] and not answer["passages"]:
        yield "Nothing was found."
    yield from _notes(answer)
    yield _cost(answer)
    yield from explain_reasons(answer["reasons"])
    yield Text(f"{answer['query_id']} (snapshot {answer['snapshot'] or 'none'})", style="dim")


def show_passage(passage: Document) -> View:
    """A passage: code with its place as `path:line`, as editors open it; the beginning of other text as a page."""
    is_code = bool(passage.get("lines") and passage.get("path"))
    if is_code:
        first, last = passage["lines"]
        name = f"{passage['symbol']} ({passage['kind']})" if passage["symbol"] else f"({passage['kind']})"
        yield Text(f"[{passage['rank']}] {passage['path']}:{first}  {name}, lines {first}-{last}", style="bold")
    else:
        named = " › ".join(passage["headings"]) or passage["title"]
        line = Text(f"[{passage['rank']}] {named}", style="bold")
        place = f"{passage['document']} [{passage['span'][0]}:{passage['span'][1]}]"
        yield line.append(f"  {place}  {passage['score']:.3f} {'+'.join(passage['from'])}", style="dim not bold")
    if passage.get("explained_by"):
        yield Text(f"    path {passage['explained_by']} leads here", style="dim")
    elif passage.get("no_path"):
        yield Text(f"    {passage['no_path']}", style="dim")
    if is_code:
        yield from show_code(passage["text"], first, 12)
    else:
        yield _page(as_markdown(passage["text"], passage["kind"] == ChunkKind.LISTING, _BEGINNING))


def _notes(document: Document) -> Iterator[Text]:
    """What was searched where nothing answers, what the question carries on, and what its filters leave out."""
    if document.get("absence"):
        yield Text(document["absence"]["sentence"], style="yellow")
    if carried := document.get("carried"):
        limits = [
            f"{name} {value if isinstance(value, str) else ', '.join(value)}"
            for name, value in carried["filters"].items()
        ]
        told = "; ".join(filter(None, [", ".join(carried["words"]), *limits])) or "nothing"
        yield Text(f"carried from {carried['follows']}: {told} (leave one out with --drop)", style="dim")
    if document.get("excluded") is not None:
        yield Text(f"{document['excluded']:,} documents are left out by the filters of the question", style="dim")


def _cost(answer: Document) -> Table:
    """What the turn cost, stage by stage, and its budget."""
    spent, budget = answer["telemetry"], answer["plan"]["budget"]
    rows = [
        (stage["name"], stage["reads"], stage["work"], f"{stage['ms']:.1f}", stage["in"], stage["out"],
         " ".join(word for word, key in (("capped", "capped"), ("stopped early", "early_stop")) if stage[key]))
        for stage in spent["stages"]
    ]  # fmt: skip
    used = f"used {spent['reads']} reads, {spent['work']} work, {spent['ms']:.1f} ms, "
    used += f"{answer['tokens']['prompt']} prompt tokens"
    if spent.get("loading_ms", 0.0) >= 1.0:
        used += f"; loading took {spent['loading_ms']:.0f} ms more"
    rows.append(("budget", budget["docs_max"], budget["work_max"], str(budget["latency_ms"]), "", "", used))
    return table(("stage", "reads", "work", "ms", "in", "out", ""), rows)


def show_written_answer(document: Document) -> View:
    """The sentences, what is wrong with them, and the sources they cite."""
    cost, sentences, sources = document["cost"], document["sentences"], document["sources"]
    if document["mode"] == "estimate":
        most = cost["completion_tokens_at_most"]
        yield f"{cost['prompt_tokens']:,} tokens to send with {len(sources)} sources, at most {most:,} back"
        return
    if sentences and sentences[0]["kind"]:
        yield from _show_blocks(sentences, {source["number"]: source for source in sources})
    else:
        yield from _show_sentences(document)
    yield from _notes(document)
    if not sentences:
        yield from explain_reasons(document["reasons"])
    if document["problem"]:
        yield Text(f"quoted, because the language model did not answer: {document['problem']}", style="yellow")
    if document["mode"] == "written":
        sent, received = cost["prompt_tokens"], cost["completion_tokens"]
        yield Text(f"{document['model']}: about {sent:,} tokens sent, {received:,} received", style="dim")
    yield Text(document["query_id"], style="dim")


def _show_blocks(blocks: Sequence[Document], sources: Mapping[int, Document]) -> View:
    """Quoted blocks as they read on a page, each source under its headings and place, the words that decide in bold."""
    for number, group in groupby(blocks, key=lambda block: block["citations"][0]):
        texts = []
        for block in group:
            if block["heading"]:
                line = Text(f"[{number}] ", style="cyan").append(block["heading"], style="bold")
                line.append(f"  {sources[number]['document']}", style="dim")
                yield line.append("  (said only here)", style="yellow") if sources[number]["carries"] else line
            text = block["text"]
            for mark in block["marks"] if block["kind"] not in ("code", "row") else ():
                text = text.replace(mark, f"**{mark.replace('**', '')}**")
            texts.append(text)
        yield _page("\n\n".join(texts))


def _page(markdown: str) -> Padding:
    """Markdown as it reads on a page, below the line that says where it stands."""
    from rich.markdown import Markdown  # a tenth of a second that only answers need

    return Padding(Markdown(markdown, code_theme="ansi_dark"), (0, 0, 1, 4))


def _show_sentences(document: Document) -> View:
    """Sentences of a language model, or places of code; what is wrong with them, and the sources they cite."""
    sentences, sources = document["sentences"], document["sources"]
    answer = Text()
    for sentence in sentences:
        answer.append(sentence["text"], style="" if sentence["is_supported"] else "yellow")
        mark = "".join(f" [{number}]" for number in sentence["citations"])
        answer.append(mark + ("\n" if document["mode"] == "extracted" else " "), style="cyan")
    answer.rstrip()
    yield answer if sentences else document["text"].partition("\n")[0] + (" Nearest:" if sources else "")
    for sentence in sentences:
        if not sentence["is_supported"]:
            yield Text(f"not supported: {sentence['problem']}: {sentence['text']}", style="yellow")
    yield ""
    cited = {number for sentence in sentences for number in sentence["citations"]}
    for source in sources:
        if source["number"] in cited or (not cited and source["number"] <= _NEAREST):
            alone = "  (said only here)" if source["carries"] else ""
            yield Text(f"[{source['number']}] {_place(source)}", style="bold").append(alone, style="yellow")
            first = next((one["text"] for one in sentences if source["number"] in one["citations"]), "")
            if source.get("code"):
                yield from show_code(source["text"], int(source["where"].rpartition(":")[2]), 6)
            else:
                yield Text(f"    {_quote(source['text'], first)}", style="dim")


def _place(source: Document) -> str:
    if re.search(r":\d+$", source["where"]):  # code: a terminal opens path:line
        return str(source["where"])
    return ", ".join(part for part in (source["document"] or source["title"], source["where"]) if part)


def _quote(text: str, first: str) -> str:
    """A few words around the first sentence that the answer takes from this source."""
    words = plain_words(text)
    at = max(0, words.find(first) if first else 0)
    begin = 0 if at + len(first) <= _QUOTED else words.rfind(" ", 0, max(1, at - _BEFORE)) + 1
    end = begin + max(_QUOTED, len(first) + _BEFORE)
    return ("…" if begin else "") + words[begin:end].rstrip() + ("…" if end < len(words) else "")


def show_explanation(document: Document) -> View:
    """The question, why each path was kept, why a node was not reached, what was cut, what to change."""
    yield Text(f"{document['query']}", style="bold")
    yield Text(f"{document['recipe']}, asked {document['at']} of snapshot {document['snapshot']}", style="dim")
    for path in document["paths"]:
        yield Text(f"{path['rank']}. {path['text']}", style="bold")
        yield Text("\n".join(f"   {reason}" for reason in path["why"].split("; ")), style="dim")
    if not document["paths"]:
        yield "No path was kept."
    if (missing := document["missing"]) is not None:
        name = f"{missing['name']} ({missing['node']})" if missing["name"] else missing["node"]
        yield Text(f"{name}: {missing['code']}", style="bold")
        yield f"   {missing['sentence']}"
        if seeds := missing["evidence"].get("seeds"):
            yield Text(f"   the search began at {', '.join(seeds)}", style="dim")
        if missing["next"]:
            yield f"   to reach it: {missing['next']}"
    if document["sources"]:
        rows = [{**one, "section": (one["headings"] or [one["title"]])[-1]} for one in document["sources"]]
        yield list_records(rows, "rank cited_as=number section document needed said_only_here=carries also_in=instead")
    if (without := document["without"]) is not None:
        yield from _show_without(without)
    yield from (Text(f"{code}: {sentence}", style="yellow") for code, sentence in document["reasons"].items())


def _show_without(without: Document) -> View:
    """Whether the answer stands without a source, and what is shown in its place."""
    verdict = "still stands" if without["stands"] else "does not stand"
    verdict += "; nothing supports one" if without["abstains"] else ""
    yield Text(f"Without {without['source']} the answer {verdict}.", style="bold")
    before, after = without["answer"]
    if before != after:
        yield from (Text(f"   - {' '.join(text.split())}", style="dim") for text in before)
        yield from (f"   + {' '.join(text.split())}" for text in after)
    yield from (f"   new at rank {one['rank']}: {one['title']} ({one['document']})" for one in without["new"])


def show_query_report(figures: Document) -> View:
    """How many questions, how fast, and where the page is."""
    ms = figures["ms"]
    yield f"{figures['questions']} questions, p50 {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms"
    context = figures["context"]
    if whole := context["file_tokens"]:
        given = context["returned_tokens"]
        told = f"{given:,} tokens returned; the {context['files']:,} files they come from hold {whole:,}"
        yield f"{told}: {1 - given / whole:.0%} of the context saved" if given < whole else told
    yield str(figures["path"])


def show_standing_answers(document: Document) -> View:
    """Which answers changed, why, and which lack their source."""
    for one in document["answers"]:
        yield Text(f"{one['question']} ({one['change']})", style="bold")
        yield Text(f"   - {one['source_before']}: {one['before']}" if one["before"] else "   - no answer", style="dim")
        yield f"   + {one['source_after']}: {one['after']}" if one["after"] else "   + no answer"
        yield from (Text(f"   because {cause['sentence']}", style="yellow") for cause in one["causes"])
    for one in document["red"]:
        cited = one["cited"] or "nothing"
        yield Text(f"{one['question']}: must cite {one['requires']}, but cites {cited}", style="red")
    if document["before"] == document["after"]:
        yield f"standing questions: {document['asked']}; no older snapshot is there to compare their answers with"
    else:
        yield f"{document['changed']} of {document['asked']} standing answers differ from snapshot {document['before']}"


# The graph.


def show_subgraph(document: Document) -> View:
    """The nodes by distance, then the edges."""
    yield list_records(document["nodes"], "node=id name type hops=depth")
    yield ""
    edges = [{**one, "label": one["label"] or one["type"]} for one in document["edges"]]
    yield list_records(edges, "from edge=label to weight")
    if document["capped"]:
        yield Text("There are more; raise --fanout, or the limits of nodes and edges.", style="yellow")


def show_overview(document: Document) -> View:
    """What the corpus holds, its topics, what it names most, and questions to begin with."""
    held = {"documents": "documents", "doc_chunks": "passages", "funcs": "functions", "entities": "names"}
    yield ", ".join(
        f"{document['counts'][name]:,} {said}" for name, said in held.items() if document["counts"].get(name)
    )
    if topics := document["topics"][:_RANKED]:
        yield list_records(topics, "topic=name parts members documents")
    yield f"named most: {', '.join(one['name'] for one in document['names'][:_RANKED])}"
    yield from (f'hades answer "{question}"' for question in document["questions"])


def show_comparison(document: Document, page: str | None = None) -> View:
    """Counts side by side and some names of what came and went; the page, where one is wanted."""
    told = [] if page is None else [f"page: {write_comparison_page(Path(page), document)}"]  # with --json as well
    return chain(_compare_counts(document), told)


def _compare_counts(document: Document) -> View:
    yield Text(f"{document['before']} → {document['after']}", style="bold")
    parts = ("before", "after", "added", "removed")
    counted = [*document["nodes"].items(), *document["relations"].items()]
    yield table(("", *parts), ((kind, *(row.get(part) for part in parts)) for kind, row in counted))
    for kind, row in document["nodes"].items():
        for word in ("added", "removed"):
            if row[f"{word}_names"]:
                named = ", ".join(row[f"{word}_names"][:_NAMED])
                yield Text(f"{word} {kind}: {named}{' ...' if row[word] > _NAMED else ''}", style="dim")
    documents, topics, standing = document["documents"], document["topics"], document["standing"]
    yield "documents: " + ", ".join(f"{one['count']:,} {change}" for change, one in documents.items())
    yield f"weights: {document['weights']['moved']:,} moved"
    kinds = ", ".join(f"{len(topics[part]):,} {part}" for part in ("came", "went", "merged"))
    yield f"topics: {kinds}; {topics['moved']:,} entities moved"
    if standing:
        yield f"standing answers: {standing['changed']} of {standing['asked']} changed"


def show_edit(report: Document) -> View:
    """What was changed, what it said before, and what it waits for."""
    yield f"{report['entity']}: {report['state']}; {report['note']}"
    yield from (f"  {name}: {report['before'].get(name)!r} -> {value!r}" for name, value in report["fields"].items())
    if report["state"] == "pending":
        yield from (f"  waits, because {need}" for need in report["needs"])
    if report["edit"]:
        yield f"  edit {report['edit']}"


def show_rollback(document: Document) -> View:
    """What serves now, and which weights the store has."""
    yield f"{document['snapshot']} is now serving; switched in {document['pointer_seconds'] * 1000:.0f} ms"
    if document["weights_version"]:
        yield f"the store has weights version {document['weights_version']} again ({document['restored']:,} rows)"
    if document["note"]:
        yield document["note"]


# Memory.


def _span(state: Document) -> str:
    """When a version or an edge is true."""
    until = f" until {day(state['valid_until'])}" if state.get("valid_until") else ""
    return f"since {day(state['valid_from'])}{until}"


_VERSION = "topic version since=valid_from content"
_RESULT = "similarity strength topic=state.topic version=state.version since=state.valid_from content=state.content"
_EDGE = (
    "edge=id from=source_topic relation=relationship_type to=target_topic since=valid_from until=valid_until "
    "superseded_by"
)


def show_added(document: Document) -> View:
    """The version that was added; where another one holds now, which and why."""
    state, holds = document["state"], document.get("holds")
    yield f"{state['topic']} is at version {state['version']}"
    yield f"id {state['id']}"
    if holds is None:
        yield f"nothing holds now: it is true {_span(state)}"
    elif holds["id"] != state["id"]:
        yield f"version {holds['version']} still holds now: the new one is true {_span(state)}"


def show_state(document: Document) -> View:
    """A version, where it stands, its edges, and after a change why each ended; none where nothing changed."""
    state = document.get("state") or document.get("new_state")
    if state is None:
        yield "nothing that it is joined to has changed since; no new version"
        return
    head = f"{state['topic']}, version {state['version']}, {_span(state)}, confidence {state['confidence']:g}"
    yield Text(head, style="bold")
    yield state["content"]
    yield Text(f"id {state['id']}", style="dim")
    if document.get("edges"):
        yield list_records(document["edges"], _EDGE)
    if "reasons" in document:
        yield "\n".join([*document["reasons"], f"act {document['act']}"])


def show_history(document: Document) -> View:
    """The versions as a table."""
    states = [{**state, "holds": "now" if state["id"] == document.get("holds") else ""} for state in document["states"]]
    yield list_records(states, "version since=valid_from until=valid_until holds who=act.who why=act.why content")


def show_when(document: Document) -> View:
    """When a relation changed, with both edges."""
    if document["at"] is None:
        yield "The relation never changed."
    else:
        yield f"at {day(document['at'])}"
        yield list_records([document["ended"], document["began"]], _EDGE)


def show_fact(document: Document) -> View:
    """The edges of the fact and the conflicts it met."""
    yield list_records(document["edges"], _EDGE)
    lines = [f"excludes {one['old']}: {one['outcome']}, {one['why']}" for one in document["conflicts"]]
    yield "\n".join(lines) or "no conflict"


def show_certificate(document: Document) -> View:
    """What was erased, and the commands that remove what is left."""
    erased = f"{len(document['states'])} versions ({len(document['derived'])} derived from others)"
    yield f"certificate {document['id']}"
    yield (
        f"erased {erased}, {len(document['edges'])} edges; blanked {document['audit_blanked']} records, redacted "
        f"{document['redacted']} rows and {len(document['masked_files'])} files"
    )
    if document["complete"]:
        yield "complete: a search of every row and every file of the home finds no copy"
    else:
        yield "not complete; these commands remove the rest:"
    yield from document["commands"]


def show_learning(document: Document) -> View:
    """What was counted and which edges were drawn."""
    counted, left = document["accesses"], document["left"]
    yield f"{counted['reads']:,} readings of {counted['states']:,} states"
    looked = f"{document['topics']:,} changed topics looked at, {len(document['edges']):,} edges drawn"
    yield looked + (f"; {left:,} wait for the next time" if left else "")
    if document["edges"]:
        yield list_records(document["edges"], _EDGE)


def show_recalled(document: Document) -> View:
    """A context, with the tokens of its parts or what its plan looked for in vain."""
    yield document["text"] or "memory holds nothing about that"
    if "steps" in document:
        steps, missing = ", ".join(document["steps"]), ", ".join(document["missing"]) or "nothing"
        yield Text(f"intent: {document['intent']}; steps: {steps}; found nothing for: {missing}", style="dim")
    else:
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in document["tokens_by_part"].items())
        used = f"{document['tokens']:,} of {document['max_tokens']:,} tokens ({parts})"
        yield Text(f"{used}; {document['buffer']:,} kept free; intent: {document['intent']}", style="dim")


def show_search(document: Document) -> View:
    """The topics found, and what edges join to them."""
    yield list_records(document["results"], _RESULT) if document["results"] else "nothing is near to that"
    for match in document.get("matches", ()):
        for one in match["related_states"]:
            near, relation, far = match["state"]["topic"], one["way"][-1]["type"], one["state"]["topic"]
            yield f"{near} --{relation}-- {far}, strength {one['strength']:.2f}"


def show_working_set(document: Document) -> View:
    """The versions of the working set, or the results of the question."""
    if "results" in document:
        yield list_records(document["results"], _RESULT)
        return
    report = document["report"]
    yield list_records([*document["history"], *(one["state"] for one in document["related"])], _VERSION)
    yield f"{report['items']} versions of {report['topics']} topics and {report['edges']} edges are in the working set"


VIEWS: dict[str, Callable[..., Iterable[RenderableType]]] = {
    "query": show_answer,
    "answer": show_written_answer,
    "explain": show_explanation,
    "feedback": _line(
        lambda document: "; ".join(
            f"{name}: paths {one['paths']}, passages {one['passages']}"
            for name, one in document["feedback"].items()
            if name in ("good", "bad")
        )
    ),
    "queries": show_query_report,
    "standing.add": _list("added", "id question must_cite=requires", "Nothing was added: all of these stand already."),
    "standing.list": _list("questions", "id question must_cite=requires", "There are no standing questions."),
    "standing.remove": _line(lambda document: f"dropped: {document['removed']['question']}"),
    "standing.run": show_standing_answers,
    "graph.neighbours": show_subgraph,
    "graph.subgraph": show_subgraph,
    "graph.topics": _list("topics", "topic=id level name members=size", after="{listed} of {total} topics"),
    "overview": show_overview,
    "compare": show_comparison,
    "entity.edits": _list("edits", "edit=_key entity state who approved_by says=fields why", "No entity was edited."),
    "entity.approve": show_edit,
    "entity.undo": show_edit,
    "entity.update": show_edit,
    "snapshots": _list(
        "snapshots",
        "serves snapshot as_of=created_at nodes edges pins problem",
        "Nothing has been published; run `hades build`.",
    ),
    "rollback": show_rollback,
    "promote": show_rollback,
    "discard": _line(lambda document: f"{document['discarded']} was removed"),
    "memory.add": show_added,
    "memory.latest": show_state,
    "memory.at": show_state,
    "memory.promote": show_state,
    "memory.reconsolidate": show_state,
    "memory.history": show_history,
    "memory.topics": _line(lambda document: "\n".join(document["topics"]) or "memory is empty"),
    "memory.link": _list("edge", _EDGE),
    "memory.close": _list("edge", _EDGE),
    "memory.edges": _list("edges", _EDGE),
    "memory.why": _line("{current_answer}\nreasons: {reasoning}\nbefore: {historical_context}".format_map),
    "memory.when": show_when,
    "memory.change": show_state,
    "memory.fact": show_fact,
    "memory.conflicts": _list("conflicts", "conflict=id claim outcome why=reason"),
    "memory.resolve": _line(lambda document: f"the {document['outcome']} fact is kept"),
    "memory.undo": _line(lambda document: f"undid {len(document['undid'])} steps\nact {document['act']}"),
    "memory.audit": _list("acts", "act=id when=at what=action subject who why"),
    "memory.erase": show_certificate,
    "memory.compact": _line(
        lambda document: (
            "No deleted row is left in the store's files."
            if document["compacted"]
            else "The store is in use; try again."
        )
    ),
    "memory.check": _line(lambda document: "\n".join(document["problems"]) or "memory is consistent"),
    "memory.rate": _line(
        lambda document: "{topic}, version {version}: importance {importance_score:.2f}".format(**document["state"])
    ),
    "memory.trust": _line(lambda document: document["state"]["content"]),
    "memory.learn": show_learning,
    "memory.groups": _list(
        "groups",
        "group=name topics edges strength",
        "no topics are joined by edges; `hades memory learn` discovers some",
    ),
    "memory.recall": show_recalled,
    "memory.context": show_recalled,
    "memory.search": show_search,
    "memory.working": show_working_set,
    "memory.consolidate": _list("levels", "level=name written unchanged sources erased damaged"),
    "memory.drill_down": _list("made_of", _VERSION),
}
