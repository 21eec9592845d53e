"""What sources state outright: relations, links and order; triples that a language model reads."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import name_in_file
from hades.ingest.entities.tables import fill
from hades.ports.services import LanguageModel, ProgressReport, Tokenizer, silent
from hades.ports.store import GraphStore, RowStore, scan_rows, scan_values
from schemas.catalogue import as_table, columns_schema
from schemas.edges import ReferenceType
from schemas.ids import content_key, edge_key, node_id, sha256_text
from schemas.nodes import EntityType, RelationType
from schemas.record import canonical_json as canonical

Row = dict[str, Any]
_COLUMNS = ("_key", "_from", "_to", "type", "created", "provenance", "label", "evidence_count", "valid_from")
_LINKS = '"links":[{'  # documents without it state no relation, and their facts are not parsed


def stated_relations(stated: Iterable[Row]) -> pa.Table:
    """Relations as `read_links` gives them, each key once; one that is stated in several places counts them."""
    found: dict[str, Row] = {}
    for row in stated:
        held = found.setdefault(row["_key"], {**row, "evidence_count": 0, "valid_from": row["created"]})
        held["evidence_count"] += row["evidence_count"]
        is_dated = held["valid_from"] and row["created"]  # what is not was always so
        held["valid_from"] = min(held["valid_from"], row["created"]) if is_dated else None
    table = pa.Table.from_pylist([found[key] for key in sorted(found)], schema=columns_schema("relations", _COLUMNS))
    return fill("relations", table.num_rows, dict(zip(_COLUMNS, table.columns, strict=True)))


def read_links(documents: pa.Table, title_entity: Mapping[str, str], symbol_entity: Mapping[str, str]) -> Iterator[Row]:
    """The links that documents (_key, origin, source, length, created, facts) state, as rows.

    `title_entity` are entity ids by document key, `symbol_entity` by qualified name or repository.
    """
    linking = documents.filter(pc.match_substring(documents.column("facts"), _LINKS)).to_pylist()
    origins = documents.select(["source", "origin", "_key"]).to_pylist() if linking else []
    keys = {(row["source"], row["origin"]): row["_key"] for row in origins}
    for document in linking:
        source = title_entity.get(document["_key"])
        for link in read_facts(document["facts"]).get("links", ()) if source else ():
            if link["external"]:
                target = symbol_entity.get(link["target"])
            else:
                target = title_entity.get(keys.get((document["source"], link["target"]), ""))
            if source and target and target != source:
                yield {
                    "_key": edge_key(source, link["relation"], target),
                    "_from": source,
                    "_to": target,
                    "type": link["relation"],
                    "created": document["created"],
                    "provenance": {"doc": node_id("documents", document["_key"]), "span": [0, document["length"]]},
                    "label": link["context"][:300],
                    "evidence_count": link["count"],
                }


def find_symbol(symbols: Mapping[str, str], qualified: str, path: str) -> str | None:
    """The entity of a symbol; where several files have its name, the one of its own file."""
    return symbols.get(qualified) or symbols.get(name_in_file(qualified, path))


def symbols_of(entities: pa.Table) -> dict[str, str]:
    """Entity ids of code symbols and repositories by the name they are shown with."""
    symbols = entities.filter(pc.equal(entities.column("type"), str(EntityType.CODE_SYMBOL)))
    keys = [node_id("entities", key) for key in symbols.column("_key").to_pylist()]
    return dict(zip(symbols.column("name").to_pylist(), keys, strict=True))


def read_facts(text: str) -> dict[str, Any]:
    """The facts column of a document as a dictionary."""
    facts: dict[str, Any] = orjson.loads(text) if text and text != "{}" else {}
    return facts


# Edges from chunk to chunk: what comes next where a source states an order, and which page a link leads to. `next`
# joins documents that follow each other, as the turns of a talk do. `references` joins the chunk in which a page
# links to another page of the same source with the opening of that page.
_FOLLOWS = '"follows":"'  # documents without it state no order, and their facts are not parsed
_REFERS = f'"relation":"{RelationType.REFERS_TO}"'  # those without it link to no page


def reference_edges(documents: pa.Table, chunks: pa.Table) -> pa.Table:
    """Edges of both types in the catalogue's columns, by key.

    `documents` have _key, origin, title, source, created and facts; `chunks` have _key, document, text and span.
    """
    schema = columns_schema("references", ("_key", "_from", "_to", "type", "valid_from"))
    facts = documents.column("facts")
    stating = documents.filter(pc.or_(pc.match_substring(facts, _FOLLOWS), pc.match_substring(facts, _REFERS)))
    if not stating.num_rows:
        return schema.empty_table()
    known = documents.select(["_key", "origin", "title", "source"]).to_pylist()
    by_origin = {(row["source"], row["origin"]): (row["_key"], row["title"]) for row in known}
    pieces = _pieces(chunks)
    found: dict[str, Row] = {}
    for row in stating.select(["_key", "source", "facts", "created"]).to_pylist():
        for kind, *ends in _edges_of(row, by_origin, pieces):
            tail, head = (node_id("doc_chunks", key) for key in ends)
            name = edge_key(tail, str(kind), head)
            found[name] = {"_key": name, "_from": tail, "_to": head, "type": str(kind), "valid_from": row["created"]}
    return pa.Table.from_pylist([found[name] for name in sorted(found)], schema=schema)


_Pieces = dict[str, list[tuple[int, str, str]]]  # of a document: where each chunk begins, its key, its text


def _pieces(chunks: pa.Table) -> _Pieces:
    held: _Pieces = {}
    for row in chunks.select(["_key", "document", "text", "span"]).to_pylist():
        held.setdefault(row["document"].partition("/")[2], []).append((row["span"][0], row["_key"], row["text"]))
    return {document: sorted(places) for document, places in held.items()}


def _edges_of(
    row: Row, by_origin: Mapping[tuple[str, str], tuple[str, str]], pieces: _Pieces
) -> Iterator[tuple[ReferenceType, str, str]]:
    """What one document states, as type and keys of two chunks."""
    key, source, facts, own = row["_key"], row["source"], read_facts(row["facts"]), pieces.get(row["_key"])
    if not own:
        return
    before, _ = by_origin.get((source, facts.get("follows", "")), ("", ""))
    if before != key and before in pieces:
        yield ReferenceType.NEXT, pieces[before][-1][1], own[0][1]
    for link in facts.get("links", ()):
        other, title = by_origin.get((source, link["target"]), ("", ""))
        if not link["external"] and link["relation"] == RelationType.REFERS_TO and other != key and other in pieces:
            yield ReferenceType.REFERENCES, _place(own, link["target"], title), pieces[other][0][1]


def _place(own: Sequence[tuple[int, str, str]], target: str, title: str) -> str:
    """The first chunk that writes the name of the linked file or its title; the first of all where none does."""
    stem = posixpath.splitext(posixpath.basename(target))[0].casefold()
    wanted = [one for one in (stem, title.casefold()) if one]
    naming = (key for _, key, text in own if any(one in text.casefold() for one in wanted))
    return next(naming, own[0][1])


# Triples through a language model, for those who have one: estimated first, capped, asked once per text. Without an
# endpoint nothing here runs and nothing is lost: names and links come from the text itself. What the model read is
# kept by the hash of the text, so a second run costs nothing, and it goes when no chunk holds that text any more.
MAX_ANSWER_TOKENS = 1_024
COMMIT_EVERY = 16
PROMPT = """Read the passage. List the named entities and the facts it states.
Answer with one JSON object and nothing else:
{{"entities": ["..."], "triples": [["subject", "relation", "object"], ...]}}
Use names as they are written. Replace pronouns by the names they stand for.

