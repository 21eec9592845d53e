"""Names and quotes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hades.text.sentences import sentences
from models.topics.cluster import NONE
from models.topics.describe import best_sentence, characteristic_terms, term_counts, topic_name

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
    assert characteristic_terms(term_counts(["12", "the"]), np.array([0, NONE]), 1, 5) == {0: {}}
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


def test_terms_are_counted_as_the_vectoriser_of_scikit_learn_counts_them() -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    names = [
        "The Analytical Engine of Charles Babbage",
        "engine ENGINE room 42",
        "",
        "of the",
        "Zürich 4th x",
        "_a b_c",
    ]
    counter = CountVectorizer(ngram_range=(1, 2), stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w+\b")
    wanted = counter.fit_transform(names).toarray()
    said = term_counts(names)
    terms = counter.get_feature_names_out().tolist()
    found = np.zeros((len(names), len(terms)), np.int64)
    for row, code in zip(said.rows.tolist(), said.codes.tolist(), strict=True):
        found[row, terms.index(said.term(code))] += 1
    assert found.tolist() == wanted.tolist()


def test_a_sentence_is_quoted_whole_or_another_one_is_quoted() -> None:
    long = "Engines " + "that compute tables of logarithms " * 12 + "were built."
    text = f"{long} The film was directed by Robert Z. Leonard and shows engines. and so on with engines Robert Z."
    spans = [(0, len(long)), (len(long) + 1, text.index(" and so on")), (text.index("and so on"), len(text))]
    assert best_sentence(text, spans, {"engines": 1.0}) == spans[1]
    assert best_sentence(long, [(0, len(long))], {"engines": 1.0}) == (0, len(long))
