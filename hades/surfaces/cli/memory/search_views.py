"""Results of memory searches, contexts and summaries for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.surfaces.cli.memory.version_views import day, table_of

Document = Mapping[str, Any]
_SHOWN = 100  # characters of a content in a table


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
