"""Words as arrays: nothing lost, nothing moved, folding as promised."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hades.text.words import (
    ALL_CAPS,
    CAPITAL,
    CLOSE,
    CODE_LIKE,
    COMMA,
    DIGIT_FIRST,
    DOT,
    LINK,
    OPEN,
    QUOTE,
    SINGLE,
    SPACE,
    STOP,
    span_hashes,
    tokenize,
)
from hades.text.words import fold_letters as fold

TEXTS = st.lists(st.text(max_size=60), max_size=6)


def words(texts: list[str]) -> list[tuple[int, str]]:
    tokens = tokenize(texts)
    rows = zip(tokens.text.tolist(), tokens.start.tolist(), tokens.end.tolist(), strict=True)
    return [(index, texts[index][begin:end]) for index, begin, end in rows]


def test_words_are_maximal_runs_with_their_places() -> None:
    assert words(["St. Maurice's Abbey", "", "naïve_bayes 日本"]) == [
        (0, "St"),
        (0, "Maurice"),
        (0, "s"),
        (0, "Abbey"),
        (2, "naïve_bayes"),
        (2, "日本"),
    ]


@given(TEXTS)
def test_offsets_reproduce_every_word(texts: list[str]) -> None:
    assume(not any("--" in text for text in texts))  # an option such as `--a0` is one word
    expected = [
        (index, match.group())
        for index, text in enumerate(texts)
        for match in re.finditer(
            "[" + re.escape("".join({c for c in text if c.isalnum() or c == "_"}) or "\0") + "]+",
            text,
        )
        if match.group() != "\0"
    ]
    assert words(texts) == expected


@given(TEXTS, TEXTS)
def test_a_text_reads_the_same_whatever_stands_beside_it(
    texts: list[str], others: list[str]
) -> None:
    alone, together = tokenize(texts), tokenize(texts + others)
    here = together.text < len(texts)
    assert np.array_equal(alone.vocabulary[alone.word], together.vocabulary[together.word][here])
    assert np.array_equal(alone.shape, together.shape[here])
    assert np.array_equal(alone.gap, together.gap[here])


@given(st.lists(st.text(alphabet="abcdéÉ", min_size=1, max_size=5), min_size=1, max_size=30))
def test_equal_folded_words_and_only_they_share_a_hash(found: list[str]) -> None:
    tokens = tokenize(found)
    folded = [fold(word) for word in found]
    hashes = tokens.vocabulary[tokens.word].tolist()
    assert len(set(zip(folded, hashes, strict=True))) == len(set(folded)) == len(set(hashes))


def test_folding_keeps_length_and_drops_case_and_accents() -> None:
    assert fold("Łódź Élan ØRSTED") == "lodz elan orsted"


def test_shapes_tell_how_a_word_is_written() -> None:
    shapes = tokenize(["Paris NASA 3rd kMeans load_model J lower"]).shape.tolist()
    assert shapes == [
        CAPITAL,
        CAPITAL | ALL_CAPS,
        DIGIT_FIRST,
        CODE_LIKE,
        CODE_LIKE,
        CAPITAL | SINGLE,
        0,
    ]


def test_gaps_tell_what_parts_two_words() -> None:
    gaps = tokenize(['a b-c. d, e (f) "g"! h']).gap.tolist()
    assert gaps == [
        STOP,
        SPACE,
        LINK,
        DOT | SPACE,
        COMMA | SPACE,
        SPACE | OPEN,
        CLOSE | SPACE | QUOTE,
        QUOTE | STOP | SPACE,
    ]


def test_a_wrapped_line_goes_on_in_lower_case_only() -> None:
    assert tokenize(["vector\nmachine\nParis"]).gap.tolist() == [STOP, SPACE, STOP]


def test_spans_of_the_same_words_have_the_same_hash() -> None:
    tokens = tokenize(["Lothair II", "of LOTHAIR  ii.", "II Lothair"])
    first, last = np.array([0, 3, 5]), np.array([2, 5, 7])
    one, two, turned = span_hashes(tokens, first, last).tolist()
    assert one == two != turned
