"""Ingesting, changing and forgetting leave the same graph in every store."""

from __future__ import annotations

import json
from pathlib import Path

from hades.ingest.forget import find_loose_edges, forget_documents
from hades.ingest.phases import IngestContext, ingest
from hades.ports.graph import Kind
from hades.ports.store import GraphStore
from hades.providers.hashing import HashingEmbedder
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from tests.contract.examples import entity, everything, put, relation
from tests.unit.hades.ingest.corpora import (
    PEOPLE,
    TOKENIZER,
    Listed,
    contents,
    new_context,
    passage,
)
from tests.unit.hades.ingest.later_rows import (
    TERMS,
    chunk_of,
    entity_named,
    put_bridge,
    put_log,
    put_topics,
    quote_of,
)


def test_a_history_of_ingestion_ends_the_same_everywhere(store: GraphStore, tmp_path: Path) -> None:
    context = IngestContext(store, HashingEmbedder(), TOKENIZER, tmp_path / "cache")
    ingest(context, Listed(PEOPLE))
    ingest(
        context,
        Listed(
            [passage("p4", "Grace Hopper", "Grace Hopper joined the Navy and met Howard Aiken.")]
        ),
    )
    certificate = forget_documents(store, context.embedder, ["p3"])
    assert certificate.is_complete
    embedded = new_context(tmp_path / "embedded")
    ingest(
        embedded,
        Listed(
            [
                *PEOPLE[:2],
                passage("p4", "Grace Hopper", "Grace Hopper joined the Navy and met Howard Aiken."),
            ]
        ),
    )
    assert contents(store) == contents(embedded.store)
    here, there = publish(store, tmp_path / "here"), publish(embedded.store, tmp_path / "there")
    assert here.manifest_hash == there.manifest_hash


def test_forgetting_reaches_what_later_stages_built_the_same_everywhere(
    store: GraphStore, tmp_path: Path
) -> None:
    embedded = new_context(tmp_path / "embedded").store
    for one in (store, embedded):
        context = IngestContext(one, HashingEmbedder(), TOKENIZER, tmp_path / "cache")
        ingest(context, Listed(PEOPLE))
        ada, grace = entity_named(one, "Ada Lovelace"), entity_named(one, "Grace Hopper")
        said = {
            "terms": TERMS,
            "evidence": [quote_of(chunk_of(one, "compiler")), quote_of(chunk_of(one, "London"))],
        }
        put_topics(
            one, {"one": [ada], "two": [grace]}, name="grace hopper, ada", metadata=json.dumps(said)
        )
        over = [
            row
            for row in everything(one, "relations")
            if f"entities/{grace}" in (row["_from"], row["_to"])
        ]
        put_bridge(one, "over", over[0])
        put_log(one, "who wrote it?", over[:2], [chunk_of(one, "compiler")["_key"]])
        certificate = forget_documents(one, context.embedder, ["p4"])
        assert certificate.left_behind == {}
        assert certificate.removed["clusters"] == certificate.removed["bridge_cache"] == 1
        assert certificate.corrected == {"clusters": 2, "query_logs": 1}
        assert "opper" not in str(contents(one))
    here, there = contents(store), contents(embedded)
    for held in (here, there):  # 1.0 and 1 are one number, which ArangoDB writes the shorter way
        held["query_logs"] = [
            {**row, "results": json.loads(row["results"])} for row in held["query_logs"]
        ]
    assert here == there


def test_an_edge_that_still_points_at_a_removed_node_is_found_by_its_end(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"), entity("c"))
    put(store, "relations", relation("a", "b", _key="r1"), relation("c", "a", _key="r2"))
    store.delete("entities", keys=["b"])
    assert find_loose_edges(store, ["entities/b"]) == {"relations without an end": ["r1"]}
    assert find_loose_edges(store, ["entities/c", "entities/x"]) == {
        "relations without an end": ["r2"]
    }
    assert find_loose_edges(store, ["entities/x"]) == {}


def test_texts_of_other_languages_are_found_by_their_words_in_every_store(
    store: GraphStore, tmp_path: Path
) -> None:
    german = passage("p1", "Dorf", "Die alten Häuser standen in der Mitte und waren nicht hoch.")
    chinese = passage("p2", "城市", "北京的人口超过两千万。上海是最大的港口城市。")
    english = passage("p3", "Town", "The old town has a harbour and a market in the middle.")
    ingest(
        IngestContext(store, HashingEmbedder(), TOKENIZER, tmp_path / "cache"),
        Listed([german, chinese, english]),
    )
    rows = {row["origin"]: row for row in everything(store, "documents")}
    languages = {
        origin: json.loads(row["metadata"]).get("language") for origin, row in rows.items()
    }
    assert languages == {"p1": "de", "p2": "zh", "p3": None}
    assert "de" in rows["p1"]["domains"]
    publish(store, tmp_path / "home")
    view = open_snapshot(tmp_path / "home")

    def first(text: str) -> str:
        return view.passages(view.lexical(text, kind=Kind.CHUNK, limit=1).numbers)[0].title

    assert first("Wie hoch war das alte Haus und wo ist es?") == "Dorf"
    assert first("上海港口在哪里？") == "城市"
    assert first("which Häuser?") == "Dorf"