Passage: {passage}
"""


def estimate(store: RowStore, tokenizer: Tokenizer, model: str) -> dict[str, int]:
    """What asking about the texts that the model has not read yet would cost: calls and tokens."""
    waiting = list(_waiting(store, model))
    return {
        "calls": len(waiting),
        "prompt_tokens": sum(tokenizer.count_many([PROMPT.format(passage=text) for _, text in waiting])),
        "completion_tokens_at_most": len(waiting) * MAX_ANSWER_TOKENS,
        "already_known": store.count("extractions"),
    }


def extract(
    store: GraphStore, model: LanguageModel, max_calls: int, progress: ProgressReport = silent
) -> dict[str, int]:
    """Ask for each text not read yet, in key order, never more than `max_calls` times; every few answers are kept.

    What that took: calls, tokens, answers that were unusable, and texts that nobody asked about.
    """
    waiting = list(_waiting(store, model.model))
    done = Counter({"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "unusable": 0})
    kept: list[dict[str, Any]] = []
    for digest, text in waiting[:max_calls]:
        answer = model.complete(PROMPT.format(passage=text), max_tokens=MAX_ANSWER_TOKENS)
        names, triples, problem = parse(answer.text)
        spent = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
        done.update(spent, calls=1, unusable=bool(problem))
        kept.append(
            {
                "_key": _key(model.model, digest),
                "sha256": digest,
                "model": model.model,
                "names": canonical({"names": names}),
                "triples": canonical({"triples": triples}),
                "problem": problem,
                **spent,
            }
        )
        if len(kept) == COMMIT_EVERY or done["calls"] == min(max_calls, len(waiting)):
            store.upsert("extractions", as_table("extractions", kept))
            kept = []
        progress("openie", done["calls"], min(max_calls, len(waiting)))
    return {**done, "not_asked": max(0, len(waiting) - max_calls)}


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
    read = {row["sha256"]: row for row in scan_rows(store, "extractions", columns=["sha256", "names", "triples"])}
    extra: dict[str, dict[str, list[Any]]] = {}
    for document, text in zip(chunks.column("document").to_pylist(), chunks.column("text").to_pylist(), strict=True):
        if found := read.get(sha256_text(text)):
            held = extra.setdefault(document.partition("/")[2], {"names": [], "triples": []})
            held["names"] += [[name, None] for name in json.loads(found["names"]).get("names", ())]
            held["triples"] += json.loads(found["triples"]).get("triples", ())
    facts = documents.column("facts").to_pylist()
    for row, key in enumerate(documents.column("_key").to_pylist()):
        if key in extra:
            held = json.loads(facts[row])
            facts[row] = canonical(held | {name: [*held.get(name, []), *more] for name, more in extra[key].items()})
    return documents.set_column(documents.schema.get_field_index("facts"), "facts", pa.array(facts, pa.string()))


def remove_unused(store: RowStore) -> int:
    """Drop what was read in texts that no chunk holds any more; how many."""
    if not store.count("extractions"):
        return 0
    held = {sha256_text(text) for text in scan_values(store, "doc_chunks", "text")}
    stale = [row["_key"] for row in scan_rows(store, "extractions", columns=["sha256"]) if row["sha256"] not in held]
    return store.delete("extractions", keys=stale)


def _waiting(store: RowStore, model: str) -> Iterator[tuple[str, str]]:
    known = set(scan_values(store, "extractions", "_key"))
    for text in scan_values(store, "doc_chunks", "text"):
        digest = sha256_text(text)
        key = _key(model, digest)
        if key not in known:
            known.add(key)
            yield digest, text


def _key(model: str, digest: str) -> str:
    return content_key("x", model, digest)
