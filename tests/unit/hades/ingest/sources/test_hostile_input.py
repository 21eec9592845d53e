"""Broken and hostile files end in quarantine or as harmless text, never in a crash."""

from __future__ import annotations

import resource
from collections import Counter
from pathlib import Path

import pytest

from hades.ingest.sources import workspace as workspaces
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.material import Material, RejectedInput, RejectReason, Source
from hades.ingest.sources.workspace import WorkspaceSource
from tests.unit.hades.ingest.sources.hostile_files import write_hostile

PROSE_AND_CODE = (
    ".py",
    ".js",
    ".ts",
    ".java",
    ".go",
    ".rs",
    ".c",
    ".cpp",
    ".rb",
    ".md",
    ".txt",
    ".rst",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    assert write_hostile(root) > 200
    return root


@pytest.fixture(scope="module")
def workspace(corpus: Path) -> dict[str, Material | RejectedInput]:
    with pytest.MonkeyPatch.context() as patch:  # each of twenty parsers runs away as long
        patch.setattr(workspaces, "_CPU_SECONDS", 0.3)
        return read(WorkspaceSource(corpus))


@pytest.fixture(scope="module")
def documents(corpus: Path) -> dict[str, Material | RejectedInput]:
    return read(DocumentsSource(corpus))


def read(source: Source) -> dict[str, Material | RejectedInput]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = list(source.read())
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
    )  # kB, with every text kept
    found = {one.origin if isinstance(one, Material) else one.uri: one for one in outcomes}
    assert len(found) == len(outcomes)
    return found


def regular_files(corpus: Path, *folders: str) -> set[str]:
    files = (path for folder in folders for path in (corpus / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(corpus)) for path in files}


def check(outcome: Material | RejectedInput) -> None:
    """A reason in words, or text that can be stored and sections that lie in it."""
    if isinstance(outcome, RejectedInput):
        assert outcome.detail
        assert outcome.uri.isprintable()
        (outcome.uri + outcome.detail).encode()
        return
    outcome.text.encode()
    assert "\0" not in outcome.text
    assert outcome.origin.isprintable()
    for section in outcome.sections:
        assert 0 <= section.start < section.end <= len(outcome.text)


def test_workspace_reads_on(corpus: Path, workspace: dict[str, Material | RejectedInput]) -> None:
    files = regular_files(corpus, "encodings", "nesting", "lines", "binary", "texts")
    assert {path for path in files if path.endswith(PROSE_AND_CODE)} <= set(workspace)
    for outcome in workspace.values():
        check(outcome)


def test_documents_read_on(corpus: Path, documents: dict[str, Material | RejectedInput]) -> None:
    assert regular_files(corpus, "encodings", "nesting", "lines", "pdf", "binary", "texts") <= set(
        documents
    )
    for outcome in documents.values():
        check(outcome)
    assert set(
        Counter(one.reason for one in documents.values() if isinstance(one, RejectedInput))
    ) == set(RejectReason)


REASONS = {
    RejectReason.UNREADABLE: [
        *(
            "encodings/utf16_lone.md",
            "special/loop.py",
            "special/a.md",
            "special/dangling.txt",
            "special/outside.py",
        ),
        *("special/device.txt", "special/pipe.md", "special/socket.txt"),
    ],
    RejectReason.EMPTY: [
        "encodings/bom_only.md",
        "pdf/bomb.pdf",
        "pdf/bomb_in_bomb.pdf",
        "texts/empty.md",
    ],
    RejectReason.OVERSIZED: ["lines/one.txt", "texts/large.txt"],
    RejectReason.MALFORMED: [
        *("pdf/zip_bomb.pdf", "pdf/zip_bomb_behind_header.pdf", "pdf/header.pdf"),
        *("names/two\\nlines.py", "names/\\udcff\\udcfe.py"),
    ],
    RejectReason.NOT_TEXT: ["binary/noise.md", "binary/printable_noise.txt", "binary/nul.txt"],
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_kind_has_its_reason(
    documents: dict[str, Material | RejectedInput], reason: RejectReason
) -> None:
    found = {path: getattr(documents[path], "reason", None) for path in REASONS[reason]}
    assert found == dict.fromkeys(found, reason)


def test_parsers_that_run_away_are_stopped_and_the_text_is_kept(
    workspace: dict[str, Material | RejectedInput],
) -> None:
    for path in ("nesting/generics.java", "nesting/fields.py"):
        outcome = workspace[path]
        assert isinstance(outcome, Material)
        assert outcome.metadata["unparsed"]
        assert outcome.sections[-1].end == len(outcome.text.rstrip())


def test_whole_pages_of_damaged_files_are_kept(
    documents: dict[str, Material | RejectedInput],
) -> None:
    kept = [
        one
        for path, one in documents.items()
        if path.startswith("pdf/") and isinstance(one, Material)
    ]
    assert kept
    assert all("Page" in one.text or "P" in one.text for one in kept)
