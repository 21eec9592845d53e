"""`coref` edges: from a short form that stands alone somewhere to the one thing that other documents mean by it."""

from __future__ import annotations

from hades.ingest.entities.derive import DerivedRows, derive
from tests.unit.hades.ingest.entities.conftest import Row, build_view

FULL = "We met John Hackman in Rome. There Hackman liked Rome."
ALONE = "A film with Hackman ran in Rome. So Hackman was praised."


def corefs_of(derived: DerivedRows) -> dict[tuple[str, str], Row]:
    names = {f"entities/{row['_key']}": row["name"] for row in derived.entities.to_pylist()}
    rows = [row for row in derived.relations.to_pylist() if row["type"] == "coref"]
    return {(names[row["_from"]], names[row["_to"]]): row for row in rows}


def corefs(*texts: str) -> dict[tuple[str, str], Row]:
    return corefs_of(derive(*build_view([{"id": f"d{place}", "text": text} for place, text in enumerate(texts)])))


def test_a_family_name_alone_points_to_the_person_that_another_document_names_in_full() -> None:
    found = corefs(FULL, ALONE)
    assert list(found) == [("Hackman", "John Hackman")]
    edge = found["Hackman", "John Hackman"]
    assert edge["evidence_count"] == 1
    assert FULL[slice(*edge["provenance"]["span"])] == "There Hackman liked Rome"


def test_a_short_form_that_never_stands_alone_has_no_edge() -> None:
    assert corefs(FULL) == {}


def test_a_short_form_of_two_people_has_no_edge() -> None:
    other = "We met Betty Hackman in Rome. There Hackman liked Rome."
    assert corefs(FULL, ALONE, other) == {}


def test_a_name_without_its_qualifier_points_to_the_one_title_that_has_it() -> None:
    king = {"id": "k", "title": "Lothair II (king)", "text": "We read that Lothair II ruled Lotharingia from Metz."}
    film = {"id": "f", "title": "Lothair II (film)", "text": "We saw Lothair II in Paris. It was shot by Gaumont."}
    near = {"id": "n", "text": "They say that Lothair II ruled Lotharingia well."}
    lost = {"id": "o", "text": "They say that Lothair II is forgotten."}
    found = corefs_of(derive(*build_view([king, film, near, lost])))
    assert all(full.startswith("Lothair II (") for _, full in found)
    assert not {"Metz", "Paris"} & {short for short, _ in found}


def test_a_title_written_whole_with_its_qualifier_is_that_thing() -> None:
    king = {"id": "k", "title": "Lothair II (king)", "text": "We read that Lothair II ruled Lotharingia from Metz."}
    film = {"id": "f", "title": "Lothair II (film)", "text": "We saw Lothair II in Paris. It was shot by Gaumont."}
    told = {"id": "t", "text": "They filmed Lothair II (film) in Rheims."}
    derived = derive(*build_view([king, film, told]))
    names = [row["name"] for row in derived.entities.to_pylist() if row["name"].startswith("Lothair")]
    assert sorted(names) == ["Lothair II (film)", "Lothair II (king)"]


def test_a_word_inside_a_longer_name_has_no_edge() -> None:
    texts = ["They met in West Germany. Later in Germany too.", "We like Germany. All of Germany."]
    assert corefs(*texts) == {}
