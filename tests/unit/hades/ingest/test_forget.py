"""Forgetting: what only one document supports goes, the rest stays, and the certificate says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.ingest.forget import Certificate, UnknownDocument, forget_documents
from hades.ingest.ingest import Ingest
from hades.ingest.phases import IngestContext
from tests.contract.examples import everything
from tests.unit.hades.ingest.corpora import new_context, people_context


def test_the_certificate_says_what_went_and_what_stayed_and_why(tmp_path: Path) -> None:
    context = people_context(tmp_path)
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


PAGES = {
    "ada.md": "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage.\n",
    "copy.md": "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage.\n",
    "grace.md": "# Grace Hopper\n\nGrace Hopper wrote a compiler.\n",
}


def read_pages(folder: Path) -> IngestContext:
    context = new_context(folder)
    (folder / "pages").mkdir()
    for name, text in PAGES.items():
        (folder / "pages" / name).write_text(text)
    Ingest(context).documents(folder / "pages")
    return context


def forget(context: IngestContext, origin: str) -> Certificate:
    return forget_documents(context.store, context.embedder, [origin])


def test_the_file_that_would_be_read_again_is_named(tmp_path: Path) -> None:
    context = read_pages(tmp_path)
    assert forget(context, "grace.md").read_again == [str(tmp_path / "pages" / "grace.md")]


def test_a_file_that_was_taken_out_first_is_not(tmp_path: Path) -> None:
    context = read_pages(tmp_path)
    (tmp_path / "pages" / "grace.md").unlink()
    assert forget(context, "grace.md").read_again == []


def test_a_copy_that_was_set_aside_is_named_and_leaves_the_quarantine(tmp_path: Path) -> None:
    context = read_pages(tmp_path)
    assert [row["uri"] for row in everything(context.store, "quarantine")] == ["copy.md"]
    (tmp_path / "pages" / "ada.md").unlink()
    certificate = forget(context, "ada.md")
    assert certificate.read_again == [str(tmp_path / "pages" / "copy.md")]
    assert certificate.removed["quarantine"] == 1
    assert everything(context.store, "quarantine") == []


def test_a_document_of_a_line_may_still_stand_in_its_file(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        '{"id": "p1", "title": "Ada", "text": "Ada Lovelace worked with Charles Babbage."}\n'
    )
    Ingest(context).passages(corpus)
    assert forget(context, "p1").read_again == [str(corpus)]
