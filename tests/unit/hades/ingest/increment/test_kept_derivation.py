"""What a derivation keeps: it saves looking at names that a change does not touch, and holds nothing that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hades.ingest.entities import corpus as documents
from hades.ingest.entities import derive as derivation
from hades.ingest.entities import find_names as reading
from hades.ingest.entities import previous_run as former_derivation
from hades.ingest.entities.derive import DerivedRows, derive
from hades.ingest.entities.known_names import EntityRules
from tests.unit.hades.ingest.entities.conftest import build_view

Row = dict[str, Any]
ROWS: list[Row] = [
    {"id": "a", "title": "Gene Hackman", "text": "Gene Hackman is an actor. Hackman met Ada Lovelace."},
    {"id": "b", "title": "Ada Lovelace", "text": "Ada Lovelace wrote to Charles Babbage."},
    {"id": "c", "title": "Moselle", "text": "The Moselle joins the Rhine at Koblenz."},
    {"id": "d", "title": "Koblenz", "text": "Koblenz lies on the Rhine and on the Moselle."},
]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names that each derivation looked at."""
    seen: list[set[str]] = []
    real = derivation.resolve_meanings

    def watch(*arguments: Any) -> Any:
        things = real(*arguments)
        seen.append({" ".join(words) for words in things.reading.names.plain})
        return things

    monkeypatch.setattr(derivation, "resolve_meanings", watch)
    return seen


def tables(derived: DerivedRows) -> list[Any]:
    return [getattr(derived, name) for name in ("entities", "mentions", "relations", "merge_log", "titles")]


def test_only_names_that_a_change_touches_are_looked_at(tmp_path: Path, looked_at: list[set[str]]) -> None:
    derive(build_view(ROWS), scratch=tmp_path)
    assert {"gene hackman", "koblenz", "moselle"} <= looked_at[0]
    changed = [*ROWS[:3], {**ROWS[3], "text": "Koblenz lies on the Rhine."}]
    derive(build_view(changed), scratch=tmp_path)
    assert looked_at[1] == {"koblenz", "rhine", "moselle"}
    derive(build_view(changed), scratch=tmp_path)
    assert looked_at[2] == set()


def test_documents_that_are_as_they_were_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = documents._document

    def watch(key: str, *columns: Any) -> Any:
        parsed.append(key)
        return real(key, *columns)

    monkeypatch.setattr(documents, "_document", watch)
    rows = [*ROWS, {"id": "e", "text": "Nothing.", "facts": {"symbols": [{"name": "get", "qualified_name": "a.get"}]}}]
    derive(build_view(rows), scratch=tmp_path)
    assert sorted(parsed) == ["a", "b", "c", "d", "e"]
    parsed.clear()
    same_symbol = {**rows[4], "id": "f"}  # both are now told apart by their paths
    found = derive(build_view([*rows, same_symbol]), scratch=tmp_path)
    assert sorted(parsed) == ["e", "f"]
    assert all(
        map(lambda one, other: one.equals(other), tables(found), tables(derive(build_view([*rows, same_symbol]))))
    )


def test_a_full_name_that_goes_touches_its_short_form(tmp_path: Path, looked_at: list[set[str]]) -> None:
    derive(build_view(ROWS), scratch=tmp_path)
    alone = {"id": "a", "title": "", "text": "Hackman met Ada Lovelace."}
    found = derive(build_view([alone, *ROWS[1:]]), scratch=tmp_path)
    assert {"hackman", "gene hackman"} & looked_at[1]
    assert all(map(lambda one, other: one.equals(other), tables(found), tables(derive(build_view([alone, *ROWS[1:]])))))


def test_texts_are_searched_again_only_where_a_name_is_sought_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    real = reading._find

    def watch(read: Any, tokens: Any, gazetteer: Any, texts: Any) -> Any:
        searched.append(len(texts))
        return real(read, tokens, gazetteer, texts)

    monkeypatch.setattr(reading, "_find", watch)
    derive(build_view(ROWS), scratch=tmp_path)
    derive(build_view(ROWS), scratch=tmp_path)
    changed = [*ROWS[:3], {**ROWS[3], "text": "Koblenz lies on the Moselle and on the Rhine."}]
    derive(build_view(changed), scratch=tmp_path)
    # "Charles Babbage" was a name of one text only and becomes one that is looked for in all texts.
    known = [*changed, {"id": "f", "title": "Engine", "text": "Charles Babbage built it."}]
    found = derive(build_view(known), scratch=tmp_path)
    assert searched == [4, 0, 1, 2]
    assert all(map(lambda one, other: one.equals(other), tables(found), tables(derive(build_view(known)))))


def test_words_of_a_document_that_went_are_in_no_file(tmp_path: Path) -> None:
    secret = {"id": "e", "title": "Zyxwvut", "text": "Zyxwvut Qrstuv lived in Koblenz."}
    derive(build_view([*ROWS, secret]), scratch=tmp_path)
    folder = tmp_path / "derivation"
    assert any(b"Zyxwvut" in file.read_bytes() for file in folder.iterdir())
    derive(build_view(ROWS), scratch=tmp_path)
    assert not any(b"yxwvut" in file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("file", ["state.json", "arrays", "entities", "mentions", "relations", "merge_log"])
def test_a_damaged_file_costs_no_result(tmp_path: Path, looked_at: list[set[str]], file: str) -> None:
    expected = tables(derive(build_view(ROWS), scratch=tmp_path))
    damaged = next((tmp_path / "derivation").glob(f"{file}*"))
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"elsewise.")
    found = tables(derive(build_view(ROWS), scratch=tmp_path))
    assert all(one.equals(other) for one, other in zip(found, expected, strict=True))
    assert looked_at[0] == looked_at[1]


def test_what_other_code_or_other_rules_made_does_not_count(
    tmp_path: Path, looked_at: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    derive(build_view(ROWS), scratch=tmp_path)
    derive(build_view(ROWS), EntityRules(max_related=3), tmp_path)
    monkeypatch.setattr(former_derivation, "makers_digest", lambda: "of the code of tomorrow")
    derive(build_view(ROWS), EntityRules(max_related=3), tmp_path)
    assert looked_at[0] == looked_at[1] == looked_at[2]


def test_a_folder_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "derivation").write_text("a file in the place of the folder")
    found, expected = derive(build_view(ROWS), scratch=tmp_path), derive(build_view(ROWS))
    assert all(one.equals(other) for one, other in zip(tables(found), tables(expected), strict=True))


def test_the_end_of_a_triple_that_no_text_mentions_is_a_thing_of_its_own() -> None:
    triple = {"triples": [["India and Pakistan", "border", "Rhine"]]}
    rows = [
        {"id": "x", "title": "Asia", "text": "India and Pakistan met. India won. Pakistan won.", "facts": triple},
        {"id": "y", "title": "Cup", "text": "India and Pakistan played. India won. Pakistan lost."},
    ]
    derived = derive(build_view(rows))
    ends = {row["_from"] for row in derived.relations.to_pylist() if row["label"] == "border"}
    assert ends == {"entities/india_and_pakistan"}
