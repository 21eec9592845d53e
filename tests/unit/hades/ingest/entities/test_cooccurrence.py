"""Which things are named together, and how strongly."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.known_names import EntityRules
from hades.ingest.entities.links import Together, co_occurrences


def together(sentences: list[list[int]], **rules: int) -> Together:
    thing = np.array([one for sentence in sentences for one in sentence], dtype=np.int32)
    number = np.array([index for index, sentence in enumerate(sentences) for _ in sentence], dtype=np.int64)
    return co_occurrences(thing, number, np.zeros(len(thing), dtype=np.int64), EntityRules(**rules))


def test_a_pair_counts_the_sentences_that_hold_both() -> None:
    found = together([[0, 1], [1, 0, 0], [2], [3]])
    assert (found.left.tolist(), found.right.tolist(), found.count.tolist()) == ([0], [1], [2])
    assert found.mention.tolist() == [0]


def test_a_pair_never_seen_apart_is_as_strong_as_can_be() -> None:
    assert together([[0, 1], [0, 1], [2], [3]]).strength.tolist() == [1.0]


def test_a_pair_that_meets_no_more_than_by_chance_is_left_out() -> None:
    assert len(together([[0, 1], [0, 1], [0, 2], [1, 2], [0], [1]]).left) == 0


def test_one_meeting_is_not_enough() -> None:
    assert len(together([[0, 1], [2]]).left) == 0
    assert len(together([[0, 1], [2]], min_together=1).left) == 1


@given(st.lists(st.lists(st.integers(0, 6), max_size=6), max_size=30), st.integers(1, 3))
def test_nobody_keeps_more_partners_than_allowed(sentences: list[list[int]], most: int) -> None:
    found = together(sentences, min_together=1, max_related=most)
    ends = np.concatenate([found.left, found.right])
    assert np.bincount(ends, minlength=1).max() <= most
    assert (found.left < found.right).all()
    assert ((found.strength > 0) & (found.strength <= 1)).all()


def strength_by_pair(found: Together) -> dict[tuple[int, int], float]:
    pairs = zip(found.left.tolist(), found.right.tolist(), strict=True)
    return dict(zip(pairs, found.strength.tolist(), strict=True))


def test_one_sentence_more_changes_only_the_pairs_it_names_in_a_large_corpus() -> None:
    corpus = [[index, index + 1] for index in range(0, 120, 2) for _ in range(5)]
    corpus += [[index] for index in range(120)]
    before, after = (strength_by_pair(together(sentences)) for sentences in (corpus, [*corpus, [0]]))
    assert before.keys() == after.keys()
    assert {pair for pair in before if before[pair] != after[pair]} == {(0, 1)}
