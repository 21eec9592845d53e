"""Corpus at a glance; query report."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, zip_longest
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
_QUESTION_OF_TYPE = {
    "code_symbol": "What does {name} do?",
    "paper": "What is {name} about?",
    "person": "Who is {name}?",
}
_OTHERWISE = "What is {name}?"
_PLAIN = re.compile(r"[\w][\w .,'&/():+-]{2,58}[\w)]$")


def describe_corpus(store: GraphStore) -> dict[str, Any]:
    """Rows, documents by format, names that stand out, and example questions made from them."""
    counts = store.counts()
    entities = [
        row
        for row in scan_rows(
            store,
            "entities",
            columns=_ENTITY_COLUMNS,
        )
        if _can_be_named(row["name"])
    ]
    entities.sort(key=lambda row: (-row["frequency"], row["name"]))
    documents = list(
        scan_rows(
            store,
            "documents",
            columns=["source", "mime"],
        )
    )
    topics = _topics(store)

    for topic in topics:
        del topic["evidence"]

    names = [
        {
            "id": f"entities/{row['_key']}",
            "name": row["name"],
            "type": row["type"],
            "summary": row["summary"],
            "mentions": row["frequency"],
        }
        for row in entities[:MAX_NAMES]
    ]
    questions = [*ask_headings(store), *example_questions(store, entities)]
    return {
        "counts": {name: count for name, count in counts.items() if count},
        "formats": dict(Counter(row["mime"] for row in documents).most_common()),
        "sources": dict(Counter(row["source"] for row in documents).most_common()),
        "topics": topics,
        "names": names,
        "questions": questions[:MAX_QUESTIONS],
    }


_WHOLE = (
    r"(?:here|this|it|(?:this|the|these|my) "
    r"(?:corpus|collection|folder|documents?|docs|files|knowledge base))"
)
_ASKS_OVERVIEW = re.compile(
    rf"\W*(?:what(?:'s| is| are)? (?:in|inside) {_WHOLE}|what is {_WHOLE} (?:all )?about"
    r"|what can I ask(?: (?:here|you|about))?"
    rf"|(?:give me |show me |show )?an? overview(?: of {_WHOLE})?|(?:summari[sz]e|describe) "
    rf"{_WHOLE}"
    r"|what (?:topics|subjects) (?:are (?:there|here)|does (?:it|this) cover))\W*",
    re.IGNORECASE,
)


def asks_overview(question: str) -> bool:
    """Whether a question is about all of the corpus: "what is in here?"."""
    return _ASKS_OVERVIEW.fullmatch(question) is not None


def summarise_corpus(
    store: RowStore,
) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]]:
    """The largest topics with their counts, each with the sentence that stands for it as its
    source.
    """
    sources = []

    sentences = []
    for number, topic in enumerate(_topics(store)[:MAX_QUESTIONS], 1):
        quote = topic["evidence"]
        sources.append(
            AnswerSource(
                number=number,
                kind="passage",
                rank=number,
                id=f"doc_chunks/{quote['chunk']}",
                title=topic["name"],
                document=topic["documents"][0],
                span=tuple(quote["span"]),
                text=quote["text"],
                markdown=quote["text"],
            )
        )
        if topic["parts"]:
            parts = f"{', '.join(topic['parts'])}: "
        else:
            parts = ""

        sentence = (
            f"{parts}{topic['members']:,} names and passages in {', '.join(topic['documents'])}"
        )
        quotation = {
            "heading": topic["name"],
            "kind": BlockKind.PARAGRAPH,
            "quote": quote["text"],
        }
        sentences.append(
            AnswerSentence(
                text=sentence,
                citations=(number,),
                **quotation,
            )
        )

    return tuple(sources), tuple(sentences)


def _topics(store: RowStore) -> list[dict[str, Any]]:
    """Topics, largest first, notes on releases last; `Settings: Cache; Limits` is a part of
    Settings.
    """
    origins = {
        f"documents/{row['_key']}": row["origin"]
        for row in scan_rows(store, "documents", columns=_ORIGIN)
    }
    rows = [
        row
        for row in scan_rows(store, "clusters", columns=_TOPIC_COLUMNS)
        if row["level"] == 1 and row["name"]
    ]

    topics: dict[str, dict[str, Any]] = {}
    for row in sorted(
        rows,
        key=lambda cluster: (-cluster["size"], cluster["name"]),
    ):
        quotes = []
        for quote in orjson.loads(row["metadata"]).get("evidence", ()):
            if quote["doc"] in origins:
                quotes.append(quote)

        if not quotes:
            continue

        name, _, parts = row["name"].partition(": ")
        topic = topics.setdefault(
            name,
            {
                "name": name,
                "parts": [],
                "members": 0,
                "documents": [],
                "evidence": quotes[0],
            },
        )
        topic["members"] += row["size"]
        added = {
            "parts": filter(None, parts.split("; ")),
            "documents": (origins[quote["doc"]] for quote in quotes),
        }

        for column, names in added.items():
            topic[column] = list(dict.fromkeys([*topic[column], *names]))[:_LISTED]

    largest_first = sorted(
        topics.values(),
        key=lambda topic: (-topic["members"], topic["name"]),
    )
    return sorted(
        largest_first,
        key=lambda topic: tells_release((topic["name"], *topic["parts"])),
    )


_LISTED = 4  # parts and documents named of a topic
_ORIGIN, _TOPIC_COLUMNS = ["_key", "origin"], ["level", "name", "size", "metadata"]
_ENTITY_COLUMNS = ["_key", "name", "type", "summary", "frequency", "cluster_id", "vector_of"]
_ASKING = re.compile(
    r"(?:how|what|why|when|where|which|who|can|do|does|is|are|should)\b.{8,70}\?$",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"(?:how to )?([A-Z]?[a-z]+ing|how to [a-z]+)((?: [\w`.'/()-]+){1,7})$",
    re.IGNORECASE,
)
_NO_TASK = frozenset(
    (
        "breaking",
        "contributing",
        "during",
        "existing",
        "following",
        "licensing",
        "missing",
        "remaining",
    )
)
_NO_SUBJECT = frozenset(
    ("authors", "changelog", "contributing", "history", "index", "license", "readme", "todo")
)
_SHORTEST, _LONGEST = 25, 250  # words of a section that can answer a question


def ask_headings(store: RowStore) -> list[str]:
    """Headings that ask something or name a task, as questions: one a document, those of the
    longest sections first.

    Sections that are too short to answer, and pages of versions and dates, are left out.
    """
    best: dict[str, tuple[int, str]] = {}
    for row in scan_rows(
        store,
        "doc_chunks",
        columns=["document", "headings", "kind", "text"],
    ):
        heading = (row["headings"] or [""])[-1].strip("`\"' ")
        size = len(row["text"].split())
        question = _heading_question(heading)

        if question and row["kind"] in ("", "prose", "passage") and _SHORTEST <= size <= _LONGEST:
            best[row["document"]] = max(best.get(row["document"], (0, "")), (size, question))

    longest = sorted(best.values(), key=lambda pair: (-pair[0], pair[1]))
    return _ask_for_tasks(
        store,
        list(dict.fromkeys(question for _, question in longest))[:MAX_QUESTIONS],
    )


def _heading_question(heading: str) -> str:
    """`How to set up a proxy` -> `How do I set up a proxy?`; "" for a heading that names no
    task.
    """
    if _ASKING.match(heading):
        return heading

    task = _TASK.match(heading)
    if task is None or task[1].casefold() in _NO_TASK:
        return ""

    plain = heading.replace("`", "")
    if plain.casefold().startswith("how to "):
        return f"How do I {plain[7:]}?"

    return f"How does {plain[0].lower()}{plain[1:]} work?"


_WORKS = re.compile(r"How does (\w+)ing (?!of\b)(.+) work\?$")


def _ask_for_tasks(store: RowStore, questions: Sequence[str]) -> list[str]:
    """`How does setting up a proxy work?` -> `How do I set up a proxy?`, by the form that the
    corpus writes.
    """
    verbs: dict[str, set[str]] = {}
    for match in filter(None, map(_WORKS.match, questions)):
        stem = match[1]
        has_double = stem[-1:] == stem[-2:-1]
        verbs[stem] = {stem, f"{stem}e", stem[:-1] if has_double else stem}

    verb_counts: Counter[str] = Counter()
    if verbs:
        verb_pattern = re.compile(rf"\b({'|'.join(sorted(set().union(*verbs.values())))})\b")
        for row in scan_rows(store, "doc_chunks", columns=["text"]):
            verb_counts.update(verb_pattern.findall(row["text"]))

    def ask(match: re.Match[str]) -> str:
        verb = max(sorted(verbs[match[1]]), key=lambda verb: verb_counts[verb])
        if verb_counts[verb]:
            return f"How do I {verb} {match[2]}?"
        return match[0]

    return [_WORKS.sub(ask, question) for question in questions]


def example_questions(
    store: RowStore,
    entities: Sequence[dict[str, Any]],
) -> list[str]:
    """One question about the most mentioned thing of each large topic, and one about two things
    that are joined.
    """
    by_topic: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in entities:
        by_topic[row["cluster_id"] or ""].append(row)

    largest = sorted(
        by_topic.values(),
        key=lambda rows: (-len(rows), rows[0]["name"]),
    )
    # Things that a document is about come first: a question about them has an answer.
    best = [
        sorted(
            rows,
            key=lambda row: (row["vector_of"] != "document", -row["frequency"]),
        )
        for rows in largest
    ]
    in_rounds = zip_longest(*(rows[:MAX_QUESTIONS] for rows in best))
    picked = list(filter(None, chain.from_iterable(in_rounds)))
    questions = [
        _QUESTION_OF_TYPE.get(row["type"], _OTHERWISE).format(name=row["name"])
        for row in picked[: MAX_QUESTIONS - 1]
    ]
    joined = _ask_relation(
        store,
        {f"entities/{row['_key']}": row["name"] for row in picked[:200]},
    )
    return list(dict.fromkeys([*questions, *joined]))[:MAX_QUESTIONS]


def _ask_relation(store: RowStore, names: dict[str, str]) -> list[str]:
    best: tuple[float, str] | None = None
    for row in scan_rows(
        store,
        "relations",
        columns=["_from", "_to", "weight", "type"],
    ):
        if row["_from"] in names and row["_to"] in names and row["type"] != "coref":
            question = f"How is {names[row['_from']]} related to {names[row['_to']]}?"
            best = max(best or (0.0, ""), (row["weight"] or 0.0, question))

    return [best[1]] if best and best[1] else []


def _can_be_named(name: str) -> bool:
    is_plain = _PLAIN.match(name) is not None and any(map(str.isalpha, name))
    return is_plain and name.casefold() not in _NO_SUBJECT and (len(name) > 4 or not name.islower())


NEWEST = 50  # questions listed one by one
_STAGE_COLUMNS = ("ms", "reads", "coverage", "dedupe_rate", "capped", "early_stop")


def write_dashboard(
    store: RowStore,
    path: Path,
    since: datetime | None = None,
) -> dict[str, Any]:
    """Write the page over `query_logs` and return its figures (B54); questions before `since` are
    left out.
    """
    queries = read_asked(store, since)
    figures = {
        **summary(queries),
        "context": count_context(store, queries),
    }
    about = {str(reason): reason.about for reason in Reason}

    timing = []
    for name, stage in figures["stages"].items():
        timing.append(Bar(name, stage["ms"] / 1000))

    reasons = []
    for code, count in figures["reasons"].items():
        reasons.append((code, count, about.get(code, "")))

    page.write(
        path,
        "queries.html",
        "Questions",
        figures=figures,
        since=None if since is None else iso(since),
        timing=timing,
        reasons=reasons,
        newest=list(map(_write_row, queries[:NEWEST])),
    )
    return {"path": str(path), **figures}


def _write_row(query: dict[str, Any]) -> tuple[Any, ...]:
    """A question as a row of the page."""
    moment = iso(query["at"])[:19]
    ms = f"{query['ms']:.1f}"
    reasons = ", ".join(query["reasons"])
    return moment, query["query"], query["recipe"], ms, query["reads"], reasons


def read_asked(store: RowStore, since: datetime | None = None) -> list[dict[str, Any]]:
    """The log, newest first, parsed: its columns, those of `telemetry`, and the keys of the
    `passages` shown.
    """
    where = [] if since is None else [Term("at", ">=", since)]
    columns = ["_key", "query", "recipe", "at", "reasons", "telemetry", "conveyance", "results"]
    rows = list(
        scan_rows(
            store,
            "query_logs",
            where=where,
            columns=columns,
        )
    )

    for row in rows:
        passages = orjson.loads(row["results"]).get("passages", ())
        row |= orjson.loads(row["telemetry"])
        row |= {
            "conveyance": orjson.loads(row["conveyance"]),
            "reasons": row["reasons"] or (),
        }
        row["passages"] = [passage["id"].partition("/")[2] for passage in passages]

    return sorted(
        rows,
        key=lambda row: (row["at"], row["_key"]),
        reverse=True,
    )


def count_context(
    store: RowStore,
    queries: Sequence[dict[str, Any]],
) -> dict[str, int]:
    """Tokens of the prompts of these questions, and of the files that their passages come from,
    read whole.
    """
    document_of: dict[str, str] = {}
    tokens: Counter[str] = Counter()

    if any(query["passages"] for query in queries):
        for row in scan_rows(
            store,
            "doc_chunks",
            columns=["_key", "document", "token_count"],
        ):
            document_of[row["_key"]] = row["document"]
            tokens[row["document"]] += row["token_count"]

    figures = {
        "returned_tokens": 0,
        "file_tokens": 0,
        "files": 0,
    }
    for query in queries:
        documents = set()
        for key in query["passages"]:
            if key in document_of:
                documents.add(document_of[key])

        figures["returned_tokens"] += query.get("counters", {}).get("prompt_tokens", 0)
        figures["file_tokens"] += sum(tokens[document] for document in documents)
        figures["files"] += len(documents)

    return figures


def summary(queries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the page: latency, reads, reasons, stages, and W * R * H against T by
    recipe.
    """
    stages = defaultdict(list)
    recipes = defaultdict(list)

    reasons: Counter[str] = Counter()
    for query in queries:
        recipes[query["recipe"]].append(query)
        reasons.update(query["reasons"])
        for stage in query["stages"]:
            stages[stage["name"]].append(stage)

    return {
        "questions": len(queries),
        "ms": _spread([float(query["ms"]) for query in queries]),
        "reads": _spread([float(query["reads"]) for query in queries]),
        "reasons": dict(sorted(reasons.items())),
        "stages": {name: _mean_columns(rows) for name, rows in stages.items()},
        "recipes": {name: _recipe(rows) for name, rows in sorted(recipes.items())},
    }


def _mean_columns(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    means = {}
    for name in _STAGE_COLUMNS:
        means[name] = fmean(float(row[name]) for row in rows)

    return means


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {
            "mean": 0.0,
            "p50": 0.0,
            "p95": 0.0,
            "max": 0.0,
        }

    if len(values) > 1:
        cuts = quantiles(
            values,
            n=20,
            method="inclusive",
        )
    else:
        cuts = [values[0]] * 19

    return {
        "mean": fmean(values),
        "p50": cuts[9],
        "p95": cuts[18],
        "max": max(values),
    }


def _recipe(queries: Sequence[dict[str, Any]]) -> dict[str, float]:
    parts = [query["conveyance"] for query in queries]
    times = [float(query["ms"]) for query in queries]
    return {
        "questions": float(len(queries)),
        "p95_ms": _spread(times)["p95"],
        "WRH": fmean(part["W"] * part["R"] * part["H"] for part in parts),
        "T": fmean(part["T"] for part in parts),
        "Ctx": fmean(part["Ctx"]["value"] for part in parts),
        "C": fmean(part["C"] for part in parts),
    }
