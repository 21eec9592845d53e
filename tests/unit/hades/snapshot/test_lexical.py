"""BM25 as in the textbook; stems as published by Snowball."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.snapshot.files import Folder, read_files
from hades.snapshot.lexical import search_words, write_words
from hades.text.words import fold, stem, terms, words

SOME = ["river", "rivers", "flow", "flowing", "sea", "the", "a", "Köln", "koln", "x1"]
WORDS = st.lists(st.sampled_from(SOME), max_size=12).map(" ".join)


def reference(texts: list[str], query: str) -> dict[int, float]:
    """Robertson's BM25, k1 1.2 and b 0.75, with the idf that stays positive."""
    bags = [Counter(stem(word) for word in words(text)) for text in texts]
    lengths = [sum(bag.values()) for bag in bags]
    mean = sum(lengths) / max(1, len(lengths)) or 1.0
    scores: dict[int, float] = {}
    for term in dict.fromkeys(stem(word) for word in words(query)):
        holders = sum(term in bag for bag in bags)
        idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for row, bag in enumerate(bags):
            if bag[term]:
                part = bag[term] * 2.2 / (bag[term] + 1.2 * (0.25 + 0.75 * lengths[row] / mean))
                scores[row] = scores.get(row, 0.0) + idf * part
    return scores


@given(st.lists(WORDS, max_size=60), WORDS, st.integers(1, 8))
def test_scores_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str, limit: int
) -> None:
    texts, query = [*texts, "unique words win", "unique"], f"{query} unique"
    folder = Folder(tmp_path_factory.mktemp("index"))
    write_words(folder, "t", texts)
    arrays = read_files(folder.path, folder.files).arrays
    rows, scores = search_words(arrays, "t", len(texts), query, limit)
    expected = reference(texts, query)
    assert scores.tolist() == pytest.approx(
        sorted(expected.values(), reverse=True)[:limit], rel=1e-5
    )
    assert scores.tolist() == pytest.approx([expected[row] for row in rows.tolist()], rel=1e-5)
    best_first = [(-score, row) for score, row in zip(scores.tolist(), rows.tolist(), strict=True)]
    assert best_first == sorted(best_first)


def test_text_is_folded_the_same_way_with_and_without_accents() -> None:
    assert fold("Ünïcode ﬁne") == "unicode fine"
    assert words("Crème-brûlée, e\u0301t\u0301e 3x_y!") == ["creme", "brulee", "ete", "3x_y"]
    assert words("Plain ASCII: a_b 42!") == ["plain", "ascii", "a_b", "42"]
    assert terms("Rivers river RIVERING") == ["river"]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_way_for_ascii_finds_the_same_words(text: str) -> None:
    import re

    assert words(text) == re.findall(r"\w+", text.lower())
