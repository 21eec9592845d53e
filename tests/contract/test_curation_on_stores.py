"""Edits of entities mean the same in every store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.curation import ReviewRules, approve, list_edits, undo, update_entity
from hades.errors import ReadOnly
from hades.ingest.forget import forget_documents
from hades.ingest.phases import IngestContext, ingest
from hades.ports.store import GraphStore, Mode
from hades.providers.hashing import HashingEmbedder
from tests.contract.conftest import OpenStore
from tests.unit.hades.ingest.corpora import PEOPLE, TOKENIZER, Listed, contents, passage
from tests.unit.hades.ingest.later_rows import entity_named

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MORE = passage("p5", "London", "London is where Ada Lovelace met Charles Babbage.")


def test_an_edit_is_agreed_kept_by_ingestion_undone_and_forgotten(
    store: GraphStore, tmp_path: Path
) -> None:
    context = IngestContext(store, HashingEmbedder(), TOKENIZER, tmp_path / "cache")
    ingest(context, Listed(PEOPLE))
    before = contents(store)["entities"]
    grace, babbage = entity_named(store, "Grace Hopper"), entity_named(store, "Charles Babbage")
    kept = update_entity(
        store,
        grace,
        {"summary": "an admiral"},
        who="kim",
        why="",
        at=NOW,
        embedder=context.embedder,
    )
    waits = update_entity(
        store,
        babbage,
        {"name": "Babbage"},
        who="kim",
        why="",
        at=NOW,
        embedder=context.embedder,
        rules=ReviewRules(degree=0),
    )
    assert (kept.state, waits.state) == ("applied", "pending")
    assert (
        approve(store, waits.edit, who="lee", at=NOW, embedder=context.embedder).state == "applied"
    )
    ingest(context, Listed([*PEOPLE, MORE]))
    rows = {row["_key"]: row for row in contents(store)["entities"]}
    assert (rows[grace]["summary"], rows[babbage]["name"]) == ("an admiral", "Babbage")
    forget_documents(store, context.embedder, ["p5"])
    undo(store, waits.edit, who="lee", why="", at=NOW, embedder=context.embedder)
    undo(store, kept.edit, who="lee", why="", at=NOW, embedder=context.embedder)
    assert contents(store)["entities"] == before
    forget_documents(store, context.embedder, ["p4"])
    assert [edit.entity for edit in list_edits(store)] == [babbage]


def test_a_reading_handle_cannot_edit(open_store: OpenStore, tmp_path: Path) -> None:
    ingest(
        IngestContext(
            open_store(Mode.READ_WRITE), HashingEmbedder(), TOKENIZER, tmp_path / "cache"
        ),
        Listed(PEOPLE),
    )
    with pytest.raises(ReadOnly):
        update_entity(
            open_store(Mode.READ_ONLY), "london", {"summary": "x"}, who="kim", why="", at=NOW
        )
