"""What sources state outright: relations, links and order; triples that a language model reads."""

from __future__ import annotations

import json
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import name_in_file
from hades.ingest.entities.tables import edge_row, fill, values_of
from hades.ports.services import LanguageModel, ProgressReport, Tokenizer, silent
from hades.ports.store import GraphStore, Row, RowStore, scan_rows, scan_values
from schemas.catalogue import as_table, columns_schema
from schemas.edges import ReferenceType
from schemas.ids import content_key, key_of, node_id, sha256_text
from schemas.nodes import EntityType, RelationType
from schemas.record import JsonObject
from schemas.record import canonical_json as canonical

_EDGE = ("_key", "_from", "_to", "type")
_COLUMNS = (*_EDGE, "created", "provenance", "label", "evidence_count", "valid_from")
_LINKS = '"links":[{'  # documents without it state no relation, and their facts are not parsed


def stated_relations(stated: Iterable[Row]) -> pa.Table:
    """Relations as `read_links` gives them, each key once; one that is stated in several places
    counts them.
    """
    relations: dict[str, Row] = {}
    for row in stated:
        uncounted = {
            **row,
            "evidence_count": 0,
            "valid_from": row["created"],
        }
        relation = relations.setdefault(row["_key"], uncounted)
        relation["evidence_count"] += row["evidence_count"]
        is_dated = relation["valid_from"] and row["created"]  # what is not was always so
        relation["valid_from"] = min(relation["valid_from"], row["created"]) if is_dated else None

    table = pa.Table.from_pylist(
        [relations[key] for key in sorted(relations)],
        schema=columns_schema("relations", _COLUMNS),
    )
    return fill(
        "relations",
        table.num_rows,
        dict(zip(_COLUMNS, table.columns, strict=True)),
    )


def read_links(
    documents: pa.Table,
    title_entity: Mapping[str, str],
    symbol_entity: Mapping[str, str],
) -> Iterator[Row]:
    """The links that documents (_key, origin, source, length, created, facts) state, as rows.

    `title_entity` are entity ids by document key, `symbol_entity` by qualified name or repository.
    """
    linking = documents.filter(pc.match_substring(documents["facts"], _LINKS)).to_pylist()

    keys = {}
    for source, origin, key in values_of(documents, "source", "origin", "_key") if linking else ():
        keys[source, origin] = key

    for document in linking:
        source = title_entity.get(document["_key"])
        for link in read_facts(document["facts"]).get("links", ()) if source else ():
            if link["external"]:
                target = symbol_entity.get(link["target"])
            else:
                target = title_entity.get(keys.get((document["source"], link["target"]), ""))

            if source and target and target != source:
                place = node_id("documents", document["_key"]), [0, document["length"]]
                yield edge_row(source, link["relation"], target) | {
                    "created": document["created"],
                    "provenance": dict(zip(("doc", "span"), place, strict=True)),
                    "label": link["context"][:300],
                    "evidence_count": link["count"],
                }


def find_symbol(
    symbols: Mapping[str, str],
    qualified: str,
    path: str,
) -> str | None:
    """The entity of a symbol; where several files have its name, the one of its own file."""
    return symbols.get(qualified) or symbols.get(name_in_file(qualified, path))


def symbols_of(entities: pa.Table) -> dict[str, str]:
    """Entity ids of code symbols and repositories by the name they are shown with."""
    symbols = entities.filter(pc.equal(entities["type"], str(EntityType.CODE_SYMBOL)))

    keys = []
    for key in symbols["_key"].to_pylist():
        keys.append(node_id("entities", key))

    return dict(zip(symbols["name"].to_pylist(), keys, strict=True))


def read_facts(text: str) -> JsonObject:
    """The facts column of a document as a dictionary."""
    if text and text != "{}":
        facts: JsonObject = orjson.loads(text)
    else:
        facts = {}

    return facts


# Edges from chunk to chunk: what comes next where a source states an order, and which page a link
# leads to. `next` joins documents that follow each other, as the turns of a talk do. `references`
# joins the chunk in which a page links to another page of the same source with the opening of that
# page.
_FOLLOWS = '"follows":"'  # documents without it state no order, and their facts are not parsed
_REFERS = f'"relation":"{RelationType.REFERS_TO}"'  # those without it link to no page


