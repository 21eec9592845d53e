"""Forgetting: what only one document supports goes, the rest stays, and the certificate says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.ingest.forget import UnknownDocument, forget_documents
from hades.ingest.phases import ingest
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, contents, new_workshop


def test_forgetting_leaves_a_build_without_the_document(tmp_path: Path) -> None:
    workshop, fresh = new_workshop(tmp_path / "a"), new_workshop(tmp_path / "b")
    ingest(workshop, Listed(PEOPLE))
    certificate = forget_documents(workshop.store, workshop.embedder, workshop.rules, ["p4"])
    ingest(fresh, Listed(PEOPLE[:3]))
    assert contents(workshop.store) == contents(fresh.store)
    assert certificate.is_complete
    assert certificate.documents[0]["id"] == "p4"
    assert certificate.removed["documents"] == certificate.removed["doc_chunks"] == 1


def test_the_certificate_says_what_went_and_what_stayed_and_why(tmp_path: Path) -> None:
    workshop = new_workshop(tmp_path)
    ingest(workshop, Listed(PEOPLE))
    certificate = forget_documents(workshop.store, workshop.embedder, workshop.rules, ["p4"])
    assert "Grace Hopper" in certificate.entities_removed
    kept = {one["name"]: one["why"] for one in certificate.entities_kept}
    assert "Ada Lovelace" in kept
    assert "other chunk" in kept["Ada Lovelace"]


def test_nothing_findable_remains(tmp_path: Path) -> None:
    workshop = new_workshop(tmp_path)
    ingest(workshop, Listed(PEOPLE))
    forget_documents(workshop.store, workshop.embedder, workshop.rules, ["p4"])
    assert workshop.store.search("doc_chunks", "compiler Hopper", limit=5).num_rows == 0
    assert workshop.store.search("entities", "Hopper", limit=5).num_rows == 0
    assert "Hopper" not in str(contents(workshop.store))
    assert workshop.store.check() == []


def test_an_unknown_document_is_named(tmp_path: Path) -> None:
    workshop = new_workshop(tmp_path)
    with pytest.raises(UnknownDocument, match="'nobody'"):
        forget_documents(workshop.store, workshop.embedder, workshop.rules, ["nobody"])
