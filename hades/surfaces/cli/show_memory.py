"""Memory for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

# Versions, edges and acts of memory for a person.


Document = Mapping[str, Any]
_SHOWN = 100  # characters of a content in a table
_IDS = ("edge", "act", "conflict", "superseded by")  # columns that people copy into another command


def show_added(document: Document) -> tuple[Text, ...]:
    """The version that was added; where another one holds now, which and why."""
    state, holds = document["state"], document.get("holds")
    lines = [Text(f"{state['topic']} is at version {state['version']}"), Text(f"id {state['id']}")]
    if holds is None:
        lines.append(Text(f"nothing holds now: it is true {_span(state)}"))
    elif holds["id"] != state["id"]:
        lines.append(Text(f"version {holds['version']} still holds now: the new one is true {_span(state)}"))
    return tuple(lines)


def show_state(document: Document) -> Iterator[RenderableType]:
    """A version with its edges."""
    yield from state_lines(document["state"])
    if document.get("edges"):
        yield edge_table(document["edges"])


def state_lines(state: Document) -> tuple[Text, ...]:
    """A version: where it stands, its content, its id."""
    head = f"{state['topic']}, version {state['version']}, {_span(state)}, confidence {state['confidence']:g}"
    return Text(head, style="bold"), Text(state["content"]), Text(f"id {state['id']}", style="dim")


def show_history(document: Document) -> tuple[Table]:
    """The versions as a table."""
    table = table_of("version", "since", "until", "holds", "who", "why", "content")
    for state in document["states"]:
        act = state["act"] or {"who": "", "why": ""}
        times = day(state["valid_from"]), day(state["valid_until"])
        mark = "now" if state["id"] == document.get("holds") else ""
        table.add_row(str(state["version"]), *times, mark, act["who"], act["why"], state["content"][:_SHOWN])
    return (table,)


def _span(state: Document) -> str:
    """When a version is true."""
    until = f" until {day(state['valid_until'])}" if state.get("valid_until") else ""
    return f"since {day(state['valid_from'])}{until}"


def show_topics(document: Document) -> tuple[Text]:
    """The names, one a line."""
    return (Text("\n".join(document["topics"]) or "memory is empty"),)


def show_edge(document: Document) -> tuple[Table]:
    """One edge."""
    return (edge_table([document["edge"]]),)


def show_edges(document: Document) -> tuple[Table]:
    """The edges as a table."""
    return (edge_table(document["edges"]),)


def edge_table(edges: Sequence[Document]) -> Table:
    """Edges with the topics they join and the time they hold."""
    table = table_of("edge", "from", "relation", "to", "true", "superseded by")
    for edge in edges:
        since, until = day(edge["valid_from"]), edge["valid_until"]
        period = f"{since} until {day(until)}" if until else f"since {since}"
        ends = (edge["source_topic"], edge["relationship_type"], edge["target_topic"])
        table.add_row(edge["id"], *ends, period, edge["superseded_by"] or "")
    return table


def show_account(document: Document) -> tuple[Text, ...]:
    """What holds, why, and what held before."""
    return (
        Text(document["current_answer"], style="bold"),
        Text(f"reasons: {document['reasoning']}"),
        Text(f"before: {document['historical_context']}", style="dim"),
    )


def show_change_of_relation(document: Document) -> tuple[RenderableType, ...]:
    """When it changed, with both edges."""
    if document["at"] is None:
        return (Text("The relation never changed."),)
    return Text(f"at {day(document['at'])}"), edge_table([document["ended"], document["began"]])


def show_change(document: Document) -> Iterator[Text]:
    """The new version and why each edge ended or stayed."""
    yield from state_lines(document["new_state"])
    yield Text("\n".join(document["reasons"]))
    yield Text(f"act {document['act']}")


def show_fact(document: Document) -> tuple[RenderableType, ...]:
    """The edges of the fact and the conflicts it met."""
    lines = [f"excludes {one['old']}: {one['outcome']}, {one['why']}" for one in document["conflicts"]]
    return edge_table(document["edges"]), Text("\n".join(lines) or "no conflict")


def show_conflicts(document: Document) -> tuple[Table]:
    """The conflicts as a table."""
    table = table_of("conflict", "claim", "outcome", "why")
    for one in document["conflicts"]:
        claim = one["claim"]
        table.add_row(
            one["id"], f"{claim['subject']} {claim['relation']} {claim['object']}", one["outcome"], one["reason"]
        )
    return (table,)


def show_resolution(document: Document) -> tuple[Text]:
    """Which fact is kept."""
    return (Text(f"the {document['outcome']} fact is kept"),)


def show_undone(document: Document) -> tuple[Text]:
    """How much was undone, and the id of the act that did it."""
    return (Text(f"undid {len(document['undid'])} steps\nact {document['act']}"),)


def show_acts(document: Document) -> tuple[Table]:
    """The acts as a table."""
    table = table_of("act", "when", "what", "who", "why")
    for act in document["acts"]:
        table.add_row(act["id"], day(act["at"]), f"{act['action']} {act['subject']}", act["who"], act["why"])
    return (table,)


def show_certificate(document: Document) -> tuple[Text]:
    """What was erased, and the commands that remove what is left."""
    derived = len(document["derived"])
    lines = [
        f"certificate {document['id']}",
        f"erased {len(document['states'])} versions ({derived} derived from others), {len(document['edges'])} edges; "
        f"blanked {document['audit_blanked']} records, redacted {document['redacted']} rows and "
        f"{len(document['masked_files'])} files",
        "complete: a search of every row and every file of the home finds no copy"
        if document["complete"]
        else "not complete; these commands remove the rest:",
        *document["commands"],
    ]
    return (Text("\n".join(lines)),)


def show_compaction(document: Document) -> tuple[Text]:
    """Whether the files were rewritten."""
    is_done = document["compacted"]
    return (Text("No deleted row is left in the store's files." if is_done else "The store is in use; try again."),)


def show_problems(document: Document) -> tuple[Text]:
    """The problems, one a line."""
    return (Text("\n".join(document["problems"]) or "memory is consistent"),)


def table_of(*columns: str) -> Table:
    """An empty table without lines."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in _IDS)
    return table


