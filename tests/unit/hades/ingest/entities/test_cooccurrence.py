"""Which things are named together, and how strongly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hades.ingest.entities.links import MAX_RELATED, LinkedCorpus, link_companions


class Pairs(NamedTuple):
    """What is asked of relations, as columns."""

    kind: str
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    mention: NDArray[np.int64]
    evidence: NDArray[np.int64]
    since: NDArray[np.int64]
    strength: NDArray[np.float64]
    co_occurrence_count: NDArray[np.int64]


def together(sentences: list[list[int]]) -> Pairs:
    thing = np.array([one for sentence in sentences for one in sentence], dtype=np.int64)
    number = np.array([index for index, sentence in enumerate(sentences) for _ in sentence], dtype=np.int64)
    linked: Any = SimpleNamespace(
        entity=thing,
        reading=SimpleNamespace(sentence=number),
        since=np.zeros(len(thing), dtype=np.int64),
        n_entities=int(thing.max(initial=0)) + 1,
        sentence_span=lambda mention: mention,
        relations=Pairs,
    )
    return cast(Pairs, link_companions(cast(LinkedCorpus, linked)))


def test_a_pair_counts_the_sentences_that_hold_both() -> None:
    found = together([[0, 1], [1, 0, 0], [2], [3]])
    assert (found.source.tolist(), found.target.tolist(), found.evidence.tolist()) == ([0], [1], [2])
    assert found.mention.tolist() == [0]


def test_a_pair_never_seen_apart_is_as_strong_as_can_be() -> None:
    assert together([[0, 1], [0, 1], [2], [3]]).strength.tolist() == [1.0]


def test_a_pair_that_meets_no_more_than_by_chance_is_left_out() -> None:
    assert len(together([[0, 1], [0, 1], [0, 2], [1, 2], [0], [1]]).source) == 0


def test_one_meeting_is_not_enough() -> None:
    assert len(together([[0, 1], [2]]).source) == 0


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=30))
def test_nobody_keeps_more_partners_than_allowed(sentences: list[list[int]]) -> None:
    hub = [[0, other] for other in range(1, 2 * MAX_RELATED)]
    found = together([*hub, *hub, *([1 + 2 * MAX_RELATED] for _ in range(99)), *sentences])
    ends = np.concatenate([found.source, found.target])
    assert np.bincount(ends, minlength=1).max() <= MAX_RELATED
    assert len(found.source) >= MAX_RELATED
    assert (found.source < found.target).all()
    assert ((found.strength > 0) & (found.strength <= 1)).all()


def strength_by_pair(found: Pairs) -> dict[tuple[int, int], float]:
    pairs = zip(found.source.tolist(), found.target.tolist(), strict=True)
    return dict(zip(pairs, found.strength.tolist(), strict=True))


def test_one_sentence_more_changes_only_the_pairs_it_names_in_a_large_corpus() -> None:
    corpus = [[index, index + 1] for index in range(0, 120, 2) for _ in range(5)]
    corpus += [[index] for index in range(120)]
    before, after = (strength_by_pair(together(sentences)) for sentences in (corpus, [*corpus, [0]]))
    assert before.keys() == after.keys()
    assert {pair for pair in before if before[pair] != after[pair]} == {(0, 1)}
