"""Forgetting: what only one document supports goes, the rest stays, and the certificate says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.ingest.forget import UnknownDocument, forget_documents
from hades.ingest.phases import ingest
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, new_context


def test_the_certificate_says_what_went_and_what_stayed_and_why(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    ingest(context, Listed(PEOPLE))
    certificate = forget_documents(context.store, context.embedder, ["p4"])
    assert certificate.is_complete
    assert certificate.documents[0]["id"] == "p4"
    assert certificate.removed["documents"] == certificate.removed["doc_chunks"] == 1
    assert "Grace Hopper" in certificate.entities_removed
    kept = {one["name"]: one["why"] for one in certificate.entities_kept}
    assert "Ada Lovelace" in kept
    assert "other chunk" in kept["Ada Lovelace"]


def test_an_unknown_document_is_named(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    with pytest.raises(UnknownDocument, match="'nobody'"):
        forget_documents(context.store, context.embedder, ["nobody"])
