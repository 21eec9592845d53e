"""Edges from chunk to chunk: links between pages, and the order that a source states."""

from __future__ import annotations

from pathlib import Path

from hades.ingest.phases import ingest
from hades.ingest.sources.documents import DocumentsSource
from hades.ingest.sources.material import Link, Material
from hades.ports.store import RowStore
from schemas.nodes import RelationType
from tests.unit.hades.ingest.corpora import Listed, new_context, passage


def edges_of(store: RowStore) -> set[tuple[str, str, str]]:
    """Type, text of the first chunk and text of the second."""
    texts = {
        f"doc_chunks/{row['_key']}": row["text"]
        for batch in store.scan("doc_chunks", columns=["_key", "text"])
        for row in batch.to_pylist()
    }
    rows = [row for batch in store.scan("references") for row in batch.to_pylist()]
    return {(row["type"], texts[row["_from"]], texts[row["_to"]]) for row in rows}


def test_a_link_leads_from_the_chunk_that_holds_it_to_the_opening_of_the_page(
    tmp_path: Path,
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    filler = "The plant has many parts that nobody names here. " * 40
    (pages / "index.md").write_text(
        f"# Plant\n\n{filler}\n\n## Water\n\nWater comes from [[Pump]].\n\n## End\n\n{filler}"
    )
    (pages / "Pump.md").write_text("# Pump\n\nThe pump lifts water. See [the start](index.md).\n")
    context = new_context(tmp_path / "home")
    ingest(context, DocumentsSource(pages))
    found = edges_of(context.store)
    assert {kind for kind, _, _ in found} == {"references"}
    out = next((tail, head) for _, tail, head in found if "[[Pump]]" in tail)
    assert out[1].startswith("# Pump")
    assert any("See [the start]" in tail and head.startswith("# Plant") for _, tail, head in found)
    assert len(found) == 2


def test_an_order_and_a_link_are_two_types_and_a_citation_is_neither(tmp_path: Path) -> None:
    long = " ".join(f"Sentence {number} of a long first turn is here." for number in range(60))
    turns: list[Material] = [
        passage("a", "", f"{long} Hello there, says Anna."),
        passage(
            "b",
            "",
            "Hello to you, says Paul.",
            follows="a",
            links=(Link(RelationType.REFERS_TO, "a"),),
        ),
        passage("c", "", "Bye, says Anna.", follows="b", links=(Link(RelationType.CITES, "a"),)),
    ]
    context = new_context(tmp_path / "home")
    ingest(context, Listed(turns))
    found = {
        (kind, tail.strip()[-5:], head.strip()[:10]) for kind, tail, head in edges_of(context.store)
    }
    assert found == {
        ("next", "Anna.", "Hello to y"),
        ("next", "Paul.", "Bye, says "),
        ("references", "Paul.", "Sentence 0"),
    }
