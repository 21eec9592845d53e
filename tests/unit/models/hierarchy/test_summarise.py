"""Names and quotes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hades.text.sentences import sentences
from models.hierarchy.arrays import NONE
from models.hierarchy.summarise import best_sentence, characteristic_terms, term_counts, topic_name

TEXT = (
    "On parsing trees\n\nParsing is hard. We parse sentences with trees, and parsing trees wins! (See e.g. p. 3.) Bye."
)


def test_terms_mark_their_group_and_not_the_others() -> None:
    names = ["parsing of trees", "tree parsing methods", "protein methods", "protein folding methods"]
    found = characteristic_terms(term_counts(names), np.array([0, 0, 1, 1]), 2, 3)
    assert "parsing" in found[0]
    assert next(iter(found[1])) == "protein"
    assert list(found[0].values()) == sorted(found[0].values(), reverse=True)


def test_names_without_words_have_no_terms() -> None:
    assert characteristic_terms(term_counts(["12", "the"]), np.array([0, NONE]), 1, 5) == [{}]
    assert topic_name({}) == ""


def test_a_name_does_not_repeat_itself() -> None:
    assert topic_name({"machine translation": 3, "translation": 2, "neural": 1, "phrase": 0.5, "x": 0.1}) == (
        "machine translation, neural, phrase"
    )


def test_sentences_cover_the_text_without_overlap() -> None:
    found = sentences(TEXT)
    assert [TEXT[slice(*span)] for span in found][:3] == [
        "On parsing trees", "Parsing is hard.", "We parse sentences with trees, and parsing trees wins!",
    ]  # fmt: skip
    assert all(first[1] <= second[0] for first, second in pairwise(found))


def test_the_sentence_that_says_the_terms_is_quoted_not_the_heading() -> None:
    span = best_sentence(TEXT, sentences(TEXT), {"parsing trees": 2.0, "trees": 1.0})
    assert span is not None
    assert TEXT[slice(*span)] == "We parse sentences with trees, and parsing trees wins!"


def test_a_heading_is_quoted_where_there_is_nothing_else_and_long_sentences_are_cut_at_a_word() -> None:
    assert best_sentence("Only a heading", [(0, 14)], {}) == (0, 14)
    assert best_sentence("  \n", [], {}) is None
    long = "word " * 200
    span = best_sentence(long, sentences(long), {"word": 1.0})
    assert span is not None
    assert span[1] - span[0] <= 320
    assert long[slice(*span)].endswith("word")
