"""Ingesting, changing and forgetting leave the same graph in every store."""

from __future__ import annotations

from pathlib import Path

from hades.ingest.forget import forget_documents
from hades.ingest.phases import Workshop, ingest
from hades.ports.store import GraphStore
from hades.providers.hashing import HashingEmbedder
from hades.snapshot.publish import publish
from tests.unit.hades.ingest.corpora import PEOPLE, TOKENIZER, Listed, contents, new_workshop, passage


def test_a_history_of_ingestion_ends_the_same_everywhere(store: GraphStore, tmp_path: Path) -> None:
    workshop = Workshop(store, HashingEmbedder(), TOKENIZER, tmp_path / "cache")
    ingest(workshop, Listed(PEOPLE))
    ingest(workshop, Listed([passage("p4", "Grace Hopper", "Grace Hopper joined the Navy and met Howard Aiken.")]))
    certificate = forget_documents(store, workshop.embedder, workshop.rules, ["p3"])
    assert certificate.is_complete
    embedded = new_workshop(tmp_path / "embedded")
    ingest(
        embedded,
        Listed([*PEOPLE[:2], passage("p4", "Grace Hopper", "Grace Hopper joined the Navy and met Howard Aiken.")]),
    )
    assert contents(store) == contents(embedded.store)
    here, there = publish(store, tmp_path / "here"), publish(embedded.store, tmp_path / "there")
    assert here.manifest_hash == there.manifest_hash