def reference_edges(documents: pa.Table, chunks: pa.Table) -> pa.Table:
    """Edges of both types in the catalogue's columns, by key.

    `documents` have _key, origin, title, source, created and facts; `chunks` have _key, document,
    text and span.
    """
    schema = columns_schema("references", (*_EDGE, "valid_from"))
    facts = documents["facts"]
    stating = documents.filter(
        pc.or_(
            pc.match_substring(facts, _FOLLOWS),
            pc.match_substring(facts, _REFERS),
        )
    )

    if not stating.num_rows:
        return schema.empty_table()

    by_origin = {}
    for source, origin, key, title in values_of(
        documents,
        "source",
        "origin",
        "_key",
        "title",
    ):
        by_origin[source, origin] = key, title

    pieces = _pieces(chunks)
    edges: dict[str, Row] = {}
    for row in stating.select(["_key", "source", "facts", "created"]).to_pylist():
        for kind, *ends in _edges_of(row, by_origin, pieces):
            tail, head = (node_id("doc_chunks", key) for key in ends)
            edge = edge_row(tail, kind, head) | {"valid_from": row["created"]}
            edges[edge["_key"]] = edge

    return pa.Table.from_pylist(
        [edges[name] for name in sorted(edges)],
        schema=schema,
    )


# Of each document: where each chunk begins, its key, its text.
_Pieces = dict[str, list[tuple[int, str, str]]]


def _pieces(chunks: pa.Table) -> _Pieces:
    pieces: _Pieces = defaultdict(list)
    for document, span, key, text in values_of(
        chunks,
        "document",
        "span",
        "_key",
        "text",
    ):
        pieces[key_of(document)].append((span[0], key, text))

    for places in pieces.values():
        places.sort()

    return pieces


def _edges_of(
    row: Row,
    by_origin: Mapping[tuple[str, str], tuple[str, str]],
    pieces: _Pieces,
) -> Iterator[tuple[ReferenceType, str, str]]:
    """What one document states, as type and keys of two chunks."""
    key = row["_key"]
    source = row["source"]
    facts = read_facts(row["facts"])
    own_pieces = pieces.get(key)

    if not own_pieces:
        return

    previous, _ = by_origin.get((source, facts.get("follows", "")), ("", ""))
    if previous != key and previous in pieces:
        yield ReferenceType.NEXT, pieces[previous][-1][1], own_pieces[0][1]

    for link in facts.get("links", ()):
        target, title = by_origin.get((source, link["target"]), ("", ""))
        is_page_link = not link["external"] and link["relation"] == RelationType.REFERS_TO
        if is_page_link and target != key and target in pieces:
            chunk = _linking_chunk(own_pieces, link["target"], title)
            yield ReferenceType.REFERENCES, chunk, pieces[target][0][1]


def _linking_chunk(
    pieces: Sequence[tuple[int, str, str]],
    target: str,
    title: str,
) -> str:
    """The first chunk that writes the name of the linked file or its title; the first of all where
    none does.
    """
    stem = posixpath.splitext(posixpath.basename(target))[0].casefold()
    for _, key, text in pieces:
        folded = text.casefold()
        if (stem and stem in folded) or (title and title.casefold() in folded):
            return key

    return pieces[0][1]


# Optional triples through a language model: the cost is estimated first and capped, and each text
# is sent once. Without an endpoint nothing here runs: names and links come from the text itself.
# Answers are stored by the hash of the text, so a second run costs nothing, and are deleted when no
# chunk holds that text any more.
MAX_ANSWER_TOKENS = 1_024
COMMIT_EVERY = 16
PROMPT = """Read the passage. List the named entities and the facts it states.
Answer with one JSON object and nothing else:
{{"entities": ["..."], "triples": [["subject", "relation", "object"], ...]}}
Use names as they are written. Replace pronouns by the names they stand for.

Passage: {passage}
"""


def estimate(
    store: RowStore,
    tokenizer: Tokenizer,
    model: str,
) -> dict[str, int]:
    """What asking about the texts that the model has not read yet would cost: calls and tokens."""
    waiting = list(_waiting(store, model))
    prompts = [PROMPT.format(passage=text) for _, text in waiting]
    return {
        "calls": len(waiting),
        "prompt_tokens": sum(tokenizer.count_many(prompts)),
        "completion_tokens_at_most": len(waiting) * MAX_ANSWER_TOKENS,
        "already_known": store.count("extractions"),
    }


