"""Edits of entities: one however often it is made, agreed on where it matters, kept by builds,
undone exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hades.curation import BadEdit, ReviewRules, approve, degree_of, list_edits, undo, update_entity
from hades.ingest.edges import derive_edges
from hades.ingest.forget import forget_documents
from hades.ingest.phases import IngestContext, ingest
from schemas.builds import EditState
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, contents, passage, people_context

NOW = datetime(2026, 3, 1, tzinfo=UTC)
STRICT = ReviewRules(degree=0)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[IngestContext]:
    context = people_context(tmp_path)
    yield context
    context.store.close()


def key_of(shop: IngestContext, name: str) -> str:
    return next(row["_key"] for row in entities(shop) if row["name"] == name)


def entities(shop: IngestContext) -> list[dict[str, Any]]:
    return [row for batch in shop.store.scan("entities") for row in batch.to_pylist()]


def row(shop: IngestContext, key: str) -> dict[str, Any]:
    return dict(shop.store.get("entities", [key]).to_pylist()[0])


def change(
    shop: IngestContext,
    key: str,
    fields: dict[str, Any],
    who: str = "kim",
    minute: int = 0,
    **more: Any,
) -> Any:
    at = NOW + timedelta(minutes=minute)
    more.setdefault("rules", ReviewRules(degree=1000))
    return update_entity(
        shop.store, key, fields, who=who, why="a test", at=at, embedder=shop.embedder, **more
    )


def derived_rows(shop: IngestContext) -> dict[str, Any]:
    """All that documents and edits give; what edits and the manifest say of themselves is left
    out.
    """
    return {
        name: rows
        for name, rows in contents(shop.store).items()
        if name not in ("entity_edits", "ingest_manifest")
    }


def test_a_rename_is_found_by_the_new_name_and_keeps_the_old_as_an_alias(
    shop: IngestContext,
) -> None:
    key = key_of(shop, "Ada Lovelace")
    report = change(shop, f"entities/{key}", {"name": "Ada King"})
    assert (report.state, report.changed, report.before) == (
        "applied",
        True,
        {"name": "Ada Lovelace"},
    )
    now = row(shop, key)
    assert (now["name"], now["name_lower"], now["canonical_name"]) == (
        "Ada King",
        "ada king",
        "Ada King",
    )
    assert "Ada Lovelace" in now["aliases"]
    assert "next publish" in report.note


def test_the_same_edit_twice_is_one(shop: IngestContext) -> None:
    key = key_of(shop, "Grace Hopper")
    first = change(shop, key, {"summary": "wrote the first compiler"})
    again = change(shop, key, {"summary": "wrote the first compiler"}, minute=5)
    assert (again.changed, again.edit) == (False, first.edit)
    assert len(list_edits(shop.store, entity_id=key)) == 1


def test_edits_survive_the_next_derivation_and_equal_one_from_scratch(
    shop: IngestContext, tmp_path: Path
) -> None:
    ada, engine = key_of(shop, "Ada Lovelace"), key_of(shop, "Analytical Engine")
    change(shop, ada, {"name": "Ada King", "summary": "a mathematician"})
    change(shop, engine, {"domain": "computing", "aliases": ["the Engine"]}, minute=1)
    more = passage("p5", "London", "London is where Ada Lovelace met Charles Babbage in London.")
    ingest(shop, Listed([*PEOPLE, more]))
    assert row(shop, ada)["name"] == "Ada King"
    assert row(shop, ada)["summary"] == "a mathematician"
    assert (row(shop, engine)["domain"], row(shop, engine)["aliases"]) == (
        "computing",
        ["the Engine"],
    )
    assert derive_edges(shop.store, shop.embedder) == {}
    fresh = people_context(tmp_path / "fresh")
    change(fresh, ada, {"name": "Ada King", "summary": "a mathematician"})
    change(fresh, engine, {"domain": "computing", "aliases": ["the Engine"]}, minute=1)
    ingest(fresh, Listed([*PEOPLE, more]))
    assert derived_rows(shop) == derived_rows(fresh)
    fresh.store.close()


def test_an_edit_alone_is_a_reason_to_derive(shop: IngestContext) -> None:
    """`similar_to` and vectors follow a name, so a nightly that reads nothing new still has to
    do.
    """
    change(shop, key_of(shop, "Ada Lovelace"), {"name": "Ada King"})
    assert derive_edges(shop.store, shop.embedder) != {}
    assert derive_edges(shop.store, shop.embedder) == {}


def test_undo_restores_exactly_at_once_and_through_the_next_derivation(shop: IngestContext) -> None:
    before, key = derived_rows(shop), key_of(shop, "Charles Babbage")
    first = change(shop, key, {"name": "C. Babbage", "type": "concept", "domain": "people"})
    second = change(shop, key, {"name": "Babbage"}, minute=1)
    derive_edges(shop.store, shop.embedder)
    undo(shop.store, first.edit, who="kim", why="wrong", at=NOW, embedder=shop.embedder)
    assert (row(shop, key)["name"], row(shop, key)["domain"]) == ("Babbage", "tiny")
    undo(shop.store, second.edit, who="kim", why="wrong", at=NOW, embedder=shop.embedder)
    assert derived_rows(shop)["entities"] == before["entities"]
    derive_edges(shop.store, shop.embedder)
    assert derived_rows(shop) == before
    again = undo(shop.store, second.edit, who="lee", why="", at=NOW)
    assert (again.changed, again.state) == (False, "undone")
    told = {
        edit.key: (edit.undone_by, edit.undone_why)
        for edit in list_edits(shop.store, entity_id=key)
    }
    assert told == {first.edit: ("kim", "wrong"), second.edit: ("kim", "wrong")}


def test_undo_after_documents_changed_says_what_they_say_now(shop: IngestContext) -> None:
    key = key_of(shop, "Grace Hopper")
    edit = change(shop, key, {"aliases": ["Amazing Grace"]})
    ingest(
        shop,
        Listed(
            [
                *PEOPLE,
                passage("p6", "Navy", "GRACE HOPPER served in the Navy. Grace Hopper taught."),
            ]
        ),
    )
    assert row(shop, key)["aliases"] == ["Amazing Grace"]
    undo(shop.store, edit.edit, who="kim", why="", at=NOW)
    said = row(shop, key)
    ingest(
        shop,
        Listed(
            [
                *PEOPLE,
                passage("p6", "Navy", "GRACE HOPPER served in the Navy. Grace Hopper taught."),
            ]
        ),
    )
    assert derive_edges(shop.store, shop.embedder) == {}
    assert row(shop, key) == said


def test_an_identity_change_of_a_hub_waits_for_a_second_party(shop: IngestContext) -> None:
    key = key_of(shop, "Charles Babbage")
    assert degree_of(shop.store, key) > 0
    waits = change(shop, key, {"name": "Babbage"}, rules=STRICT)
    assert (waits.state, waits.approvals_missing) == ("pending", 1)
    assert "relations" in waits.needs[0]
    assert row(shop, key)["name"] == "Charles Babbage"
    assert change(shop, key, {"name": "Babbage"}, minute=1, rules=STRICT).edit == waits.edit
    with pytest.raises(BadEdit, match="another person"):
        approve(shop.store, waits.edit, who="kim", at=NOW)
    done = approve(shop.store, waits.edit, who="lee", at=NOW, embedder=shop.embedder)
    assert (done.state, row(shop, key)["name"]) == ("applied", "Babbage")
    assert not approve(shop.store, waits.edit, who="lee", at=NOW).changed


def test_a_second_party_that_makes_the_same_edit_agrees_to_it(shop: IngestContext) -> None:
    key = key_of(shop, "Charles Babbage")
    waits = change(shop, key, {"name": "Babbage"}, rules=STRICT)
    done = change(shop, key, {"name": "Babbage"}, who="lee", minute=1, rules=STRICT)
    assert (done.edit, done.state) == (waits.edit, "applied")
    assert list_edits(shop.store, entity_id=key)[0].approved_by == ("lee",)


def test_a_quorum_of_three_needs_two_others(shop: IngestContext) -> None:
    key = key_of(shop, "Charles Babbage")
    waits = change(shop, key, {"type": "method"}, rules=ReviewRules(degree=0, quorum=3))
    assert approve(shop.store, waits.edit, who="lee", at=NOW).approvals_missing == 1
    assert approve(shop.store, waits.edit, who="sam", at=NOW).state == "applied"
    assert row(shop, key)["type"] == "method"


def test_a_summary_of_a_hub_applies_but_not_when_unsure_or_against_another(
    shop: IngestContext,
) -> None:
    key = key_of(shop, "Charles Babbage")
    assert change(shop, key, {"summary": "an inventor"}, rules=STRICT).state == "applied"
    unsure = change(shop, key, {"domain": "history"}, confidence=0.2)
    assert (unsure.state, "confidence" in unsure.needs[0]) == ("pending", True)
    against = change(shop, key, {"summary": "a banker"}, who="lee", minute=2)
    assert (against.state, against.needs) == ("pending", ("overrules what kim said",))
    assert [edit.key for edit in list_edits(shop.store, state=EditState.PENDING)] == [
        unsure.edit,
        against.edit,
    ]
    withdrawn = undo(shop.store, unsure.edit, who="kim", why="never mind", at=NOW)
    assert withdrawn.state == "undone"
    with pytest.raises(BadEdit, match="was undone"):
        approve(shop.store, unsure.edit, who="lee", at=NOW)


def test_forgetting_the_only_document_of_an_entity_takes_its_edits_along(
    shop: IngestContext,
) -> None:
    grace, ada = key_of(shop, "Grace Hopper"), key_of(shop, "Ada Lovelace")
    change(shop, grace, {"name": "Rear Admiral Hopper"})
    change(shop, grace, {"summary": "waits"}, confidence=0.1, minute=1)
    kept = change(shop, ada, {"summary": "a mathematician"}, minute=2)
    certificate = forget_documents(shop.store, shop.embedder, ["p4"])
    assert certificate.is_complete
    assert certificate.removed["entity_edits"] == 2
    assert [edit.key for edit in list_edits(shop.store)] == [kept.edit]
    assert "Hopper" not in str(contents(shop.store))
    assert derive_edges(shop.store, shop.embedder) == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "no field"),
        ({"frequency": 3}, "frequency"),
        ({"name": "  "}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": None}, "name"),
        ({"type": "paper"}, "type"),
        ({"aliases": "one"}, "aliases"),
        ({"aliases": ["x"] * 65}, "aliases"),
        ({"summary": "x" * 4001}, "summary"),
    ],
)
def test_what_cannot_be_edited_is_refused_by_name(
    shop: IngestContext, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadEdit, match=said):
        change(shop, key_of(shop, "Grace Hopper"), fields)
    assert list_edits(shop.store) == []


def test_a_paper_stays_a_paper(shop: IngestContext) -> None:
    shop.store.patch("entities", pa.table({"_key": ["london"], "type": ["paper"]}))
    with pytest.raises(BadEdit, match="by its source"):
        change(shop, "london", {"type": "concept"})


def test_an_edit_made_while_a_derivation_runs_is_not_lost(shop: IngestContext) -> None:
    key = key_of(shop, "Grace Hopper")

    def meanwhile(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("edges", 2):
            change(shop, key, {"summary": "said meanwhile"})

    change(shop, key_of(shop, "Ada Lovelace"), {"domain": "x"})
    derive_edges(shop.store, shop.embedder, meanwhile)
    assert row(shop, key)["summary"] == "said meanwhile"


def test_without_an_embedder_a_new_name_has_its_vector_after_the_next_derivation(
    shop: IngestContext,
) -> None:
    key = next(one["_key"] for one in entities(shop) if one["vector_of"] == "name")
    update_entity(shop.store, key, {"name": "Another Name"}, who="kim", why="", at=NOW)
    assert row(shop, key)["embedding"] is None
    derive_edges(shop.store, shop.embedder)
    made = shop.embedder.embed(["Another Name"])[0].tolist()
    assert row(shop, key)["embedding"] == made
