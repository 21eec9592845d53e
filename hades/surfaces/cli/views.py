"""What a person sees of a capability's reply, where lines and tables of its own say more than the
generic ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from hades.reports.page import write_comparison_page
from hades.surfaces.cli.output import bold, day, dim, list_records, shorten, table, warn
from hades.surfaces.cli.show_answers import (
    Document,
    View,
    show_answer,
    show_explanation,
    show_query_report,
    show_standing_answers,
    show_written_answer,
)

_RANKED = 10
_NAMED = 8
_SHOWN_STATEMENTS = 4


def _list_view(
    part: str,
    columns: str,
    empty: str = "",
    footer: str = "",
) -> Callable[[Document], View]:
    """The view of a reply that is a list of records; `empty` is said where there are none, `after`
    below them.
    """

    def show(document: Document) -> View:
        if isinstance(document[part], list):
            records = document[part]
        else:
            records = [document[part]]

        yield list_records(records, columns) if records or not empty else empty
        if footer:
            yield footer.format(**document, listed=len(records))

    return show


def _line_view(text: Callable[[Document], str]) -> Callable[[Document], View]:
    """The view of a reply that is said in a few words."""
    return lambda document: iter([text(document)])


def show_subgraph(document: Document) -> View:
    """The nodes by distance, then the edges."""
    yield list_records(document["nodes"], "node=id name type hops=depth")
    yield ""

    edges = []
    for edge in document["edges"]:
        edges.append(
            {
                **edge,
                "label": edge["label"] or edge["type"],
            }
        )

    yield list_records(edges, "from edge=label to weight")
    if document["capped"]:
        yield warn("There are more; raise --fanout, or the limits of nodes and edges.")


def show_overview(document: Document) -> View:
    """What the corpus holds, its topics, what it names most, and questions to begin with."""
    words = {
        "documents": "documents",
        "doc_chunks": "passages",
        "funcs": "functions",
        "entities": "names",
    }

    counts = []
    for name, word in words.items():
        counts.append((document["counts"].get(name), word))

    yield ", ".join(f"{count:,} {word}" for count, word in counts if count)
    if topics := document["topics"][:_RANKED]:
        yield list_records(topics, "topic=name parts members documents")

    yield f"named most: {', '.join(name['name'] for name in document['names'][:_RANKED])}"
    yield from (f'hades answer "{question}"' for question in document["questions"])


def show_comparison(document: Document, page: str | None = None) -> View:
    """Counts side by side and some names of what came and went; the page, where one is wanted."""
    lines = []
    if page is not None:  # written here, not when the view is shown: with --json as well
        lines.append(f"page: {write_comparison_page(Path(page), document)}")

    return chain(_compare_counts(document), lines)


def _compare_counts(document: Document) -> View:
    yield bold(f"{document['before']} → {document['after']}")
    parts = ("before", "after", "added", "removed")

    rows = []
    for kind, counts in (*document["nodes"].items(), *document["relations"].items()):
        rows.append((kind, *(counts.get(part) for part in parts)))

    yield table(("", *parts), rows)
    for kind, row in document["nodes"].items():
        for word in ("added", "removed"):
            if row[f"{word}_names"]:
                names = ", ".join(row[f"{word}_names"][:_NAMED])
                ellipsis = " ..." if row[word] > _NAMED else ""
                yield dim(f"{word} {kind}: {names}{ellipsis}")

    documents = document["documents"]
    topics = document["topics"]
    standing = document["standing"]
    changes = [f"{row['count']:,} {change}" for change, row in documents.items()]
    yield f"documents: {', '.join(changes)}"
    yield f"weights: {document['weights']['moved']:,} moved"
    kinds = ", ".join(f"{len(topics[part]):,} {part}" for part in ("came", "went", "merged"))
    yield f"topics: {kinds}; {topics['moved']:,} entities moved"

    if standing:
        yield f"standing answers: {standing['changed']} of {standing['asked']} changed"


def show_difference(document: Document, page: str | None = None) -> View:
    """What is said now and no longer, the answers of both, then the counts."""
    view = show_comparison(document, page)
    return chain(
        _said(document["said"]),
        _both_answers(document["standing"]),
        view,
    )


def _said(said: Document) -> View:
    for part, heading, mark, style in (
        ("now", "says now", "+", "green"),
        ("no_longer", "says no longer", "-", "red"),
    ):
        statements = said[part]
        yield bold(f"{heading}: {statements['count']:,} statements")
        for group in statements["groups"]:
            yield f"  {group['name']}"
            shown = group["statements"][:_SHOWN_STATEMENTS]
            yield from (Text(f"    {mark} {shorten(text)}", style=style) for text in shown)

            if group["count"] > len(shown):
                yield dim(f"    {mark} {group['count'] - len(shown):,} more")


def _both_answers(standing: Document) -> View:
    for answer in standing.get("answers", ()):
        yield bold(f"{answer['question']} ({answer['change']})")
        if answer["change"] == "same":
            yield f"  {answer['after'] or 'no answer'} [{answer['source_after']}]"
            continue

        yield Text(
            f"  - {answer['before'] or 'no answer'} [{answer['source_before']}]",
            "red",
        )
        yield Text(
            f"  + {answer['after'] or 'no answer'} [{answer['source_after']}]",
            "green",
        )


def show_log(document: Document) -> View:
    """A line for each night, then what it changed; the newest first."""
    if not document["nights"]:
        yield "No night was built; run `hades build`."

    for night in document["nights"]:
        marks = ["serves"] if night["serves"] else []
        marks += night["tags"]
        marks += [] if night["is_kept"] or not night["snapshot"] else ["pruned"]

        if night["seconds"] is None:
            seconds = ""
        else:
            seconds = f"  {night['seconds']:,.1f} s"

        mark = f"  ({', '.join(marks)})" if marks else ""
        built = day(night["at"])
        if night["as_of"][:10] not in ("", built[:10]):
            built += f" for {night['as_of'][:10]}"

        head = f"{built}  {night['kind']:<8}  {night['snapshot'][:12]}{seconds}{mark}"
        yield Text(head, style="red" if night["problem"] else "bold")
        yield f"    {night['problem'] or _changes_of_night(night)}"
        yield from (f"    {setting}" for setting in night["changed_settings"])


def _changes_of_night(night: Document) -> str:
    """What a night changed, in a line."""
    documents = night["documents"]
    entities = night["entities"]

    if entities is None:
        if night["build"]:
            return "nothing changed"
        return "not known what changed"

    if documents is None:
        return f"the first: {entities['now']:,} entities"

    relations = night["relations"]
    return (
        f"documents +{documents['added']:,} ~{documents['changed']:,} -{documents['removed']:,}, "
        f"entities +{entities['added']:,} -{entities['removed']:,}, "
        f"relations {relations['net']:+,} to {relations['now']:,}"
    )


_CERTAINTY = {
    "asked": "the snapshots before and after it were asked",
    "text": "by its sentence; the snapshots of that time are gone",
    "likely": "likely: what went fits the question better; the snapshots of that time are gone",
    "unknown": "nothing that is kept tells of an earlier time",
}


def show_blame(document: Document) -> View:
    """The answer, since when, by what, and what it said before."""
    night = document["night"]
    changed = document["document"]
    yield bold(document["sentence"] or "no answer")

    if document["source"]:
        yield dim(f"   {document['source']}")

    if document["certainty"] != "unknown":
        since = "since"
    else:
        since = "at least since"

    yield (
        f"{since} {night['day']}, {night['act']} {night['snapshot'][:12]} of {day(night['at'])} "
        f"({_CERTAINTY[document['certainty']]})"
    )
    if document["not_before"] and document["not_before"] != night["day"]:
        yield f"   between {document['not_before']} and {night['day']}"

    yield from (f"   because {cause['sentence']}" for cause in document["causes"])
    if changed is not None:
        yield Text(
            f"   - {changed['before'] or document['before'] or 'nothing'}",
            style="red",
        )
        yield Text(f"   + {changed['now'] or 'nothing'}", style="green")
    elif document["before"]:
        yield dim(f"   before: {document['before']}")

    yield from (f"   named {row['name']} until {row['until']}" for row in document["former_names"])
    dates = []
    for row in document["sentences"]:
        if row["day"] not in ("", night["day"]):
            dates.append(row)

    yield from (f"   since {row['day']}: {row['text']}" for row in dates[:_NAMED])
    if commit := document["git"]:
        named = f"{commit['commit'][:12]} {commit['author']}, {day(commit['at'])}: "
        yield f"   git: {named if commit['commit'] else ''}{commit['subject']}"

    yield from (f"   setting {line}" for line in document["settings_of_night"])
    if setting := document["setting"]:
        changes = "; ".join(setting["changes"])
        yield f"   with the settings from before {setting['night']['day']} it differs: {changes}"

    yield dim(
        f"snapshots are kept since {document['kept_since']}, {document['asked_snapshots']} were "
        f"asked; changed sentences since {document['texts_since'] or 'no night'}",
    )


def show_feedback(document: Document) -> View:
    """The ranks that were judged good and bad."""
    ranks = document["feedback"]

    verdicts = []
    for name in ranks:
        if name in ("good", "bad"):
            verdicts.append(name)

    yield "; ".join(
        f"{name}: paths {ranks[name]['paths']}, passages {ranks[name]['passages']}"
        for name in verdicts
    )


def show_edit(report: Document) -> View:
    """What was changed, what it said before, and what it waits for."""
    yield f"{report['entity']}: {report['state']}; {report['note']}"
    yield from (
        f"  {name}: {report['before'].get(name)!r} -> {value!r}"
        for name, value in report["fields"].items()
    )

    if report["state"] == "pending":
        yield from (f"  waits, because {need}" for need in report["needs"])
    if report["edit"]:
        yield f"  edit {report['edit']}"


def show_rollback(document: Document) -> View:
    """What serves now, and which weights the store has where they were restored."""
    yield (
        f"{document['snapshot']} is now serving; switched in "
        f"{document['pointer_seconds'] * 1000:.0f} ms"
    )
    if document["restored"] or document["weighed"]:
        yield (
            f"the store has weights version {document['weights_version']}: "
            f"{document['restored']:,} edges as they were"
        )

    if document["weighed"]:
        yield (
            f"{document['weighed']:,} edges that came later are weighed by the parameters of "
            "that time"
        )

    if document["note"]:
        yield document["note"]


def _validity(state: Document) -> str:
    """When a version or an edge is true."""
    if state.get("valid_until"):
        until = f" until {day(state['valid_until'])}"
    else:
        until = ""

    return f"since {day(state['valid_from'])}{until}"


_VERSION = "topic version since=valid_from content"
_RESULT = (
    "similarity strength topic=state.topic version=state.version since=state.valid_from "
    "content=state.content"
)
_EDGE = (
    "edge=id from=source_topic relation=relationship_type to=target_topic since=valid_from "
    "until=valid_until superseded_by"
)


def show_added(document: Document) -> View:
    """The version that was added; where another one holds now, which and why."""
    state = document["state"]
    holds = document.get("holds")
    yield f"{state['topic']} is at version {state['version']}"
    yield f"id {state['id']}"

    if holds is None:
        yield f"nothing holds now: it is true {_validity(state)}"
    elif holds["id"] != state["id"]:
        yield f"version {holds['version']} still holds now: the new one is true {_validity(state)}"


def show_state(document: Document) -> View:
    """A version, where it stands, its edges, and after a change why each ended; none where nothing
    changed.
    """
    state = document.get("state") or document.get("new_state")
    if state is None:
        yield "nothing that it is joined to has changed since; no new version"
        return

    head = (
        f"{state['topic']}, version {state['version']}, {_validity(state)}, confidence "
        f"{state['confidence']:g}"
    )
    yield bold(head)
    yield state["content"]
    yield dim(f"id {state['id']}")

    if document.get("edges"):
        yield list_records(document["edges"], _EDGE)
    if "reasons" in document:
        yield "\n".join([*document["reasons"], f"act {document['act']}"])


def show_history(document: Document) -> View:
    """The versions as a table."""
    states = []
    for state in document["states"]:
        states.append(
            {
                **state,
                "holds": "now" if state["id"] == document.get("holds") else "",
            }
        )

    yield list_records(
        states,
        "version since=valid_from until=valid_until holds who=act.who why=act.why content",
    )


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

    lines = []
    for conflict in document["conflicts"]:
        lines.append(f"excludes {conflict['old']}: {conflict['outcome']}, {conflict['why']}")

    yield "\n".join(lines) or "no conflict"


def show_conflicts(document: Document) -> View:
    """The two facts of each conflict, and which of them lost."""
    losers = {"new": "old", "old": "new"}

    rows = []
    for conflict in document["conflicts"]:
        rows.append(
            {
                **conflict,
                "new": _say_claim(conflict["claim"]),
                "old": _say_claim(conflict["against"]),
                "lost": losers.get(conflict["outcome"], conflict["outcome"]),
            }
        )

    yield list_records(rows, "conflict=id new_fact=new old_fact=old lost why=reason")


def _say_claim(claim: Document) -> str:
    if claim:
        return "{subject} {relation} {object}".format(**claim)
    return ""


def show_consolidation(document: Document) -> View:
    """What was written at each level, and what was recorded too late to count."""
    levels = []
    for level in document["levels"]:
        levels.append(
            {
                **level,
                "written": len(level["written"]),
            }
        )

    yield list_records(levels, "level=name written unchanged sources erased damaged")
    late = levels[0]["recorded_later"]
    if late:
        yield (
            f"{late:,} version{'s'[: late != 1]} that began before {day(levels[0]['as_of'])} "
            "were recorded later and do not count; give a later --as-of"
        )


def show_certificate(document: Document) -> View:
    """What was erased, and the commands that remove what is left."""
    erased = f"{len(document['states'])} versions ({len(document['derived'])} derived from others)"
    yield f"certificate {document['id']}"
    yield (
        f"erased {erased}, {len(document['edges'])} edges; blanked {document['audit_blanked']} "
        f"records, redacted {document['redacted']} rows and {len(document['masked_files'])} files"
    )

    if document["complete"]:
        yield "complete: a search of every row and every file of the home finds no copy"
    else:
        yield "not complete; these commands remove the rest:"

    yield from document["commands"]


def show_learning(document: Document) -> View:
    """What was counted and which edges were drawn."""
    accesses = document["accesses"]
    waiting = document["left"]
    yield f"{accesses['reads']:,} readings of {accesses['states']:,} states"
    sentence = (
        f"{document['topics']:,} changed topics looked at, {len(document['edges']):,} edges drawn"
    )
    yield sentence + (f"; {waiting:,} wait for the next time" if waiting else "")

    if document["edges"]:
        yield list_records(document["edges"], _EDGE)


def show_recalled(document: Document) -> View:
    """A context, with the tokens of its parts or what its plan looked for in vain."""
    yield document["text"] or "memory holds nothing about that"
    if "steps" in document:
        steps = ", ".join(document["steps"])
        missing = ", ".join(document["missing"]) or "nothing"
        yield dim(
            f"intent: {document['intent']}; steps: {steps}; found nothing for: {missing}",
        )
    else:
        parts = ", ".join(
            f"{name} {tokens:,}" for name, tokens in document["tokens_by_part"].items()
        )
        token_text = f"{document['tokens']:,} of {document['max_tokens']:,} tokens ({parts})"
        yield dim(
            f"{token_text}; {document['buffer']:,} kept free; intent: {document['intent']}",
        )


def show_search(document: Document) -> View:
    """The topics found, and what edges join to them."""
    if document["results"]:
        yield list_records(document["results"], _RESULT)
    else:
        yield "nothing is near to that"

    for match in document.get("matches", ()):
        for related in match["related_states"]:
            topic = match["state"]["topic"]
            relation = related["way"][-1]["type"]
            related_topic = related["state"]["topic"]
            yield f"{topic} --{relation}-- {related_topic}, strength {related['strength']:.2f}"


def show_working_set(document: Document) -> View:
    """The versions of the working set, or the results of the question."""
    if "results" in document:
        yield list_records(document["results"], _RESULT)
        return

    report = document["report"]
    related = [edge["state"] for edge in document["related"]]
    yield list_records([*document["history"], *related], _VERSION)
    yield (
        f"{report['items']} versions of {report['topics']} topics and {report['edges']} edges "
        "are in the working set"
    )


VIEWS: dict[str, Callable[..., Iterable[RenderableType]]] = {
    "query": show_answer,
    "answer": show_written_answer,
    "explain": show_explanation,
    "feedback": show_feedback,
    "queries": show_query_report,
    "standing.add": _list_view(
        "added",
        "id question must_cite=requires",
        "Nothing was added: all of these stand already.",
    ),
    "standing.list": _list_view(
        "questions",
        "id question must_cite=requires",
        "There are no standing questions.",
    ),
    "standing.remove": _line_view(lambda document: f"dropped: {document['removed']['question']}"),
    "standing.run": show_standing_answers,
    "graph.neighbours": show_subgraph,
    "graph.subgraph": show_subgraph,
    "graph.topics": _list_view(
        "topics",
        "topic=id level name members=size",
        footer="{listed} of {total} topics",
    ),
    "overview": show_overview,
    "compare": show_comparison,
    "diff": show_difference,
    "log": show_log,
    "blame": show_blame,
    "entity.edits": _list_view(
        "edits",
        "edit=_key entity state who approved_by says=fields why",
        "No entity was edited.",
    ),
    "entity.approve": show_edit,
    "entity.undo": show_edit,
    "entity.update": show_edit,
    "snapshots": _list_view(
        "snapshots",
        "serves snapshot as_of=created_at nodes edges pins problem",
        "Nothing has been published; run `hades build`.",
    ),
    "rollback": show_rollback,
    "promote": show_rollback,
    "discard": _line_view(lambda document: f"{document['discarded']} was removed"),
    "memory.add": show_added,
    "memory.latest": show_state,
    "memory.at": show_state,
    "memory.promote": show_state,
    "memory.reconsolidate": show_state,
    "memory.history": show_history,
    "memory.topics": _line_view(
        lambda document: "\n".join(document["topics"]) or "memory is empty"
    ),
    "memory.link": _list_view("edge", _EDGE),
    "memory.close": _list_view("edge", _EDGE),
    "memory.edges": _list_view("edges", _EDGE),
    "memory.why": _line_view(
        "{current_answer}\nreasons: {reasoning}\nbefore: {historical_context}".format_map
    ),
    "memory.when": show_when,
    "memory.change": show_state,
    "memory.fact": show_fact,
    "memory.conflicts": show_conflicts,
    "memory.resolve": _line_view(lambda document: f"the {document['outcome']} fact is kept"),
    "memory.undo": _line_view(
        lambda document: f"undid {len(document['undid'])} steps\nact {document['act']}"
    ),
    "memory.audit": _list_view("acts", "act=id when=at what=action subject who why"),
    "memory.erase": show_certificate,
    "memory.compact": _line_view(
        lambda document: (
            "No deleted row is left in the store's files."
            if document["compacted"]
            else "The store is in use; try again."
        )
    ),
    "memory.check": _line_view(
        lambda document: "\n".join(document["problems"]) or "memory is consistent"
    ),
    "memory.rate": _line_view(
        lambda document: "{topic}, version {version}: importance {importance_score:.2f}".format(
            **document["state"]
        )
    ),
    "memory.trust": _line_view(lambda document: document["state"]["content"]),
    "memory.learn": show_learning,
    "memory.groups": _list_view(
        "groups",
        "group=name topics edges strength",
        "no topics are joined by edges; `hades memory learn` discovers some",
    ),
    "memory.recall": show_recalled,
    "memory.context": show_recalled,
    "memory.search": show_search,
    "memory.working": show_working_set,
    "memory.consolidate": show_consolidation,
    "memory.drill_down": _list_view("made_of", _VERSION),
}
