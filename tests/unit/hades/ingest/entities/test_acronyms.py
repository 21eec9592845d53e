"""Acronyms that texts explain."""

from __future__ import annotations

import pytest

from hades.ingest.entities.candidates import find_definitions
from hades.text.sentences import sentence_starts
from hades.text.words import tokenize


def definitions(text: str) -> list[tuple[str, str]]:
    tokens = tokenize([text])
    found = find_definitions(tokens, sentence_starts(tokens))
    rows = zip(found.short.tolist(), found.first.tolist(), found.last.tolist(), strict=True)
    return [
        (text[tokens.start[short] : tokens.end[short]], text[tokens.start[first] : tokens.end[last - 1]])
        for short, first, last in rows
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
def test_letters_must_be_the_initials_of_the_words_before(text: str, expected: list[tuple[str, str]]) -> None:
    assert definitions(text) == expected
