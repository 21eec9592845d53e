"""Ingestion as a whole: phases, second runs, changes, spans, quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hades.ingest.phases import IngestContext, Phase, ingest
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.material import RejectedInput, RejectReason
from hades.ports.services import Vectors
from hades.ports.store import Term
from hades.providers.hashing import HashingEmbedder
from schemas.sources import SourceKind
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, contents, new_context, passage


@pytest.fixture
def context(tmp_path: Path) -> IngestContext:
    return new_context(tmp_path)


def test_all_phases_make_a_graph_without_loose_ends(context: IngestContext) -> None:
    report = ingest(context, Listed(PEOPLE))
    assert (report.new, report.chunks, report.embedded) == (4, 4, 4)
    counts = context.store.counts()
    assert counts["documents"] == counts["doc_chunks"] == 4
    assert counts["entities"] >= 4
    assert counts["mentions"] > 4
    assert context.store.check() == []
    entities = contents(context.store)["entities"]
    assert {row["layer"] for row in entities} == {0}
    names = {row["name"] for row in entities}
    assert {"Ada Lovelace", "Charles Babbage", "Analytical Engine", "Grace Hopper"} <= names


def test_texts_without_any_name_make_chunks_and_no_entity(context: IngestContext) -> None:
    ingest(context, Listed([passage("p1", "", "one"), passage("p2", "", "two")]))
    assert (context.store.count("doc_chunks"), context.store.count("entities")) == (2, 0)


def test_a_second_run_touches_nothing(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE))
    before = contents(context.store)
    marks = context.store.marks(["documents"])
    report = ingest(context, Listed(PEOPLE))
    assert (report.new, report.changed, report.unchanged, report.chunks, report.embedded) == (
        0,
        0,
        4,
        0,
        0,
    )
    assert report.derived == {}
    assert contents(context.store) == before
    assert context.store.marks(["documents"]) == marks


def test_phases_run_one_by_one_give_the_same_graph(context: IngestContext, tmp_path: Path) -> None:
    for phase in Phase:
        ingest(context, Listed(PEOPLE), [phase])
    other = new_context(tmp_path / "other")
    ingest(other, Listed(PEOPLE))
    assert contents(context.store) == contents(other.store)


def test_without_the_edges_phase_there_are_no_edges(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE), [Phase.NODES, Phase.CHUNKS, Phase.EMBEDDINGS])
    counts = context.store.counts()
    assert counts["doc_chunks"] == 4
    assert counts["entities"] == counts["relations"] == counts["mentions"] == 0


def test_every_chunk_is_the_exact_span_of_its_document(context: IngestContext) -> None:
    long = passage(
        "long",
        "A long one",
        " ".join(f"Sentence number {number} speaks of London." for number in range(200)),
    )
    ingest(context, Listed([*PEOPLE, long]))
    texts = {
        f"documents/{row['_key']}": row["text"] for row in contents(context.store)["documents"]
    }
    chunks = contents(context.store)["doc_chunks"]
    assert len(chunks) > 6
    for chunk in chunks:
        start, end = chunk["span"]
        assert texts[chunk["document"]][start:end] == chunk["text"]
        assert 0 < chunk["token_count"] <= 240


def test_every_relation_points_into_its_document(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE))
    lengths = {
        f"documents/{row['_key']}": len(row["text"]) for row in contents(context.store)["documents"]
    }
    stated = [row for row in contents(context.store)["relations"] if row["type"] != "similar_to"]
    assert stated
    for row in stated:
        start, end = row["provenance"]["span"]
        assert 0 <= start < end <= lengths[row["provenance"]["doc"]]


def test_a_mirrored_folder_forgets_what_it_lost(context: IngestContext) -> None:
    other = passage("other", "Elsewhere", "Another corpus.")
    ingest(context, Listed(PEOPLE, mirrors=True, place="here"))
    ingest(context, Listed([other], corpus="other", mirrors=True, place="there"))
    report = ingest(context, Listed(PEOPLE[:2], mirrors=True, place="here"))
    assert report.removed == 2
    origins = {row["origin"] for row in contents(context.store)["documents"]}
    assert origins == {"p1", "p2", "other"}


def test_a_folder_of_the_same_name_elsewhere_is_left_alone(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE[:2], mirrors=True, place="here"))
    report = ingest(context, Listed(PEOPLE[2:], mirrors=True, place="there"))
    assert report.removed == 0
    assert context.store.count("documents") == 4


def test_folders_of_one_name_keep_their_pages_apart(context: IngestContext, tmp_path: Path) -> None:
    """Nearly every project calls the folder of its documentation `docs`."""
    folders = [tmp_path / project / "docs" for project in ("engine", "loom")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "index.md").write_text(f"# The {folder.parent.name}\n\nMade by Ada Lovelace.\n")
    for _night in range(2):
        reports = [ingest(context, DocumentsSource(folder)) for folder in folders]
    assert [(report.changed, report.removed) for report in reports] == [(0, 0), (0, 0)]
    texts = {row["title"] for row in contents(context.store)["documents"]}
    assert texts == {"The engine", "The loom"}


def test_a_folder_that_moved_is_the_same_corpus(context: IngestContext, tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "docs"
    folder.mkdir(parents=True)
    for page in ("index", "store"):
        (folder / f"{page}.md").write_text(f"# The {page}\n\nMade by Ada Lovelace.\n")
    ingest(context, DocumentsSource(folder))
    before = contents(context.store)["documents"]
    moved = tmp_path / "loom" / "docs"
    moved.parent.mkdir()
    folder.rename(moved)
    assert ingest(context, DocumentsSource(moved)).unchanged == 2
    assert contents(context.store)["documents"] == before
    (moved / "store.md").unlink()
    assert ingest(context, DocumentsSource(moved)).removed == 1


def test_rejected_input_is_set_aside_counted_and_cleared(context: IngestContext) -> None:
    bad = RejectedInput(SourceKind.PASSAGES, "broken.txt", RejectReason.NOT_TEXT, "NUL bytes", 10)
    report = ingest(context, Listed([*PEOPLE, bad]))
    assert report.quarantined == {"not_text": 1}
    assert contents(context.store)["quarantine"][0]["uri"] == "broken.txt"
    ingest(context, Listed(PEOPLE))
    assert context.store.count("quarantine") == 0


def test_a_new_model_replaces_every_vector_at_once(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE))
    old = context.embedder.model.tag
    other = replace(context, embedder=HashingEmbedder(dimension=64))
    report = ingest(other, Listed(PEOPLE))
    assert report.embedded == 4
    new = other.embedder.model.tag
    assert old != new
    for collection in ("doc_chunks", "entities"):
        assert context.store.count(collection, where=[Term("embedding_model", "==", old)]) == 0
        assert context.store.count(collection, where=[Term("embedding_model", "==", new)]) > 0
    assert list(context.scratch.glob("reembed-*")) == []


class TokenEmbedder(HashingEmbedder):
    """Says of tokens what their words hash to."""

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        return self.embed(texts), [self.embed(text.split()) for text in texts]

    def embed_signs(self, texts: Sequence[str]) -> tuple[Vectors, list[str]]:
        return self.embed(texts), [f"signs of {text}" for text in texts]


def test_signs_of_tokens_come_and_go_with_their_vectors(context: IngestContext) -> None:
    ingest(context, Listed(PEOPLE))
    assert {row["token_signs"] for row in contents(context.store)["doc_chunks"]} == {""}
    read = replace(context, embedder=TokenEmbedder(dimension=64))
    ingest(read, Listed(PEOPLE))
    rows = {row["text"]: row["token_signs"] for row in contents(context.store)["doc_chunks"]}
    assert all(
        signs.startswith("signs of ") and signs.endswith(text) for text, signs in rows.items()
    )
    ingest(read, Listed([replace(PEOPLE[0], metadata={"seen": True}), *PEOPLE[1:]]))
    assert {
        row["text"]: row["token_signs"] for row in contents(context.store)["doc_chunks"]
    } == rows


def test_a_changed_headline_embeds_again_and_an_unchanged_chunk_keeps_its_vector(
    context: IngestContext,
) -> None:
    ingest(context, Listed(PEOPLE))
    touched = [replace(PEOPLE[0], metadata={"seen": True}), *PEOPLE[1:]]
    report = ingest(context, Listed(touched))
    assert (report.changed, report.embedded) == (1, 0)


def test_a_change_elsewhere_leaves_entities_that_stay_the_same_alone(
    context: IngestContext,
) -> None:
    ingest(context, Listed(PEOPLE))
    report = ingest(
        context, Listed([passage("p5", "Alan Turing", "Alan Turing lived in Manchester.")])
    )
    assert report.derived["entities"]["added"] >= 1
    assert report.derived["entities"].get("changed", 0) <= 1


def test_chunks_before_a_change_keep_their_vectors(context: IngestContext) -> None:
    long = " ".join(f"Sentence {number} of a long text stands here." for number in range(200))
    ingest(context, Listed([passage("p1", "", long)]))
    report = ingest(context, Listed([passage("p1", "", f"{long} One sentence more.")]))
    assert len(contents(context.store)["doc_chunks"]) > 2
    assert (report.changed, report.embedded) == (1, 1)
