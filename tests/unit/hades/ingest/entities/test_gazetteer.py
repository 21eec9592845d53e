"""Which names become known, and where they stand: the word trie finds what Aho-Corasick finds."""

from __future__ import annotations

from collections.abc import Sequence

import ahocorasick
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.candidates import read_texts
from hades.ingest.entities.find_names import find_mentions
from hades.ingest.entities.known_names import (
    ANY_CASE,
    CAPITALISED,
    INSIDE_SENTENCE,
    Gazetteer,
    Origin,
    build_gazetteer,
)
from hades.text.sentences import fragments, sentence_starts
from hades.text.words import tokenize


def build(texts: Sequence[str], stated: Sequence[tuple[str, int]] = ()) -> dict[str, int]:
    return reasons(gazetteer(texts, stated))


def gazetteer(texts: Sequence[str], stated: Sequence[tuple[str, int]] = ()) -> Gazetteer:
    return build_gazetteer(read_texts(texts), stated)


def reasons(found: Gazetteer) -> dict[str, int]:
    return {
        " ".join(words): why
        for words, why in zip(found.names.plain, found.names.origin.tolist(), strict=True)
    }


def test_a_name_met_twice_is_looked_for_and_one_met_once_is_rare() -> None:
    known = build(["she saw Hucbert", "they met Hucbert", "a man called Boso"])
    assert known["hucbert"] == Origin.NAME | Origin.CAPITAL
    assert known["boso"] == Origin.NAME | Origin.CAPITAL | Origin.RARE


def test_a_name_met_in_too_many_texts_tells_nothing_apart() -> None:
    known = build(["it is in Paris"] * 201 + ["he saw Rome"] * 200)
    assert "paris" not in known
    assert "rome" in known


GUIDE = (
    "# Guide\n\nPython is used for machine learning. Who does machine learning loads tables with "
    "pandas, or uses pandas to clean them. The next step is a step.\n\n"
    "## Neural networks\n\nDeep neural networks need machine learning."
)


def test_a_term_that_a_text_repeats_or_a_heading_says_is_known_in_a_single_text() -> None:
    known = build([GUIDE])
    assert known["machine learning"] == Origin.TERM
    assert known["neural networks"] == Origin.TERM
    assert known["pandas"] == Origin.TERM  # used as the name of a tool, never with an article
    assert not {"step", "tables", "next step", "loads tables"} & known.keys()


def test_a_pair_of_words_that_mostly_stand_apart_is_no_term_of_one_text() -> None:
    apart = "The river is wide. A river runs. Rivers, the river, a level. The level is low. "
    known = build([f"{apart} {apart} {apart} The river level rose. The river level fell."])
    assert "river level" not in known


def test_a_stated_name_is_known_however_often_it_is_met() -> None:
    known = build(["it is in Paris"] * 201, [("Paris", Origin.TITLE)])
    assert known["paris"] & Origin.TITLE


def test_a_word_mostly_in_lower_case_is_no_name() -> None:
    assert "film" not in build(
        ["a film", "the film", "this film", "the Film here", "the Film there"]
    )


def test_a_term_needs_texts_and_company() -> None:
    texts = ["we use gradient descent here"] * 3 + ["a gradient was steep", "his descent was slow"]
    assert build(texts)["gradient descent"] & Origin.TERM
    assert "gradient descent" not in build(texts[1:])


def test_two_names_joined_are_not_a_third() -> None:
    texts = [
        "we saw India and Pakistan",
        "they left India and Pakistan",
        "from India",
        "to India",
        "in Pakistan",
    ]
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
        (
            int(tokens.text[first]),
            texts[tokens.text[first]][tokens.start[first] : tokens.end[last - 1]],
        )
        for first, last in rows
    ]


@given(st.lists(WORDS, max_size=30), NAMES)
def test_finds_the_same_as_an_aho_corasick_automaton(
    text: list[str], names: list[list[str]]
) -> None:
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
        [" ".join(spelled[word] for word in text)],
        [" ".join(spelled[word] for word in name) for name in names],
    )
    assert [tuple(word[0] for word in name.split()) for _, name in found] == expected


def test_the_longest_name_wins_and_takes_its_words() -> None:
    assert find(
        ["the New York University campus"], ["New York", "New York University", "University"]
    ) == [(0, "New York University")]


def test_punctuation_and_possessives_do_not_hide_a_name() -> None:
    assert find(["Jean-Luc Picard's ship"], ["Jean Luc Picard"]) == [(0, "Jean-Luc Picard")]


def test_no_name_crosses_a_sentence_or_a_text() -> None:
    assert find(["in Paris. Texas is far", "he is Paris", "Texas it was"], ["Paris Texas"]) == []


def test_a_short_word_must_be_written_with_a_capital() -> None:
    assert find(["a rush of blood", "the band Rush"], ["Rush"], CAPITALISED) == [(1, "Rush")]


def test_a_common_word_is_a_name_only_inside_a_sentence() -> None:
    assert find(["Heat is warm", "the film Heat"], ["Heat"], INSIDE_SENTENCE) == [(1, "Heat")]


def test_a_piece_of_a_longer_name_is_no_mention() -> None:
    assert find(["he knew Peter Andreas Thiel well", "he knew Peter well"], ["Peter"]) == [
        (1, "Peter")
    ]
