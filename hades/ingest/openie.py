"""Triples through a language model, for those who have one: estimated first, capped, asked once per text.

Without an endpoint nothing here runs and nothing is lost: names and links come from the text itself. What the model
read is kept by the hash of the text, so a second run costs nothing, and it goes when no chunk holds that text any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hades.ingest.manifest import as_table
from hades.ingest.report import Progress, silent
from hades.ports.store import GraphStore, RowStore
from hades.ports.text import LanguageModel, Tokenizer
from schemas.ids import content_key, sha256_text
from schemas.record import canonical_json as canonical

MAX_ANSWER_TOKENS = 1_024
COMMIT_EVERY = 16
PROMPT = """Read the passage. List the named entities and the facts it states.
Answer with one JSON object and nothing else:
{{"entities": ["..."], "triples": [["subject", "relation", "object"], ...]}}
Use names as they are written. Replace pronouns by the names they stand for.

Passage: {passage}
"""


@dataclass(frozen=True)
class Estimate:
    """What asking would cost, before anything is asked."""

    calls: int
    prompt_tokens: int
    completion_tokens_at_most: int
    already_known: int

    def as_dict(self) -> dict[str, int]:
        """The estimate as JSON."""
        return dict(vars(self))


@dataclass
class ExtractionReport:
    """What asking did cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unusable: int = 0
    not_asked: int = 0

    def as_dict(self) -> dict[str, int]:
        """The bill as JSON."""
        return dict(vars(self))


def estimate(store: RowStore, tokenizer: Tokenizer, model: str) -> Estimate:
    """Calls and tokens for the texts the model has not read yet."""
    waiting = list(_waiting(store, model))
    tokens = sum(tokenizer.count_many([PROMPT.format(passage=text) for _, text in waiting]))
    known = store.count("extractions")
    return Estimate(len(waiting), tokens, len(waiting) * MAX_ANSWER_TOKENS, known)


def extract(store: GraphStore, model: LanguageModel, max_calls: int, progress: Progress = silent) -> ExtractionReport:
    """Ask for each text not read yet, in key order, never more than `max_calls` times; every few answers are kept."""
    done = ExtractionReport()
    waiting = list(_waiting(store, model.model))
    done.not_asked = max(0, len(waiting) - max_calls)
    kept: list[dict[str, Any]] = []
    for digest, text in waiting[:max_calls]:
        answer = model.complete(PROMPT.format(passage=text), max_tokens=MAX_ANSWER_TOKENS)
        names, triples, problem = parse(answer.text)
        done.calls += 1
        done.prompt_tokens += answer.prompt_tokens
        done.completion_tokens += answer.completion_tokens
        done.unusable += bool(problem)
        kept.append(
            {
                "_key": _key(model.model, digest),
                "sha256": digest,
                "model": model.model,
                "names": canonical({"names": names}),
                "triples": canonical({"triples": triples}),
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": answer.completion_tokens,
                "problem": problem,
            }
        )
        if len(kept) == COMMIT_EVERY or done.calls == min(max_calls, len(waiting)):
            store.upsert("extractions", as_table("extractions", kept))
            kept = []
        progress("openie", done.calls, min(max_calls, len(waiting)))
    return done


def parse(answer: str) -> tuple[list[str], list[list[str]], str]:
    """Names and triples of an answer, and what is wrong with it; a fenced or prefaced object is still found."""
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end <= start:
        return [], [], "no JSON object in the answer"
    try:
        read = json.loads(answer[start : end + 1])
    except ValueError as error:
        return [], [], f"not JSON: {error}"
    if not isinstance(read, dict):
        return [], [], "not a JSON object"
    names = [name.strip() for name in read.get("entities") or [] if isinstance(name, str) and name.strip()]
    triples = [
        [part.strip() for part in triple]
        for triple in read.get("triples") or []
        if isinstance(triple, list)
        and len(triple) == 3
        and all(isinstance(part, str) and part.strip() for part in triple)
    ]
    return names, triples, ""


def with_extractions(store: RowStore, documents: pa.Table, chunks: pa.Table) -> pa.Table:
    """Documents whose facts also hold what a language model read in their chunks."""
    if not store.count("extractions"):
        return documents
    read = {
        row["sha256"]: row
        for batch in store.scan("extractions", columns=["sha256", "names", "triples"])
        for row in batch.to_pylist()
    }
    extra: dict[str, dict[str, list[Any]]] = {}
    for document, text in zip(chunks.column("document").to_pylist(), chunks.column("text").to_pylist(), strict=True):
        row = read.get(sha256_text(text))
        if row:
            held = extra.setdefault(document.partition("/")[2], {"names": [], "triples": []})
            held["names"] += [[name, None] for name in json.loads(row["names"]).get("names", ())]
            held["triples"] += json.loads(row["triples"]).get("triples", ())
    facts = []
    for key, text in zip(documents.column("_key").to_pylist(), documents.column("facts").to_pylist(), strict=True):
        more = extra.get(key)
        if more:
            held = json.loads(text)
            text = canonical({**held, **{name: [*held.get(name, []), *values] for name, values in more.items()}})
        facts.append(text)
    return documents.set_column(documents.schema.get_field_index("facts"), "facts", pa.array(facts, pa.string()))


def remove_unused(store: RowStore) -> int:
    """Drop what was read in texts that no chunk holds any more; how many."""
    if not store.count("extractions"):
        return 0
    held = {sha256_text(text) for text in _texts(store)}
    stale = [
        row["_key"]
        for batch in store.scan("extractions", columns=["sha256"])
        for row in batch.to_pylist()
        if row["sha256"] not in held
    ]
    return store.delete("extractions", keys=stale)


def _waiting(store: RowStore, model: str) -> Iterator[tuple[str, str]]:
    known = {key for batch in store.scan("extractions", columns=["_key"]) for key in batch.column("_key").to_pylist()}
    for text in _texts(store):
        digest = sha256_text(text)
        key = _key(model, digest)
        if key not in known:
            known.add(key)
            yield digest, text


def _texts(store: RowStore) -> Iterator[str]:
    for batch in store.scan("doc_chunks", columns=["text"]):
        yield from batch.column("text").to_pylist()


def _key(model: str, digest: str) -> str:
    return content_key("x", model, digest)
