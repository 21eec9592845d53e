"""What one text proposes as names and terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.candidates import Mark, read_texts
from hades.ingest.entities.kinds import kind_of
from schemas.nodes import NameType


def marked(text: str, mark: int) -> list[str]:
    """What a text proposes for this reason, in order; the longer first where two start together."""
    read = read_texts([text])
    begin, end = read.tokens.start[read.spans.first], read.tokens.end[read.spans.last - 1]
    rows = {*zip(begin.tolist(), end.tolist(), (read.spans.mark & mark).tolist(), strict=True)}
    return [
        text[start:stop]
        for start, stop, is_marked in sorted(rows, key=lambda row: (row[0], -row[1]))
        if is_marked
    ]


def names(text: str) -> list[str]:
    return marked(text, Mark.NAME)


def terms(text: str) -> list[str]:
    return marked(text, Mark.TERM)


def test_python_machine_learning_gives_a_name_and_a_term() -> None:
    assert names("Python machine learning") == ["Python"]
    assert terms("Python machine learning") == ["machine learning"]


HEALTH = "Department of Health and Human Services"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "However, it rained. The sun came. When did he go?", [], id="no function word"
        ),
        pytest.param(
            "He met Ludwig van Beethoven at the University of Paris.",
            ["Ludwig van Beethoven", "University of Paris"],
            id="with connectors",
        ),
        pytest.param(
            f"the {HEALTH}",
            [HEALTH, "Department of Health", "Human Services"],
            id="joined weakly, in parts",
        ),
        pytest.param(
            "she saw Paris. London was next", ["Paris", "London"], id="none across sentences"
        ),
        pytest.param(
            "she read J. K. Rowling in St. Louis",
            ["J. K. Rowling", "St. Louis"],
            id="initials end none",
        ),
        pytest.param(
            "Director John Huston left.",
            ["Director John Huston", "John Huston"],
            id="also without the first word",
        ),
        pytest.param("born on 11 November 875 and again in May 1901", [], id="no dates"),
        pytest.param("when did Lothair's mother die", ["Lothair"], id="without the possessive"),
    ],
)
def test_runs_of_capitalised_words_are_names(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_quoted_title_is_a_name_even_with_small_words() -> None:
    assert "Gone with the wind" in names('He saw "Gone with the wind" twice.')


def test_dotted_and_mixed_case_words_are_code() -> None:
    code = marked("call sklearn.svm.SVC or load_model with kMeans", Mark.CODE)
    assert code == ["sklearn.svm.SVC", "load_model", "kMeans"]


def test_terms_are_noun_phrases_without_common_verbs() -> None:
    found = terms(
        "we propose a support vector machine based on gradient descent and quickly improve results"
    )
    assert found == [
        "support vector machine",
        "support vector",
        "vector machine",
        "gradient descent",
    ]


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
    assert kind_of(name) is kind


@given(st.lists(st.text(max_size=200), max_size=3))
def test_any_text_is_read_and_no_name_leaves_its_text(texts: list[str]) -> None:
    read = read_texts(texts)
    assert (read.tokens.text[read.spans.first] == read.tokens.text[read.spans.last - 1]).all()


def definitions(text: str) -> list[tuple[str, str]]:
    read = read_texts([text])
    n_spans, n_explained = len(read.spans.first), len(read.acronyms)
    rows = zip(read.spans.first.tolist(), read.spans.last.tolist(), strict=True)
    said = [text[read.tokens.start[first] : read.tokens.end[last - 1]] for first, last in rows]
    return [
        *zip(
            said[n_spans - n_explained :],
            said[n_spans - 2 * n_explained : n_spans - n_explained],
            strict=True,
        )
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a support vector machine (SVM) is", [("SVM", "support vector machine")]),
        ("long short-term memory (LSTM).", [("LSTM", "long short-term memory")]),
        ("the Bank of England (BE) said", [("BE", "Bank of England")]),
        ("support vector machines (SVMs) are", [("SVMs", "support vector machines")]),
        ("we met. Vector machine (SVM) is", []),
        ("a great result (SVM) is", []),
        ("in Paris (France) it", []),
    ],
)
def test_letters_must_be_the_initials_of_the_words_before(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert definitions(text) == expected
