"""Corpus at a glance; query report."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import orjson

from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from hades.reports import page
from hades.reports.page import Bar
from hades.retrieval.ranking.default_ranking import tells_release
from hades.text.blocks import BlockKind
from schemas.answer import AnswerSentence, AnswerSource
from schemas.ids import iso
from schemas.plan import Reason

MAX_QUESTIONS, MAX_NAMES = 6, 24
_ASKED = {"code_symbol": "What does {name} do?", "paper": "What is {name} about?", "person": "Who is {name}?"}
_OTHERWISE = "What is {name}?"
_PLAIN = re.compile(r"[\w][\w .,'&/():+-]{2,58}[\w)]$")


def describe_corpus(store: GraphStore) -> dict[str, Any]:
    """Rows, documents by format, names that stand out, and example questions made from them."""
    counts = store.counts()
    entities = [row for row in scan_rows(store, "entities", columns=_ENTITY_COLUMNS) if _can_be_named(row["name"])]
    entities.sort(key=lambda row: (-row["frequency"], row["name"]))
    documents = list(scan_rows(store, "documents", columns=["source", "mime"]))
    return {
        "counts": {name: rows for name, rows in counts.items() if rows},
        "formats": dict(Counter(row["mime"] for row in documents).most_common()),
        "sources": dict(Counter(row["source"] for row in documents).most_common()),
        "topics": [{name: one[name] for name in ("name", "parts", "members", "documents")} for one in _topics(store)],
        "names": [{"id": f"entities/{row['_key']}", "name": row["name"], "type": row["type"],
                   "summary": row["summary"], "mentions": row["frequency"]} for row in entities[:MAX_NAMES]],
        "questions": [*ask_headings(store), *example_questions(store, entities)][:MAX_QUESTIONS],
    }  # fmt: skip


_WHOLE = r"(?:here|this|it|(?:this|the|these|my) (?:corpus|collection|folder|documents?|docs|files|knowledge base))"
_ASKS_OVERVIEW = re.compile(
    rf"\W*(?:what(?:'s| is| are)? (?:in|inside) {_WHOLE}|what is {_WHOLE} (?:all )?about"
    r"|what can I ask(?: (?:here|you|about))?"
    rf"|(?:give me |show me |show )?an? overview(?: of {_WHOLE})?|(?:summari[sz]e|describe) {_WHOLE}"
    r"|what (?:topics|subjects) (?:are (?:there|here)|does (?:it|this) cover))\W*",
    re.IGNORECASE,
)


def asks_overview(question: str) -> bool:
    """Whether a question is about all of the corpus: "what is in here?"."""
    return _ASKS_OVERVIEW.fullmatch(question) is not None


def summarise_corpus(store: RowStore) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]]:
    """The largest topics with their counts, each with the sentence that stands for it as its source."""
    sources, sentences = [], []
    for number, topic in enumerate(_topics(store)[:MAX_QUESTIONS], 1):
        quote = topic["evidence"]
        sources.append(
            AnswerSource(
                number=number, kind="passage", rank=number, id=f"doc_chunks/{quote['chunk']}", title=topic["name"],
                document=topic["documents"][0], span=tuple(quote["span"]), text=quote["text"], markdown=quote["text"],
            )
        )  # fmt: skip
        parts = f"{', '.join(topic['parts'])}: " if topic["parts"] else ""
        told = f"{parts}{topic['members']:,} names and passages in {', '.join(topic['documents'])}"
        shown = {"heading": topic["name"], "kind": BlockKind.PARAGRAPH, "quote": quote["text"]}
        sentences.append(AnswerSentence(text=told, citations=(number,), **shown))
    return tuple(sources), tuple(sentences)


def _topics(store: RowStore) -> list[dict[str, Any]]:
    """Topics, largest first, notes on releases last; `Settings: Cache; Limits` is a part of Settings."""
    origins = {f"documents/{row['_key']}": row["origin"] for row in scan_rows(store, "documents", columns=_ORIGIN)}
    rows = [row for row in scan_rows(store, "clusters", columns=_TOPIC_COLUMNS) if row["level"] == 1 and row["name"]]
    found: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda one: (-one["size"], one["name"])):
        quotes = [one for one in orjson.loads(row["metadata"]).get("evidence", ()) if one["doc"] in origins]
        if quotes:
            name, _, parts = row["name"].partition(": ")
            topic = found.setdefault(
                name, {"name": name, "parts": [], "members": 0, "documents": [], "evidence": quotes[0]}
            )
            topic["members"] += row["size"]
            more = {"parts": filter(None, parts.split("; ")), "documents": (origins[one["doc"]] for one in quotes)}
            topic |= {name: list(dict.fromkeys([*topic[name], *new]))[:_LISTED] for name, new in more.items()}
    return sorted(
        found.values(), key=lambda one: (tells_release((one["name"], *one["parts"])), -one["members"], one["name"])
    )


_LISTED = 4  # parts and documents named of a topic
_ORIGIN, _TOPIC_COLUMNS = ["_key", "origin"], ["level", "name", "size", "metadata"]
_ENTITY_COLUMNS = ["_key", "name", "type", "summary", "frequency", "cluster_id", "vector_of"]
_ASKING = re.compile(r"(?:how|what|why|when|where|which|who|can|do|does|is|are|should)\b.{8,70}\?$", re.IGNORECASE)
_TASK = re.compile(r"(?:how to )?([A-Z]?[a-z]+ing|how to [a-z]+)((?: [\w`.'/()-]+){1,7})$", re.IGNORECASE)
_NO_TASK = frozenset(
    ("breaking", "contributing", "during", "existing", "following", "licensing", "missing", "remaining")
)
_NO_SUBJECT = frozenset(("authors", "changelog", "contributing", "history", "index", "license", "readme", "todo"))
_SHORTEST, _LONGEST = 25, 250  # words of a section that can answer a question


def ask_headings(store: RowStore) -> list[str]:
    """Headings that ask something or name a task, as questions: one a document, those of the longest sections first.

    Sections that are too short to answer, and pages of versions and dates, are left out.
    """
    best: dict[str, tuple[int, str]] = {}
    for row in scan_rows(store, "doc_chunks", columns=["document", "headings", "kind", "text"]):
        heading = (row["headings"] or [""])[-1].strip("`\"' ")
        size = len(row["text"].split())
        asked = _heading_question(heading)
        if asked and row["kind"] in ("", "prose", "passage") and _SHORTEST <= size <= _LONGEST:
            best[row["document"]] = max(best.get(row["document"], (0, "")), (size, asked))
    longest = sorted(best.values(), key=lambda one: (-one[0], one[1]))
    return _ask_for_tasks(store, list(dict.fromkeys(asked for _, asked in longest))[:MAX_QUESTIONS])


def _heading_question(heading: str) -> str:
    """`How to set up a proxy` -> `How do I set up a proxy?`; "" for a heading that names no task."""
    if _ASKING.match(heading):
        return heading
    found = _TASK.match(heading)
    if found is None or found[1].casefold() in _NO_TASK:
        return ""
    plain = heading.replace("`", "")
    if plain.casefold().startswith("how to "):
        return f"How do I {plain[7:]}?"
    return f"How does {plain[0].lower()}{plain[1:]} work?"


_WORKS = re.compile(r"How does (\w+)ing (?!of\b)(.+) work\?$")


def _ask_for_tasks(store: RowStore, questions: Sequence[str]) -> list[str]:
    """`How does setting up a proxy work?` -> `How do I set up a proxy?`, by the form that the corpus writes."""
    stems = {found[1] for one in questions if (found := _WORKS.match(one))}
    verbs = {stem: {stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem} for stem in stems}
    said: Counter[str] = Counter()
    if verbs:
        spoken = re.compile(rf"\b({'|'.join(sorted(set().union(*verbs.values())))})\b")
        for row in scan_rows(store, "doc_chunks", columns=["text"]):
            said.update(spoken.findall(row["text"]))

    def ask(found: re.Match[str]) -> str:
        verb = max(sorted(verbs[found[1]]), key=lambda one: said[one])
        return f"How do I {verb} {found[2]}?" if said[verb] else found[0]

    return [_WORKS.sub(ask, one) for one in questions]


def example_questions(store: RowStore, entities: Sequence[dict[str, Any]]) -> list[str]:
    """One question about the most mentioned thing of each large topic, and one about two things that are joined."""
    by_topic: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in entities:
        by_topic[row["cluster_id"] or ""].append(row)
    largest = sorted(by_topic.values(), key=lambda rows: (-len(rows), rows[0]["name"]))
    # Things that a document is about come first: a question about them has an answer.
    best = [sorted(rows, key=lambda row: (row["vector_of"] != "document", -row["frequency"])) for rows in largest]
    in_rounds = zip_longest(*(rows[:MAX_QUESTIONS] for rows in best))
    picked = [row for rows in in_rounds for row in rows if row is not None]
    asked = [_ASKED.get(row["type"], _OTHERWISE).format(name=row["name"]) for row in picked[: MAX_QUESTIONS - 1]]
    joined = _join(store, {f"entities/{row['_key']}": row["name"] for row in picked[:200]})
    return list(dict.fromkeys([*asked, *joined]))[:MAX_QUESTIONS]


def _join(store: RowStore, names: dict[str, str]) -> list[str]:
    best: tuple[float, str] | None = None
    for row in scan_rows(store, "relations", columns=["_from", "_to", "weight", "type"]):
        if row["_from"] in names and row["_to"] in names and row["type"] != "coref":
            asked = f"How is {names[row['_from']]} related to {names[row['_to']]}?"
            best = max(best or (0.0, ""), (row["weight"] or 0.0, asked))
    return [best[1]] if best and best[1] else []


def _can_be_named(name: str) -> bool:
    is_plain = _PLAIN.match(name) is not None and any(map(str.isalpha, name))
    return is_plain and name.casefold() not in _NO_SUBJECT and (len(name) > 4 or not name.islower())


NEWEST = 50  # questions listed one by one


def write_dashboard(store: RowStore, path: Path, since: datetime | None = None) -> dict[str, Any]:
    """Write the page over `query_logs` and return its figures (B54); questions before `since` are left out."""
    asked = read_asked(store, since)
    figures = {**summary(asked), "context": count_context(store, asked)}
    about = {str(reason): reason.about for reason in Reason}
    newest = [
        (iso(one["at"])[:19], one["query"], one["recipe"], f"{one['ms']:.1f}", one["reads"], ", ".join(one["reasons"]))
        for one in asked[:NEWEST]
    ]
    page.write(
        path,
        "queries.html",
        "Questions",
        figures=figures,
        since=None if since is None else iso(since),
        timing=[Bar(name, own["ms"] / 1000) for name, own in figures["stages"].items()],
        reasons=[(code, count, about.get(code, "")) for code, count in figures["reasons"].items()],
        newest=newest,
    )
    return {"path": str(path), **figures}


def read_asked(store: RowStore, since: datetime | None = None) -> list[dict[str, Any]]:
    """The log, newest first, parsed: its columns, those of `telemetry`, and the keys of the `passages` shown."""
    where = [] if since is None else [Term("at", ">=", since)]
    columns = ["_key", "query", "recipe", "at", "reasons", "telemetry", "conveyance", "results"]
    rows = list(scan_rows(store, "query_logs", where=where, columns=columns))
    for row in rows:
        shown = orjson.loads(row["results"]).get("passages", ())
        row |= orjson.loads(row["telemetry"])
        row |= {"conveyance": orjson.loads(row["conveyance"]), "reasons": row["reasons"] or ()}
        row["passages"] = [one["id"].partition("/")[2] for one in shown]
    return sorted(rows, key=lambda row: (row["at"], row["_key"]), reverse=True)


def count_context(store: RowStore, asked: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Tokens of the prompts of these questions, and of the files that their passages come from, read whole."""
    document_of: dict[str, str] = {}
    tokens: Counter[str] = Counter()
    if any(one["passages"] for one in asked):
        for row in scan_rows(store, "doc_chunks", columns=["_key", "document", "token_count"]):
            document_of[row["_key"]] = row["document"]
            tokens[row["document"]] += row["token_count"]
    files = [{document_of[key] for key in one["passages"] if key in document_of} for one in asked]
    return {
        "returned_tokens": sum(one.get("counters", {}).get("prompt_tokens", 0) for one in asked),
        "file_tokens": sum(tokens[document] for own in files for document in own),
        "files": sum(map(len, files)),
    }


