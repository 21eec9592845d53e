"""What kind of thing a name is, from what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hades.ingest.edges import derive
from hades.ingest.entities.corpus import split_title
from hades.ingest.entities.kinds import entity_type_of, kind_of_page, kind_of_qualifier
from schemas.nodes import EntityType, NameType
from tests.unit.hades.ingest.entities.conftest import build_view

FIXTURES = Path(__file__).parents[4] / "fixtures"


@pytest.mark.parametrize(
    ("title", "opening", "kind"),
    [
        ("Thulasi", "Thulasi is a 1987 Indian Malayalam film directed by K. Das.", NameType.WORK),
        ("Teutberga", "Teutberga (died 875) was a queen of Lotharingia.", NameType.PERSON),
        ("Metz", "Metz is a city in northeast France.", NameType.GPE),
        ("Gaumont", "Gaumont is a French company that makes films.", NameType.ORG),
        (
            "Jeff Porcaro",
            "Jeffrey Thomas Porcaro (born 1954) was an American drummer.",
            NameType.PERSON,
        ),
        ("Metz", "In 1552 it fell. It is a city.", None),
        ("Metz", "", None),
        ("Oswine of Deira", "Oswine was a king of Deira.", NameType.PERSON),
        ("python_basics", "# python_basics\n\nPython is a programming language.", None),
        ("web", "The web has frameworks. Django is a framework.", None),
    ],
)
def test_the_first_sentence_says_what_a_page_is_about(
    title: str, opening: str, kind: NameType | None
) -> None:
    assert kind_of_page(title, opening) == kind


def test_a_qualifier_says_it_too() -> None:
    assert kind_of_qualifier("1987 film") is NameType.WORK
    assert kind_of_qualifier("footballer, born 1912") is NameType.PERSON
    assert kind_of_qualifier("1704-1784") is None


def test_a_method_is_known_by_its_head_word() -> None:
    assert entity_type_of("gradient descent", NameType.CONCEPT) is EntityType.METHOD
    assert entity_type_of("Metz", NameType.GPE) is EntityType.CONCEPT


def test_four_of_five_names_of_the_labelled_sample_have_the_right_kind() -> None:
    rows = [
        json.loads(line)
        for line in (FIXTURES / "name_kinds" / "passages.jsonl").read_text().splitlines()
    ]
    right: list[bool] = []
    for corpus in sorted({row["corpus"] for row in rows}):
        part = [row for row in rows if row["corpus"] == corpus]
        found = derive(
            *build_view([{"id": row["title"], **row} for row in part])
        ).entities.to_pylist()
        kinds = {
            bare(name): row["entity_type"]
            for row in found
            for name in (*row["aliases"], row["name"])
        }
        right += [
            kinds.get(bare(name)) == kind for row in part for name, kind in row["names"].items()
        ]
    assert sum(right) >= 0.8 * len(right)


def bare(name: str) -> str:
    return name.lower().removeprefix("the ")


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("Lothair II (king)", ("Lothair II", "king")),
        ("Lothair II", ("Lothair II", "")),
        ("(untitled)", ("(untitled)", "")),
        ("f(x) (function)", ("f(x)", "function")),
    ],
)
def test_a_title_is_parted_from_its_qualifier(title: str, parts: tuple[str, str]) -> None:
    assert split_title(title) == parts


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("It was made at home and created by Ines Okafor.", "Ines Okafor", "PERSON"),
        ("They met Ines Okafor, a Dutch programmer, in May.", "Ines Okafor", "PERSON"),
        ("She met Guido van Rossum there.", "Guido van Rossum", "PERSON"),
        ("He was born in Akron.", "Akron", "GPE"),
        ("They flew to Amsterdam.", "Amsterdam", "GPE"),
        ("She works for Zalwo and left.", "Zalwo", "ORG"),
        ("So Zalwo announced a plan.", "Zalwo", "ORG"),
        ("We tried the Zalwo library.", "Zalwo", "PRODUCT"),
        ("Today Zalwo is a fast database for texts.", "Zalwo", "PRODUCT"),
        ("This is a Zalwo application of ours.", "Zalwo", "PRODUCT"),
        ("Everything was built with Zalwo here.", "Zalwo", "PRODUCT"),
        ("It was developed by Zalwo.", "Zalwo", "ORG"),
        ("It was developed by Ines Okafor.", "Ines Okafor", "PERSON"),
        ("He was born in Selm, Alvania.", "Alvania", "GPE"),
        ("He was born in Selm, Alvania and others knew.", "Alvania", "CONCEPT"),
        ("We thought of Zalwo.", "Zalwo", "CONCEPT"),
        ("Use `--no-create` here, with `--csv` or JSON --arrays.", "--no-create", "OPTION"),
        ("Newline-delimited JSON --arrays are read.", "--arrays", "OPTION"),
        ("Networks learn this --the second kind, above all --and fail.", None, "CONCEPT"),
        ("Set HTTP_PROXY first.", "HTTP_PROXY", "OPTION"),
        ("It raises `LockError` then.", "LockError", "CODE"),
        ("Call `client.get(url)` often.", "client.get", "CODE"),
        ("Call `rows_from_file` often.", "rows_from_file", "CODE"),
        ("Then `Client` is made, the `Client(...)` of all.", "Client", "CODE"),
        ("It is in the U.S. today.", "U.S", "CONCEPT"),
        ("Additionally, it is true. Additionally, True.", None, "CONCEPT"),
        (
            "We use the standard library of it, a standard library for all, our standard library.",
            None,
            "CONCEPT",
        ),
    ],
)
def test_the_words_around_a_name_say_what_it_is(text: str, name: str | None, kind: str) -> None:
    rows = derive(*build_view([{"id": "a", "text": text}])).entities.to_pylist()
    found = {row["name"]: row["entity_type"] for row in rows}
    assert found.get(name, "CONCEPT") == kind if name else set(found.values()) <= {kind}
