"""The word trie finds what Aho-Corasick finds."""

from __future__ import annotations

import ahocorasick
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.find_names import find_mentions
from hades.ingest.entities.known_names import ANY_CASE, CAPITALISED, INSIDE_SENTENCE
from hades.text.sentences import fragments, sentence_starts
from hades.text.words import tokenize

WORDS = st.sampled_from("abcd")
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=8)


def find(texts: list[str], names: list[str], case: int = ANY_CASE) -> list[tuple[int, str]]:
    plain = [tuple(name.lower().replace("-", " ").split()) for name in names]
    tokens = tokenize(texts)
    starts = sentence_starts(tokens)
    how = np.full(len(names), case, dtype=np.uint8)
    found = find_mentions(tokens, plain, how, starts, fragments(tokens, starts))
    rows = zip(found.first.tolist(), found.last.tolist(), strict=True)
    return [
        (int(tokens.text[first]), texts[tokens.text[first]][tokens.start[first] : tokens.end[last - 1]])
        for first, last in rows
    ]


@given(st.lists(WORDS, max_size=30), NAMES)
def test_finds_the_same_as_an_aho_corasick_automaton(text: list[str], names: list[list[str]]) -> None:
    automaton = ahocorasick.Automaton()
    for name in names:
        automaton.add_word("".join(name), len(name))
    automaton.make_automaton()
    # Not `iter_long`: in 2.3.1 it misses "a" in "ba" when "baa" is known too.
    matches = sorted((end + 1 - size, -size) for end, size in automaton.iter("".join(text)))
    expected, free = [], 0
    for begin, minus in matches:
        if begin >= free:
            free = begin - minus
            expected.append(tuple(text[begin:free]))
    spelled = {word: f"{word}{word}x" for word in "abcd"}
    found = find(
        [" ".join(spelled[word] for word in text)], [" ".join(spelled[word] for word in name) for name in names]
    )
    assert [tuple(word[0] for word in name.split()) for _, name in found] == expected


def test_the_longest_name_wins_and_takes_its_words() -> None:
    assert find(["the New York University campus"], ["New York", "New York University", "University"]) == [
        (0, "New York University")
    ]


def test_punctuation_and_possessives_do_not_hide_a_name() -> None:
    assert find(["Jean-Luc Picard's ship"], ["Jean Luc Picard"]) == [(0, "Jean-Luc Picard")]


def test_no_name_crosses_a_sentence_or_a_text() -> None:
    assert find(["in Paris. Texas is far", "he is Paris", "Texas it was"], ["Paris Texas"]) == []


def test_a_short_word_must_be_written_with_a_capital() -> None:
    assert find(["a rush of blood", "the band Rush"], ["Rush"], CAPITALISED) == [(1, "Rush")]


def test_a_common_word_is_a_name_only_inside_a_sentence() -> None:
    assert find(["Heat is warm", "the film Heat"], ["Heat"], INSIDE_SENTENCE) == [(1, "Heat")]


def test_a_piece_of_a_longer_name_is_no_mention() -> None:
    assert find(["he knew Peter Andreas Thiel well", "he knew Peter well"], ["Peter"]) == [(1, "Peter")]
