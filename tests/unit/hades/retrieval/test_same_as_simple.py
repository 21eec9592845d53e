"""Shortcuts of a turn give what the plain definition gives, bit for bit."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ports.graph import Passage
from hades.retrieval.core.words import Body, content_words, links, passage_body, short_title, stem, wording, words
from hades.retrieval.features.passages import Completion, _asking_share, in_turn
from hades.retrieval.features.sentences import QuestionWords, name_stem, read_closely, root, wanted
from hades.text.sentences import _END, sentences

PIECES = [
    "Dr",
    "e.g",
    "J",
    "I",
    "al",
    "U.S",
    "Hall",
    "of",
    "the",
    "1999",
    "\n",
    "\n\n",
    " ",
    ". ",
    ".",
    "! ",
    "。",
    "é",
    "_",
]
TEXTS = st.lists(
    st.sampled_from([*PIECES, "paints ", "painted ", "Painter ", "the ", "ships, ", "Älv "]), max_size=30
).map("".join)


def passage(title: str, text: str) -> Passage:
    return Passage(id="doc_chunks/a", text=text, document="a", document_id="docs/a", span=(0, len(text)), title=title)


@given(st.text(".\n \x1c\u20031é", max_size=20))  # which spell no abbreviation
def test_sentences_lie_without_blanks_between_the_ends(text: str) -> None:
    stops = [one.end() for one in _END.finditer(text)]
    pieces = [(start, text[start:end]) for start, end in zip([0, *stops], [*stops, len(text)], strict=True)]
    assert sentences(text) == [
        (start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, piece in pieces
        if piece.strip()
    ]


@given(TEXTS)
def test_the_roots_of_a_sentence_are_those_of_its_words(text: str) -> None:
    reading = read_closely(passage("", text))
    assert list(reading.roots) == [frozenset(map(root, words(sentence))) for sentence in reading.written]
    assert list(reading.spoken) == [f" {' '.join(words(sentence))} " for sentence in reading.written]


@given(st.text("a ()\n", max_size=12))
def test_a_short_title_lacks_the_brackets_at_its_end(title: str) -> None:
    assert short_title(title) == (re.sub(r"\s*\([^)]*\)\s*$", "", title) or title)


@given(st.text(".!?\n ab", max_size=20))
def test_a_sentence_ends_with_a_mark_or_with_the_text(text: str) -> None:
    ends = re.findall(r"[.!?]+(?=\s|$)|(?<=[^.!?\s])\s*$", text)
    assert _asking_share(text) == (sum("?" in end for end in ends) / len(ends) if ends else 0.0)


@given(TEXTS, TEXTS)
def test_names_of_a_passage_are_those_of_its_title_and_of_each_of_its_sentences(title: str, text: str) -> None:
    pattern = re.compile(r"[^\W\d_a-z][\w'’-]+|\b\d{4}\b")
    pieces = [title, *(text[start:end] for start, end in sentences(text))]
    spelled = {word for piece in pieces for word in content_words(" ".join(pattern.findall(piece))) if len(word) > 2}
    assert read_closely(passage(title, text)).names == {name_stem(word) for word in spelled}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 5.0), max_size=8), st.sets(st.sampled_from("abcdxy"))
)
def test_the_share_of_a_question_is_the_sum_in_its_order(rarity: dict[str, float], held: set[str]) -> None:
    relation = tuple(rarity)[::2]
    want = QuestionWords("", rarity, relation)
    for among, share in ((tuple(rarity), want.share(held)), (relation, want.fit(held))):
        total = sum(rarity[word] for word in among)
        assert share == (sum(rarity[word] for word in among if word in held) / total if total > 0.0 else 0.0)


@given(TEXTS, TEXTS)
def test_places_of_names_are_the_sentences_that_spell_them(title: str, text: str) -> None:
    reading = read_closely(passage(title, text))
    spelled = {name for names in reading.phrases for name in names if name not in reading.spoken_title}
    assert reading.name_places == {
        name: tuple(place for place, names in enumerate(reading.phrases) if name in names) for name in spelled
    }


@given(TEXTS, st.lists(TEXTS, max_size=5))
def test_rarity_counts_the_passages_that_hold_a_root(question: str, texts: list[str]) -> None:
    readings = [read_closely(passage("", text)) for text in texts]
    for word, rarity in wanted(question, [], readings).rarity.items():
        held = sum(word in reading.all_roots for reading in readings)
        assert rarity == float(np.log((len(readings) + 1) / (held + 0.5)))


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=5))
def test_words_are_counted_in_every_form(question: str, texts: list[str]) -> None:
    found = wording(question, [Body(words(text)) for text in texts])
    asked = list(dict.fromkeys(map(stem, content_words(question))))
    for row, word in enumerate(asked):
        holds = [any(stem(one) == word for one in words(text)) for text in texts]
        assert found.holds[row].tolist() == holds


@given(TEXTS, TEXTS)
def test_a_body_is_the_words_of_title_and_text(title: str, text: str) -> None:
    body, spoken = passage_body(title, text), words(f"{title}\n{text}")
    assert body.counts == Counter(spoken)
    assert body.stems == Counter(map(stem, spoken))
    content = {stem(word) for word in content_words(f"{title} {text}")}
    assert body.content_stems == content


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), TEXTS, TEXTS), min_size=1, max_size=6),
    TEXTS,
    st.sampled_from([(0.33, 0.32), (0.0, 0.0), (0.5, 0.0)]),
)
def test_passages_are_taken_in_turn_as_if_each_step_weighed_all_again(
    given: list[tuple[float, str, str]], question: str, weights: tuple[float, float]
) -> None:
    worth, titles = np.array([one[0] for one in given]), [one[1] for one in given]
    bodies = [Body(words(one[2])) for one in given]
    spoken, linked, rules = wording(question, bodies), links(titles, bodies, titles), Completion(*weights)
    for place, title in enumerate(titles):
        name = f" {' '.join(words(short_title(title)))} "
        told = [
            name in f" {' '.join(body.words)} " and other != title for body, other in zip(bodies, titles, strict=True)
        ]
        is_common = sum(told) * 2 > len(titles)
        assert linked[:, place].tolist() == [float(one and len(name) >= 6 and not is_common) for one in told]
    uncovered = spoken.rarity / spoken.rarity.sum() if spoken.rarity.sum() > 0 else spoken.rarity
    bonus, taken, gains = np.zeros(len(worth)), [], []
    for _ in given:
        total = worth + bonus + rules.coverage * (uncovered @ spoken.holds)
        best = max((place for place in range(len(worth)) if place not in taken), key=lambda at: (total[at], -at))
        taken.append(best)
        gains.append(float(total[best]))
        uncovered = uncovered * (1 - spoken.holds[:, best])
        bonus = np.maximum(bonus, rules.link * linked[best] * worth[best])
    assert in_turn(worth, spoken, linked, rules) == (taken, gains)