def extract(
    store: GraphStore,
    model: LanguageModel,
    max_calls: int,
    progress: ProgressReport = silent,
) -> dict[str, int]:
    """Ask for each text not read yet, in key order, never more than `max_calls` times; every few
    answers are kept.

    What that took: calls, tokens, answers that were unusable, and texts that were not sent.
    """
    waiting = list(_waiting(store, model.model))
    counts = Counter(
        {
            "calls": 0,
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "unusable": 0,
        }
    )

    answers: list[Row] = []
    for digest, text in waiting[:max_calls]:
        answer = model.complete(
            PROMPT.format(passage=text),
            max_tokens=MAX_ANSWER_TOKENS,
        )
        names, triples, problem = parse(answer.text)
        spent = {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
        }
        counts.update(
            spent,
            calls=1,
            unusable=bool(problem),
        )
        row = {
            "_key": _key(model.model, digest),
            "sha256": digest,
            "model": model.model,
            "names": canonical({"names": names}),
            "triples": canonical({"triples": triples}),
            "problem": problem,
        }
        answers.append(row | spent)
        most = min(max_calls, len(waiting))

        if len(answers) == COMMIT_EVERY or counts["calls"] == most:
            store.upsert("extractions", as_table("extractions", answers))
            answers = []

        progress("openie", counts["calls"], most)

    return {
        **counts,
        "not_asked": max(0, len(waiting) - max_calls),
    }


def parse(answer: str) -> tuple[list[str], list[list[str]], str]:
    """Names and triples of an answer, and what is wrong with it; a fenced or prefaced object is
    still found.
    """
    start = answer.find("{")
    end = answer.rfind("}")

    if start < 0 or end <= start:
        return [], [], "no JSON object in the answer"

    try:
        stated = json.loads(answer[start : end + 1])
    except ValueError as error:
        return [], [], f"not JSON: {error}"

    if not isinstance(stated, dict):
        return [], [], "not a JSON object"

    names = _stripped_texts(stated.get("entities") or [])
    triples = []
    for triple in stated.get("triples") or []:
        if isinstance(triple, list):
            parts = _stripped_texts(triple)
        else:
            parts = []

        if len(parts) == 3 == len(triple):
            triples.append(parts)

    return names, triples, ""


def _stripped_texts(values: Iterable[object]) -> list[str]:
    return [value.strip() for value in values if isinstance(value, str) and value.strip()]


def with_extractions(
    store: RowStore,
    documents: pa.Table,
    chunks: pa.Table,
) -> pa.Table:
    """Documents whose facts also hold what a language model read in their chunks."""
    if not store.count("extractions"):
        return documents

    extraction_of: dict[str, tuple[list[Any], list[Any]]] = {}
    for row in scan_rows(
        store,
        "extractions",
        columns=["sha256", "names", "triples"],
    ):
        names = [[name, None] for name in json.loads(row["names"]).get("names", ())]
        extraction_of[row["sha256"]] = names, json.loads(row["triples"]).get("triples", [])

    extra: dict[str, tuple[list[Any], list[Any]]] = {}
    for document, text in values_of(chunks, "document", "text"):
        if extraction := extraction_of.get(sha256_text(text)):
            names, triples = extra.setdefault(key_of(document), ([], []))
            names += extraction[0]
            triples += extraction[1]

    facts = documents["facts"].to_pylist()
    for place, key in enumerate(documents["_key"].to_pylist()):
        if key in extra:
            stated = json.loads(facts[place])
            for name, values in zip(("names", "triples"), extra[key], strict=True):
                stated[name] = [*stated.get(name, []), *values]

            facts[place] = canonical(stated)

    return documents.set_column(
        documents.schema.get_field_index("facts"),
        "facts",
        pa.array(facts, pa.string()),
    )


def remove_unused(store: RowStore) -> int:
    """Drop what was read in texts that no chunk holds any more; how many."""
    if not store.count("extractions"):
        return 0

    digests = set()
    for text in scan_values(store, "doc_chunks", "text"):
        digests.add(sha256_text(text))

    rows = scan_rows(store, "extractions", columns=["sha256"])
    stale = []
    for row in rows:
        if row["sha256"] not in digests:
            stale.append(row["_key"])

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