def day(moment: str | None) -> str:
    """A time as a person reads it: the day, with the time of day where there is one."""
    from datetime import datetime

    from hades.text.sentences import day as written

    return "" if moment is None else written(datetime.fromisoformat(moment))


# Ratings, trust, discovered edges, groups and planned recall for a person.


def show_rating(document: Document) -> tuple[Text]:
    """The importance that a state has now."""
    state = document["state"]
    return (Text(f"{state['topic']}, version {state['version']}: importance {state['importance_score']:.2f}"),)


def show_trust(document: Document) -> tuple[Text]:
    """How far the source is trusted now."""
    return (Text(document["state"]["content"]),)


def show_learning(document: Document) -> Iterator[RenderableType]:
    """What was counted and which edges were drawn."""
    counted = document["accesses"]
    yield Text(f"{counted['reads']:,} readings of {counted['states']:,} states")
    told = f"{document['topics']:,} changed topics looked at, {len(document['edges']):,} edges drawn"
    yield Text(told + (f"; {document['left']:,} wait for the next time" if document["left"] else ""))
    if document["edges"]:
        yield edge_table(document["edges"])


def show_groups(document: Document) -> tuple[RenderableType]:
    """The groups as a table."""
    if not document["groups"]:
        return (Text("no topics are joined by edges; `hades memory learn` discovers some"),)
    table = table_of("group", "topics", "edges", "strength")
    for one in document["groups"]:
        table.add_row(one["name"], "\n".join(one["topics"]), str(one["edges"]), f"{one['strength']:.2f}")
    return (table,)


def show_recall(document: Document) -> Iterator[RenderableType]:
    """The context, and what the plan looked for in vain."""
    yield Text(document["text"] or "memory holds nothing about that")
    steps = ", ".join(document["steps"])
    missing = ", ".join(document["missing"]) or "nothing"
    yield Text(f"intent: {document['intent']}; steps: {steps}; found nothing for: {missing}", style="dim")


def show_renewal(document: Document) -> Iterator[RenderableType]:
    """The new version, or that none was needed."""
    if document["state"] is None:
        yield Text("nothing that it is joined to has changed since; no new version")
    else:
        yield from state_lines(document["state"])


# Results of memory searches, contexts and summaries for a person.


def show_search(document: Document) -> Iterator[RenderableType]:
    """The topics found, and what edges join to them."""
    yield _results(document["results"]) if document["results"] else Text("nothing is near to that")
    for match in document.get("matches", ()):
        for one in match["related_states"]:
            near, relation, far = match["state"]["topic"], one["way"][-1]["type"], one["state"]["topic"]
            yield Text(f"{near} --{relation}-- {far}, strength {one['strength']:.2f}")


def show_context(document: Document) -> tuple[Text, ...]:
    """The context and the tokens of its parts."""
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in document["tokens_by_part"].items())
    used = f"{document['tokens']:,} of {document['max_tokens']:,} tokens ({parts})"
    told = f"{used}; {document['buffer']:,} kept free; intent: {document['intent']}"
    return Text(document["text"]), Text(told, style="dim")


def show_working_set(document: Document) -> tuple[RenderableType, ...]:
    """The versions of the working set, or the results of the question."""
    if "results" in document:
        return (_results(document["results"]),)
    report = document["report"]
    states = [*document["history"], *(one["state"] for one in document["related"])]
    told = f"{report['items']} versions of {report['topics']} topics and {report['edges']} edges are in the working set"
    return _versions(states), Text(told)


def show_levels(document: Document) -> Iterator[Text]:
    """What consolidation wrote at each level."""
    for one in document["levels"]:
        counts = f"{len(one['written'])} written, {one['unchanged']} unchanged, of {one['sources']} sources"
        told = f"{one['name']}: {counts}"
        if one.get("erased"):
            told += f", {one['erased']} erased and left out"
        if one.get("damaged"):
            told += f"; damaged, rebuilt where possible: {', '.join(one['damaged'])}"
        yield Text(told)


def show_sources(document: Document) -> tuple[Table]:
    """What a summary was made from."""
    return (_versions(document["made_of"]),)


def _results(results: Iterable[Document]) -> Table:
    table = table_of("similarity", "strength", "topic", "version", "since", "content")
    for one in results:
        state = one["state"]
        scores = (f"{one['similarity']:.3f}", f"{one['strength']:.2f}")
        table.add_row(*scores, state["topic"], str(state["version"]), day(state["valid_from"]), _short(state))
    return table


def _versions(states: Iterable[Document]) -> Table:
    table = table_of("topic", "version", "since", "content")
    for state in states:
        table.add_row(state["topic"], str(state["version"]), day(state["valid_from"]), _short(state))
    return table


def _short(state: Document) -> Text:
    told = " ".join(state["content"].split())
    return Text(told if len(told) <= _SHOWN else f"{told[: _SHOWN - 3]}...")
