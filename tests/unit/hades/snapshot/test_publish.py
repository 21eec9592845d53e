"""Publishing: what goes in comes out, and what cannot be served is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hades.errors import SnapshotError
from hades.ports.graph import Kind, SourceFacts
from hades.ports.store import Direction
from hades.snapshot import publish as publishing
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import snapshots
from hades.snapshot.publish import publish
from schemas.ids import sha256_text
from tests.contract.examples import entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.snapshot.homes import chain_store, chunk, document


def test_an_empty_store_publishes_an_empty_usable_snapshot(tmp_path: Path) -> None:
    published = publish(empty_store(tmp_path / "graph.db"), tmp_path)
    view = open_snapshot(tmp_path)
    assert view.info.snapshot == published.snapshot
    assert sum(view.info.nodes.values()) == sum(view.info.edges.values()) == 0
    assert view.number(["entities/x"]).tolist() == [-1]
    assert len(view.lexical("anything", kind=Kind.CHUNK, limit=3)) == 0
    assert len(view.match_names("anything")) == 0
    assert (
        len(view.nearest(np.ones(3, np.float32), kind=Kind.ENTITY, model="toy@1/3", limit=3)) == 0
    )


def test_the_same_contents_give_the_same_hash_whatever_the_order_of_writing(tmp_path: Path) -> None:
    forward, backward = (empty_store(tmp_path / name) for name in ("a.db", "b.db"))
    rows = [
        entity(f"e{number}", name=f"Thing {number}", aliases=["it", f"t{number}"])
        for number in range(40)
    ]
    edges = [
        relation(f"e{tail}", f"e{head}", weight=tail / 40)
        for tail in range(40)
        for head in range(0, 40, 7)
    ]
    put(forward, "entities", *rows)
    put(forward, "relations", *edges)
    for row in reversed(rows):
        put(backward, "entities", row)
    put(backward, "relations", *edges[100:], *edges[:100])
    put(backward, "entities", entity("gone"))
    backward.delete("entities", keys=["gone"])
    first, second = publish(forward, tmp_path / "1"), publish(backward, tmp_path / "2")
    assert first.manifest_hash == second.manifest_hash
    assert first.snapshot == second.snapshot
    hashed = {path.name for path in first.path.iterdir()} - {"about.json", "verified.json"}
    assert all(
        (first.path / name).read_bytes() == (second.path / name).read_bytes() for name in hashed
    )


def test_publishing_the_same_again_moves_only_the_pointer(tmp_path: Path) -> None:
    store = chain_store(tmp_path / "graph.db")
    first = publish(store, tmp_path, created_at=datetime(2026, 1, 2, tzinfo=UTC))
    inode = (first.path / "manifest.json").stat().st_ino
    put(store, "entities", entity("more"))
    other = publish(store, tmp_path)
    store.delete("entities", keys=["more"])
    again = publish(store, tmp_path, created_at=datetime(2026, 1, 9, tzinfo=UTC))
    assert (first.is_new, other.is_new, again.is_new) == (True, True, False)
    assert again.snapshot == first.snapshot == open_snapshot(tmp_path).info.snapshot
    assert (again.path / "manifest.json").stat().st_ino == inode
    held = snapshots(tmp_path)
    assert [(one.snapshot, one.serves) for one in held] == [
        (first.snapshot, True),
        (other.snapshot, False),
    ]
    assert held[0].created_at == "2026-01-02T00:00:00.000000Z"


def test_an_edge_without_its_end_is_refused_by_key(tmp_path: Path) -> None:
    store = chain_store(tmp_path / "graph.db")
    before = publish(store, tmp_path)
    store.delete("entities", keys=["e3"])
    lost = relation("e2", "e3")["_key"]
    with pytest.raises(
        SnapshotError, match=rf"relations/{lost}: _to is entities/e3.*nothing was published"
    ):
        publish(store, tmp_path)
    assert open_snapshot(tmp_path).info.snapshot == before.snapshot
    assert not list((tmp_path / "snapshots").glob(".building*"))


def test_a_chunk_that_is_not_its_span_is_refused_by_key(tmp_path: Path) -> None:
    store = chain_store(tmp_path / "graph.db")
    put(store, "doc_chunks", {**chunk("bad", "d", "about things", 0, 5), "span": [1, 6]})
    with pytest.raises(SnapshotError, match="doc_chunks/bad: characters 1 to 6"):
        publish(store, tmp_path)


def test_a_chunk_without_its_document_keeps_its_text_and_span(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    put(store, "documents", document("d", "here"))
    put(
        store,
        "doc_chunks",
        chunk("in", "d", "here", 0, 4),
        chunk("out", "gone", "xx über yy", 3, 7),
    )
    publish(store, tmp_path)
    view = open_snapshot(tmp_path)
    inside, outside = view.passages(view.number(["doc_chunks/in", "doc_chunks/out"]))
    assert (inside.text, inside.document) == ("here", "origin of d")
    assert (outside.text, outside.document, outside.span) == ("über", "gone", (3, 7))
    here, gone = view.sources(["documents/d", "documents/gone"])
    assert here == SourceFacts("documents/d", "origin of d", "", "here", sha256_text("here"))
    assert gone is None


def test_provenance_in_a_document_that_is_not_stored_keeps_its_name(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "graph.db")
    put(store, "entities", entity("a"), entity("b"))
    put(store, "relations", relation("a", "b", provenance={"doc": "paper 7", "span": [3, 9]}))
    publish(store, tmp_path)
    view = open_snapshot(tmp_path)
    (facts,) = view.edges(view.expand(view.number(["entities/a"]), direction=Direction.OUT).edge)
    assert (facts.document, facts.document_id, facts.span, facts.snippet) == (
        "paper 7",
        "paper 7",
        (3, 9),
        "",
    )


def test_validity_is_written_only_when_an_edge_has_some(tmp_path: Path) -> None:
    store = chain_store(tmp_path / "graph.db")
    publish(store, tmp_path)
    adjacency = open_snapshot(tmp_path).adjacency()
    assert adjacency is not None
    assert adjacency.validity is None
    put(store, "relations", relation("e3", "e0", valid_from=datetime(2026, 1, 1, tzinfo=UTC)))
    publish(store, tmp_path)
    adjacency = open_snapshot(tmp_path).adjacency()
    assert adjacency is not None
    assert adjacency.validity is not None
    assert (adjacency.validity.valid_until == np.iinfo(np.int64).max).all()
    assert (adjacency.validity.valid_from > np.iinfo(np.int64).min).sum() == 1


def test_arrays_are_read_only_and_outlive_their_files(tmp_path: Path) -> None:
    published = publish(chain_store(tmp_path / "graph.db"), tmp_path)
    view = open_snapshot(tmp_path)
    for path in published.path.iterdir():
        path.unlink()
    assert view.ids(np.arange(2)) == ["entities/e0", "entities/e1"]
    assert view.passages(view.number(["doc_chunks/c"]))[0].text == "about"
    adjacency = view.adjacency()
    assert adjacency is not None
    with pytest.raises(ValueError, match="read-only"):
        adjacency.out.weight[0] = 0


def test_what_others_write_meanwhile_is_in_the_next_snapshot_and_not_half_in_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = chain_store(tmp_path / "graph.db")
    write_nodes = publishing.write_nodes

    def write_meanwhile(*arguments: Any) -> Any:
        put(store, "entities", entity("later"))
        put(store, "relations", relation("e1", "later"))
        return write_nodes(*arguments)

    monkeypatch.setattr(publishing, "write_nodes", write_meanwhile)
    publish(store, tmp_path)
    monkeypatch.undo()
    assert open_snapshot(tmp_path).number(["entities/later"]).tolist() == [-1]
    publish(store, tmp_path)
    assert open_snapshot(tmp_path).number(["entities/later"]).tolist() != [-1]