def summary(asked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the page: latency, reads, reasons, stages, and W * R * H against T by recipe."""
    columns = ("ms", "reads", "coverage", "dedupe_rate", "capped", "early_stop")
    stages, recipes = defaultdict(list), defaultdict(list)
    for one in asked:
        recipes[one["recipe"]].append(one)
        for stage in one["stages"]:
            stages[stage["name"]].append(stage)
    return {
        "questions": len(asked),
        "ms": _spread([float(one["ms"]) for one in asked]),
        "reads": _spread([float(one["reads"]) for one in asked]),
        "reasons": dict(sorted(Counter(code for one in asked for code in one["reasons"]).items())),
        "stages": {
            name: {column: fmean(float(one[column]) for one in own) for column in columns}
            for name, own in stages.items()
        },
        "recipes": {name: _recipe(own) for name, own in sorted(recipes.items())},
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "max": 0.0}
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return {"mean": fmean(values), "p50": cuts[9], "p95": cuts[18], "max": max(values)}


def _recipe(asked: Sequence[dict[str, Any]]) -> dict[str, float]:
    parts = [one["conveyance"] for one in asked]
    return {
        "questions": float(len(asked)),
        "p95_ms": _spread([float(one["ms"]) for one in asked])["p95"],
        "WRH": fmean(part["W"] * part["R"] * part["H"] for part in parts),
        "T": fmean(part["T"] for part in parts),
        "Ctx": fmean(part["Ctx"]["value"] for part in parts),
        "C": fmean(part["C"] for part in parts),
    }
