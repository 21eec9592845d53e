"""What one text proposes as names and terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.candidates import Mark, candidates
from schemas.nodes import NameType


def names(text: str) -> list[str]:
    return [one.name for one in candidates(text) if one.mark & Mark.NAME]


def terms(text: str) -> list[str]:
    return [one.name for one in candidates(text) if one.mark & Mark.TERM]


def test_python_machine_learning_gives_a_name_and_a_term() -> None:
    assert [one.key for one in candidates("Python machine learning")] == ["python", "machine_learning"]


def test_a_capitalised_function_word_at_a_sentence_start_is_no_name() -> None:
    assert names("However, it rained. The sun came. When did he go?") == []


def test_connectors_stand_inside_a_name() -> None:
    assert names("He met Ludwig van Beethoven at the University of Paris.") == [
        "Ludwig van Beethoven",
        "University of Paris",
    ]


def test_a_weak_connector_gives_the_whole_and_its_parts() -> None:
    assert names("the Department of Health and Human Services") == [
        "Department of Health and Human Services",
        "Department of Health",
        "Human Services",
    ]


def test_a_name_does_not_cross_the_end_of_a_sentence_but_an_initial_does_not_end_one() -> None:
    assert names("she saw Paris. London was next") == ["Paris", "London"]
    assert names("she read J. K. Rowling in St. Louis") == ["J. K. Rowling", "St. Louis"]


def test_a_run_at_a_sentence_start_is_also_proposed_without_its_first_word() -> None:
    assert names("Director John Huston left.") == ["Director John Huston", "John Huston"]


def test_a_quoted_title_is_a_name_even_with_small_words() -> None:
    assert "Gone with the wind" in names('He saw "Gone with the wind" twice.')


def test_dotted_and_mixed_case_words_are_code() -> None:
    code = [one.name for one in candidates("call sklearn.svm.SVC or load_model with kMeans") if one.mark & Mark.CODE]
    assert code == ["sklearn.svm.SVC", "load_model", "kMeans"]


def test_dates_and_numbers_are_no_names() -> None:
    assert names("born on 11 November 875 and again in May 1901") == []


def test_a_possessive_is_not_part_of_the_name() -> None:
    assert names("when did Lothair's mother die") == ["Lothair"]


def test_terms_are_noun_phrases_without_common_verbs() -> None:
    found = terms("we propose a support vector machine based on gradient descent and quickly improve results")
    assert found == ["support vector machine", "support vector", "vector machine", "gradient descent"]


def test_a_proper_noun_may_open_a_term_inside_a_sentence_only() -> None:
    assert terms("a Markov chain") == ["Markov chain"]
    assert terms("Markov chain") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("University of Paris", NameType.ORG),
        ("Loudoun County", NameType.GPE),
        ("Battle of Hastings", NameType.EVENT),
        ("John Huston", NameType.PERSON),
        ("gradient descent", NameType.CONCEPT),
    ],
)
def test_kind_is_guessed_from_cue_words(name: str, kind: NameType) -> None:
    found = {one.name: one.kind for one in candidates(f"they saw {name} there")}
    assert found[name] is kind


@given(st.text(max_size=200))
def test_any_text_is_read_and_offsets_hold(text: str) -> None:
    for one in candidates(text):
        assert text[one.start : one.end] == one.name
