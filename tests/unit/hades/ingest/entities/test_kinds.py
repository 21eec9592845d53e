"""What kind of thing a name is, from what is said of it."""

from __future__ import annotations

import pytest

from hades.ingest.entities.candidates import entity_type_of, kind_of_page, kind_of_qualifier
from hades.ingest.entities.corpus import split_title
from schemas.nodes import EntityType, NameType


@pytest.mark.parametrize(
    ("title", "opening", "kind"),
    [
        ("Thulasi", "Thulasi is a 1987 Indian Malayalam film directed by K. Das.", NameType.PRODUCT),
        ("Teutberga", "Teutberga (died 875) was a queen of Lotharingia.", NameType.PERSON),
        ("Metz", "Metz is a city in northeast France.", NameType.GPE),
        ("Gaumont", "Gaumont is a French company that makes films.", NameType.ORG),
        ("Jeff Porcaro", "Jeffrey Thomas Porcaro (born 1954) was an American drummer.", NameType.PERSON),
        ("Metz", "In 1552 it fell. It is a city.", None),
        ("Metz", "", None),
    ],
)
def test_the_first_sentence_says_what_a_page_is_about(title: str, opening: str, kind: NameType | None) -> None:
    assert kind_of_page(title, opening) == kind


def test_a_qualifier_says_it_too() -> None:
    assert kind_of_qualifier("1987 film") is NameType.PRODUCT
    assert kind_of_qualifier("footballer, born 1912") is NameType.PERSON
    assert kind_of_qualifier("1704-1784") is None


def test_a_method_is_known_by_its_head_word() -> None:
    assert entity_type_of("gradient descent", NameType.CONCEPT) is EntityType.METHOD
    assert entity_type_of("Metz", NameType.GPE) is EntityType.CONCEPT


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
