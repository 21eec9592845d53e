"""The summary of an entity: a whole sentence of the corpus that says what it is."""

from __future__ import annotations

import pytest

from hades.ingest.edges import derive
from hades.ingest.entities.describe import MAX_CHARS
from tests.unit.hades.ingest.entities.conftest import Row, build_view


def summaries(*rows: Row) -> dict[str, str]:
    table = derive(*build_view(rows)).entities.select(["name", "summary"])
    return {row["name"]: row["summary"] for row in table.to_pylist()}


def test_an_entity_with_a_document_is_described_by_its_opening_sentence() -> None:
    text = "Metz (pron. mess) is a city on the Moselle. It has a cathedral."
    other = "Metz was a fortress of the Romans, as Teutberga knew."
    found = summaries(
        {"id": "d1", "title": "Metz", "text": text},
        {"id": "d2", "title": "Teutberga", "text": other},
    )
    assert found["Metz"] == "Metz (pron. mess) is a city on the Moselle."


def test_a_sentence_that_defines_comes_before_one_that_only_names() -> None:
    text = (
        "Anna Maria Vogel met Gaumont in Metz. Gaumont paid Anna Maria Vogel for Gaumont films. "
        "Gaumont, founded in 1895, is a company in Paris. We saw Gaumont twice."
    )
    found = summaries(
        {"id": "d1", "text": text}, {"id": "d2", "text": "Gaumont closed. Paris wept for it."}
    )
    assert found["Gaumont"] == "Gaumont, founded in 1895, is a company in Paris."


def test_without_a_definition_the_sentence_about_it_wins_and_then_the_one_that_names_it_most() -> (
    None
):
    about = (
        "Yesterday we heard of Gaumont again. Gaumont paid the bill of Anna Vogel in full. So "
        "did Anna Vogel."
    )
    often = "People say that Koblenz is not Koblenz by night. In Koblenz it rained all day long."
    found = summaries({"id": "d1", "text": about}, {"id": "d2", "text": often})
    assert found["Gaumont"] == "Gaumont paid the bill of Anna Vogel in full."
    assert found["Koblenz"] == "People say that Koblenz is not Koblenz by night."


def test_a_sentence_that_speaks_of_someone_else_by_a_pronoun_is_no_summary() -> None:
    text = (
        "Anna Vogel wrote plays. She moved to Koblenz with Ernst Held in 1890. Later she left "
        "Ernst Held again."
    )
    found = summaries(
        {"id": "d1", "text": text}, {"id": "d2", "text": "This was in Koblenz, as we know."}
    )
    assert found["Koblenz"] == ""
    assert found["Ernst Held"] == "Later she left Ernst Held again."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "# The pump\n\nThe pump lifts water to the roof. More follows.",
            "The pump lifts water to the roof.",
        ),
        (
            "- a list of pumps and valves.\n\nIt is about Dr. Vogel's pump.",
            "It is about Dr. Vogel's pump.",
        ),
        ("Pump\n\nno closing mark and no sentence either", ""),
        ("x = {'a': 1}; print(x.pump.lift.water).", ""),
        (
            'He said: "It is a pump for the roof." Then he left.',
            'He said: "It is a pump for the roof."',
        ),
        ("A " + "very " * MAX_CHARS + "long sentence.", ""),
        (
            "The pump (made in Bonn; sold in\nBasel and Metz) lifts\nwater.",
            "The pump (made in Bonn; sold in Basel and Metz) lifts water.",
        ),
        ("", ""),
    ],
)
def test_only_a_whole_sentence_of_prose_is_quoted(text: str, expected: str) -> None:
    assert (
        summaries({"id": "d1", "title": "Machine hall", "text": text})["Machine hall"] == expected
    )


def test_a_sentence_cut_at_a_chunk_is_not_quoted() -> None:
    text = (
        "The old mill of Gaumont stands beside the river near Koblenz and is closed. Gaumont "
        "sold the mill to Koblenz."
    )
    cut = text.index("beside")
    found = summaries({"id": "d1", "text": text, "cuts": [0, cut, len(text)]})
    assert found["Gaumont"] == found["Koblenz"] == "Gaumont sold the mill to Koblenz."


def test_parts_of_a_sentence_at_a_semicolon_or_a_line_are_quoted_together() -> None:
    text = (
        "The old mill near Gaumont; it is closed on\nSundays in Koblenz. We saw Koblenz and "
        "Gaumont."
    )
    found = summaries(
        {"id": "d1", "text": text}, {"id": "d2", "text": "Later Koblenz grew. So did Gaumont."}
    )
    assert (
        found["Gaumont"]
        == found["Koblenz"]
        == "The old mill near Gaumont; it is closed on Sundays in Koblenz."
    )
