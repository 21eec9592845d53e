"""Relations that sources state outright: citations, repositories, and code that calls or extends code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.documents import name_in_file
from schemas.catalogue import collection_named
from schemas.graph_types import EntityType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]


@dataclass(frozen=True)
class StatedCorpus:
    """What stated relations are made from: documents with their facts, and the entities they stand for."""

    documents: Sequence[Mapping[str, Any]]  # those that state links: _key, source, length, created, facts as a dict
    keys: Mapping[tuple[str, str], str]  # source and origin of any document -> its key
    title_entity: Mapping[str, str]  # document key -> entity id
    symbol_entity: Mapping[str, str]  # qualified name or repository -> entity id


def read_stated_relations(corpus: StatedCorpus, code: pa.Table) -> pa.Table:
    """All of them, in the catalogue's columns, each key once; what is stated in several places counts them.

    `code` are those of code symbols.
    """
    links = pa.Table.from_pylist(list(_links(corpus)), schema=stated_schema())
    rows = pa.concat_tables([links, code]).combine_chunks()
    keys = rows.column("_key").combine_chunks().dictionary_encode()
    of = keys.indices.to_numpy()
    first = np.unique(of, return_index=True)[1]
    counted = np.bincount(of, rows.column("evidence_count").to_numpy(), len(first)).astype(np.int64)
    place = rows.schema.get_field_index("evidence_count")
    kept = rows.take(pa.array(first)).set_column(place, rows.schema.field(place), pa.array(counted))
    return kept.sort_by("_key")


def stated_schema() -> pa.Schema:
    """The columns of stated relations."""
    declared = collection_named("relations")
    assert declared is not None
    return pa.schema([pa.field(name, declared.schema.field(name).type) for name in _COLUMNS])


_COLUMNS = ("_key", "_from", "_to", "type", "created", "provenance", "label", "evidence_count")


def _links(corpus: StatedCorpus) -> Iterable[Row]:
    for document in corpus.documents:
        source = corpus.title_entity.get(document["_key"])
        for link in document["facts"].get("links", ()) if source else ():
            if link["external"]:
                target = corpus.symbol_entity.get(link["target"])
            else:
                target = corpus.title_entity.get(corpus.keys.get((document["source"], link["target"]), ""))
            if source and target and target != source:
                yield _row(
                    source, target, link["relation"], document["_key"], [0, document["length"]], document["created"],
                    count=link["count"], label=link["context"][:300],
                )  # fmt: skip


def _row(
    source: str,
    target: str,
    relation: str,
    document: str,
    span: Sequence[int],
    created: Any,
    count: int = 1,
    label: str = "",
) -> Row:
    return {
        "_key": edge_key(source, relation, target),
        "_from": source,
        "_to": target,
        "type": relation,
        "created": created,
        "provenance": {"doc": node_id("documents", document), "span": list(span)},
        "label": label,
        "evidence_count": count,
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
