"""A written answer for a person: sentences, then the sources that they cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from hades.surfaces.cli.code_lines import show_code
from hades.surfaces.cli.plain_layout import Line
from hades.text.markup import plain_text

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
