"""The corpus at a glance: what it holds, what it speaks of most, and questions that it can answer."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from hades.ports.store import GraphStore, RowStore

MAX_QUESTIONS, MAX_NAMES = 6, 24
_ASKED = {
    "code_symbol": "What does {name} do?",
    "paper": "What is {name} about?",
    "person": "Who is {name}?",
}
_OTHERWISE = "What is {name}?"
_PLAIN = re.compile(r"[\w][\w .,'&/():+-]{2,58}[\w)]$")


def describe_corpus(store: GraphStore) -> dict[str, Any]:
    """Rows, documents by format, names that stand out, and example questions made from them."""
    counts = store.counts()
    entities = [row for row in _rows(store, "entities", _ENTITY_COLUMNS) if _can_be_named(row)]
    entities.sort(key=lambda row: (-row["frequency"], row["name"]))
    documents = list(_rows(store, "documents", ["source", "mime"]))
    return {
        "counts": {name: rows for name, rows in counts.items() if rows},
        "formats": dict(Counter(row["mime"] for row in documents).most_common()),
        "sources": dict(Counter(row["source"] for row in documents).most_common()),
        "names": [{"id": f"entities/{row['_key']}", "name": row["name"], "type": row["type"],
                   "summary": row["summary"], "mentions": row["frequency"]} for row in entities[:MAX_NAMES]],
        "questions": example_questions(store, entities),
    }  # fmt: skip


_ENTITY_COLUMNS = ["_key", "name", "type", "summary", "frequency", "cluster_id", "vector_of"]


def example_questions(store: RowStore, entities: Sequence[dict[str, Any]]) -> list[str]:
    """One question about the most mentioned thing of each large topic, and one about two things that are joined."""
    by_topic: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in entities:
        by_topic[row["cluster_id"] or ""].append(row)
    largest = sorted(by_topic.values(), key=lambda rows: (-len(rows), rows[0]["name"]))
    picked: list[dict[str, Any]] = []
    for place in range(MAX_QUESTIONS):
        picked += [_best(rows)[place] for rows in largest if place < len(_best(rows))]
    asked = [_ASKED.get(row["type"], _OTHERWISE).format(name=row["name"]) for row in picked[: MAX_QUESTIONS - 1]]
    joined = _join(store, {f"entities/{row['_key']}": row["name"] for row in picked[:200]})
    return list(dict.fromkeys([*asked, *joined]))[:MAX_QUESTIONS]


def _best(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Things that a document is about first: a question about them has an answer."""
    return sorted(rows, key=lambda row: (row["vector_of"] != "document", -row["frequency"], row["name"]))[
        :MAX_QUESTIONS
    ]


def _join(store: RowStore, names: dict[str, str]) -> list[str]:
    best: tuple[float, str] | None = None
    for row in _rows(store, "relations", ["_from", "_to", "weight", "type"]):
        if row["_from"] in names and row["_to"] in names and row["type"] != "coref":
            asked = f"How is {names[row['_from']]} related to {names[row['_to']]}?"
            best = max(best or (0.0, ""), (row["weight"] or 0.0, asked))
    return [best[1]] if best and best[1] else []


def _can_be_named(row: dict[str, Any]) -> bool:
    name = row["name"]
    return bool(_PLAIN.match(name)) and any(c.isalpha() for c in name) and (len(name) > 4 or not name.islower())


def _rows(store: RowStore, collection: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    for batch in store.scan(collection, columns=columns):
        yield from batch.to_pylist()
