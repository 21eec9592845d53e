"""Rows of the last derivation, kept in the scratch folder: they save reading and never change a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hades.ingest import edges
from hades.ingest import write_changes as sync_rows
from hades.ingest.entities.previous_run import LastDerivation, LastRows
from hades.ingest.forget import forget_documents
from hades.ingest.manifest import derive_digest
from hades.ingest.phases import IngestContext, Phase, ingest
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, contents, new_context, passage

CHANGED = [passage("p4", "Grace Hopper", "Grace Hopper met Charles Babbage in London."), PEOPLE[0]]


def build_people(folder: Path) -> IngestContext:
    context = new_context(folder)
    ingest(context, Listed(PEOPLE))
    return context


def build_whole(folder: Path) -> dict[str, Any]:
    fresh = new_context(folder)
    ingest(fresh, Listed([*PEOPLE[:3], CHANGED[0]]))
    return contents(fresh.store)


def test_what_is_kept_belongs_to_what_the_store_was_derived_from(tmp_path: Path) -> None:
    context = build_people(tmp_path)
    last = LastDerivation(context.scratch)
    held = last.load(derive_digest(context.store))
    assert held.counts["relations"] == context.store.count("relations") > 0
    assert held.tables["entities"].num_rows == context.store.count("entities") > 0
    assert held.derivation
    assert last.load("another digest") == LastRows()
    last.clear()
    assert last.load(derive_digest(context.store)) == LastRows()


@pytest.mark.parametrize("damage", [b"", b"no table", None])
def test_a_damaged_file_changes_no_row(tmp_path: Path, damage: bytes | None) -> None:
    context = build_people(tmp_path / "history")
    files = sorted((context.scratch / "last-derivation").iterdir())
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-8] + b"damaged!" if damage is None else damage)
    ingest(context, Listed(CHANGED))
    assert contents(context.store) == build_whole(tmp_path / "fresh")


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    context = build_people(tmp_path)
    file = next((context.scratch / "last-derivation").glob("entities-*.arrow"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert LastDerivation(context.scratch).load(derive_digest(context.store)) == LastRows()


@pytest.mark.parametrize("collection", ["mentions", "relations"])
def test_rows_that_the_store_lost_since_are_written_again(tmp_path: Path, collection: str) -> None:
    context = build_people(tmp_path / "history")
    lost = [row["_key"] for batch in context.store.scan(collection) for row in batch.to_pylist()][:1]
    assert lost
    context.store.delete(collection, keys=lost)
    ingest(context, Listed(CHANGED))
    assert contents(context.store) == build_whole(tmp_path / "fresh")


def test_unchanged_rows_are_not_read_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = new_context(tmp_path)
    crowd = [passage(f"c{n}", f"Person Number{n}", f"Person Number{n} lived in Town{n}.") for n in range(30)]
    ingest(context, Listed([*PEOPLE, *crowd]))
    compared: list[int] = []
    plain = sync_rows._compare_all

    def count(how: sync_rows.Comparison, held: pa.Table, wanted: pa.Table) -> sync_rows.Difference:
        compared.append(held.num_rows)
        return plain(how, held, wanted)

    monkeypatch.setattr(sync_rows, "_compare_all", count)
    ingest(context, Listed([passage("c3", "Person Number3", "Person Number3 lived in Town3 and in Town5.")]))
    assert 0 < sum(compared) < context.store.count("entities") // 2


def test_nothing_of_a_forgotten_document_stays_in_the_folder(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    ingest(context, Listed([*PEOPLE, passage("p9", "Zebulon Quagmire", "Zebulon Quagmire owned a Xylorimba.")]))
    forget_documents(context.store, context.embedder, context.rules, ["p9"], context.scratch)
    left = b"".join(file.read_bytes() for file in context.scratch.rglob("*") if file.is_file()).lower()
    assert b"quagmire" not in left
    assert b"xylorimba" not in left
    assert b"babbage" in left  # the search would find a name


def test_derivation_without_a_folder_gives_the_same_rows(tmp_path: Path) -> None:
    context = build_people(tmp_path / "history")
    ingest(context, Listed(CHANGED), [Phase.NODES, Phase.CHUNKS, Phase.EMBEDDINGS])
    edges.derive_edges(context.store, context.embedder, context.rules)
    assert contents(context.store) == build_whole(tmp_path / "fresh")
