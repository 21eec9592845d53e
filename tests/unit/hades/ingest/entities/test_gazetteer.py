"""Which names become known."""

from __future__ import annotations

from collections.abc import Sequence

from hades.ingest.entities.candidates import read_texts
from hades.ingest.entities.known_names import Gazetteer, Origin, build_gazetteer


def build(texts: Sequence[str], stated: Sequence[tuple[str, int]] = ()) -> dict[str, int]:
    return reasons(gazetteer(texts, stated))


def gazetteer(texts: Sequence[str], stated: Sequence[tuple[str, int]] = ()) -> Gazetteer:
    return build_gazetteer(read_texts(texts), stated)


def reasons(found: Gazetteer) -> dict[str, int]:
    return {" ".join(words): why for words, why in zip(found.names.plain, found.names.origin.tolist(), strict=True)}


def test_a_name_met_twice_is_looked_for_and_one_met_once_is_rare() -> None:
    known = build(["she saw Hucbert", "they met Hucbert", "a man called Boso"])
    assert known["hucbert"] == Origin.NAME | Origin.CAPITAL
    assert known["boso"] == Origin.NAME | Origin.CAPITAL | Origin.RARE


def test_a_name_met_in_too_many_texts_tells_nothing_apart() -> None:
    known = build(["it is in Paris"] * 201 + ["he saw Rome"] * 200)
    assert "paris" not in known
    assert "rome" in known


def test_a_stated_name_is_known_however_often_it_is_met() -> None:
    known = build(["it is in Paris"] * 201, [("Paris", Origin.TITLE)])
    assert known["paris"] & Origin.TITLE


def test_a_word_mostly_in_lower_case_is_no_name() -> None:
    assert "film" not in build(["a film", "the film", "this film", "the Film here", "the Film there"])


def test_a_term_needs_texts_and_company() -> None:
    texts = ["we use gradient descent here"] * 3 + ["a gradient was steep", "his descent was slow"]
    assert build(texts)["gradient descent"] & Origin.TERM
    assert "gradient descent" not in build(texts[1:])


def test_two_names_joined_are_not_a_third() -> None:
    texts = ["we saw India and Pakistan", "they left India and Pakistan", "from India", "to India", "in Pakistan"]
    found = gazetteer([*texts, "of Pakistan"])
    row = found.names.plain.index(("india", "and", "pakistan"))
    assert not found.how[row]


def test_an_explained_acronym_and_its_long_form_are_known_at_once() -> None:
    known = build(["we use a latent dirichlet allocation (LDA) here"])
    assert not known["lda"] & Origin.RARE
    assert not known["latent dirichlet allocation"] & Origin.RARE


def test_the_order_of_texts_and_stated_names_does_not_matter() -> None:
    texts = ["she saw Hucbert of Metz", "they met Hucbert", "Rome and Metz fell to Boso"]
    stated = [("Boso the Elder", Origin.TITLE), ("Metz", Origin.GIVEN)]
    assert build(texts, stated) == build(texts[::-1], stated[::-1])
