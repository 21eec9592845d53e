"""Documents of every kind become text with sections; the rest is set aside with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.files import SourceError
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from tests.unit.hades.ingest.corpora import new_context
from tests.unit.hades.ingest.sources.pdf_files import pdf_with


def read(root: Path) -> dict[str, Material | RejectedInput]:
    outcomes = list(DocumentsSource(root).read())
    return {one.origin if isinstance(one, Material) else one.uri: one for one in outcomes}


def material(outcome: Material | RejectedInput) -> Material:
    assert isinstance(outcome, Material), outcome
    return outcome


def reason(outcome: Material | RejectedInput) -> RejectReason:
    assert isinstance(outcome, RejectedInput), outcome
    return outcome.reason


def test_each_kind_has_its_title_text_and_sections(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("# Head\nbody\n")
    (tmp_path / "b.txt").write_text("plain words")
    (tmp_path / "sub/c.html").write_text("<title>Page</title><h1>One</h1><p>text</p>")
    (tmp_path / "d.pdf").write_bytes(pdf_with("First page", "Second page", title="Paper"))
    (tmp_path / "e.rst").write_text("Title\n=====\nbody\n")
    (tmp_path / "README").write_text("no suffix")
    found = {path: material(one) for path, one in read(tmp_path).items()}
    assert {path: (one.title, one.mime) for path, one in found.items()} == {
        "README": ("README", "text/plain"),
        "a.md": ("Head", "text/markdown"),
        "b.txt": ("b", "text/plain"),
        "d.pdf": ("Paper", "application/pdf"),
        "e.rst": ("Title", "text/x-rst"),
        "sub/c.html": ("Page", "text/html"),
    }
    assert found["a.md"].text == "# Head\nbody\n"
    paper = found["d.pdf"]
    assert [(one.headings, paper.text[one.start : one.end]) for one in paper.sections] == [
        (("page 1",), "First page"),
        (("page 2",), "Second page"),
    ]
    assert found["sub/c.html"].text == "# One\n\ntext"


def test_one_file_is_a_corpus_too(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("alone")
    (tmp_path / "b.md").write_text("not asked for")
    assert list(read(tmp_path / "a.md")) == ["a.md"]


def test_order_is_stable(tmp_path: Path) -> None:
    for name in ("c.md", "a.md", "b.txt"):
        (tmp_path / name).write_text(name)
    assert list(read(tmp_path)) == ["a.md", "b.txt", "c.md"]


def test_what_cannot_be_used_is_set_aside_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("same words")
    (tmp_path / "b.txt").write_text("same words")
    (tmp_path / "blank.md").write_text(" \n\n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / "long.txt").write_text("x" * 1_000_000)
    (tmp_path / "nul.txt").write_bytes(b"a\0b")
    (tmp_path / "page.html").write_text("<script>only code</script>")
    (tmp_path / "scan.pdf").write_bytes(pdf_with(""))
    (tmp_path / "zip.pdf").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    os.mkfifo(tmp_path / "pipe.md")
    found = read(tmp_path)
    material(found.pop("a.md"))
    assert {path: reason(one) for path, one in found.items()} == {
        "b.txt": RejectReason.DUPLICATE,
        "blank.md": RejectReason.EMPTY,
        "image.png": RejectReason.NOT_TEXT,
        "long.txt": RejectReason.OVERSIZED,
        "nul.txt": RejectReason.NOT_TEXT,
        "page.html": RejectReason.EMPTY,
        "pipe.md": RejectReason.UNREADABLE,
        "scan.pdf": RejectReason.EMPTY,
        "zip.pdf": RejectReason.MALFORMED,
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_files_that_may_not_be_read_are_set_aside(tmp_path: Path) -> None:
    (tmp_path / "closed.md").write_text("x")
    (tmp_path / "closed.md").chmod(0)
    assert reason(read(tmp_path)["closed.md"]) is RejectReason.UNREADABLE


def test_a_missing_corpus_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected a folder of documents"):
        DocumentsSource(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="neither a folder nor a regular file"):
        DocumentsSource(tmp_path / "pipe")


def test_a_folder_of_which_nothing_is_read_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    report = Ingest(new_context(tmp_path / "home")).documents(folder, [Phase.NODES]).as_dict()
    assert report["note"].startswith(
        "nothing was read; 1 inputs were set aside, most often: .py files are code"
    )
    (folder / "a.md").write_text("Text.\n")
    assert (
        "note"
        not in Ingest(new_context(tmp_path / "home")).documents(folder, [Phase.NODES]).as_dict()
    )
