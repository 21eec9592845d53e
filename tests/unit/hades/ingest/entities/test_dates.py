"""Dates of documents become the times from which the edges that they state are valid."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.entities.derive import DerivedRows, derive
from tests.patience import examples
from tests.unit.hades.ingest.entities.conftest import build_view

NAMES = ("Ada Holm", "Jan Brod", "Lea Moor", "Ivo Kern")
MOMENTS = st.one_of(st.none(), st.integers(2000, 2009).map(lambda year: datetime(year, 1, 1, tzinfo=UTC)))
PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1])
DOCUMENTS = st.lists(st.tuples(MOMENTS, st.lists(PAIRS, min_size=1, max_size=3)), min_size=1, max_size=5)


def since(derived: DerivedRows, kind: str) -> dict[tuple[str, str], datetime | None]:
    names = {f"entities/{row['_key']}": row["name"] for row in derived.entities.to_pylist()}
    rows = [row for row in derived.relations.to_pylist() if row["type"] == kind]
    return {(names[row["_from"]], names[row["_to"]]): row["valid_from"] for row in rows}


def first(moments: list[datetime | None]) -> datetime | None:
    """When something was said first; None when an undated text says it, since that may be older than any other."""
    return None if None in moments else min(moments)  # type: ignore[type-var]


@settings(max_examples=examples(40), deadline=None)
@given(DOCUMENTS)
def test_an_edge_is_valid_from_the_first_document_that_states_it(
    documents: list[tuple[datetime | None, list[tuple[str, str]]]],
) -> None:
    rows = [
        {"id": f"d{number}", "title": f"Page {number}", "created": created,
         "text": " ".join(f"{one} met {other}." for one, other in pairs * 2)}
        for number, (created, pairs) in enumerate(documents)
    ]  # fmt: skip
    derived = derive(*build_view(rows))
    for pair, moment in since(derived, "related_to").items():
        assert moment == first([created for created, pairs in documents for said in pairs if {*said} == {*pair}])
    for (title, _), moment in since(derived, "refers_to").items():
        assert moment == documents[int(title.split()[1])][0]
    for row in derived.mentions.to_pylist():
        number = int(row["_from"].removeprefix("doc_chunks/cd").partition("-")[0])
        assert row["valid_from"] == documents[number][0]


def test_a_sentence_that_says_as_of_when_it_holds_is_dated_by_that() -> None:
    text = "As of May 2019, Ada Holm leads Nordia. Jan Brod paints."
    row = {"id": "d", "title": "Notes", "text": text, "created": datetime(2021, 1, 1, tzinfo=UTC)}
    found = since(derive(*build_view([row])), "refers_to")
    assert found["Notes", "Nordia"] == datetime(2019, 5, 1, tzinfo=UTC)
    assert found["Notes", "Jan Brod"] == datetime(2021, 1, 1, tzinfo=UTC)


def test_what_is_made_from_something_derives_from_it() -> None:
    rows = [
        {"id": "d", "text": "BERT is derived from Transformer. RoBERTa extends BERT. Mary Holm extends BERT."},
        {"id": "e", "text": "", "facts": {"triples": [["Flask", "based on", "Werkzeug"]]}},
    ]
    derived = derive(*build_view(rows))
    wanted = {("BERT", "Transformer"), ("RoBERTa", "BERT"), ("Flask", "Werkzeug")}
    assert since(derived, "derives_from").keys() == wanted  # people derive from nothing
