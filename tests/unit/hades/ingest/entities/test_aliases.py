"""Which names are folded into which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.known_names import Names, Origin, read_whole
from hades.ingest.entities.same_names import (
    AliasMerge,
    merge_names,
    propose_acronyms,
    propose_aliases,
    propose_middle_names,
)

NAME = Origin.NAME | Origin.CAPITAL
TERM = Origin.TERM
TITLE = Origin.TITLE | Origin.CAPITAL


def names_of(rows: Sequence[tuple[str, int, int]]) -> Names:
    """Names given as (text, why, number of texts)."""
    place, _ = read_whole([text for text, _, _ in rows])
    identity, first = np.unique(place.identity, return_index=True)
    origin = np.array([rows[index][1] for index in first], dtype=np.int32)
    texts = np.array([rows[index][2] for index in first], dtype=np.int32)
    plain = place.spell()
    return Names(identity, [plain[index] for index in first], origin, texts)


def merge(rows: Sequence[tuple[str, int, int]]) -> set[tuple[str, str, str]]:
    names = names_of(rows)
    common = frozenset({"machine", "machines", "award", "awards"})
    shown = [" ".join(words) for words in names.plain]
    merged = merge_names(names, propose_aliases(names, common))
    return {(shown[one.alias], shown[one.canonical], one.rule) for one in merged.log}


def test_plural_of_a_term_is_the_term() -> None:
    rows = [("support vector machine", TERM, 9), ("support vector machines", TERM, 4)]
    assert merge(rows) == {("support vector machines", "support vector machine", "plural")}


def test_family_names_in_s_are_left_alone() -> None:
    assert merge([("Robert William", NAME, 3), ("Robert Williams", NAME, 3)]) == set()


def test_article_title_and_company_suffix_are_dropped() -> None:
    assert merge([("The Beatles", TITLE, 1), ("Beatles", NAME, 5)]) == {
        ("beatles", "the beatles", "article")
    }
    assert merge([("Lothair II", TITLE, 1), ("King Lothair II", NAME, 5)]) == {
        ("king lothair ii", "lothair ii", "honorific")
    }
    assert merge([("Tottenham Hotspur F.C.", TITLE, 1), ("Tottenham Hotspur", NAME, 5)]) == {
        ("tottenham hotspur", "tottenham hotspur f c", "suffix")
    }


def test_spacing_does_not_make_another_name() -> None:
    assert merge([("backpropagation", TERM, 9), ("back propagation", TERM, 2)]) == {
        ("back propagation", "backpropagation", "spacing")
    }


def test_one_letter_in_a_long_name_is_a_slip_but_a_numeral_is_not() -> None:
    assert merge([("Sisowath Kossamak", NAME, 7), ("Sisowath Kosamak", NAME, 1)]) == {
        ("sisowath kosamak", "sisowath kossamak", "fuzzy")
    }
    assert merge([("Emperor Frederick II", NAME, 7), ("Emperor Frederick III", NAME, 1)]) == set()


def test_two_titles_never_become_one() -> None:
    assert merge([("The Beatles", TITLE, 1), ("Beatles", TITLE, 5)]) == set()


def test_an_acronym_means_what_most_documents_explain() -> None:
    explained = [(0, 1, 2), (1, 1, 2), (2, 1, 3)]
    assert [
        (one.alias, one.canonical, one.score) for one in propose_acronyms(explained, range(4))
    ] == [(1, 2, 0.666667)]
    assert propose_acronyms([(0, 1, 2), (1, 1, 3)], range(4)) == []


def test_a_middle_name_is_dropped_where_one_document_holds_both() -> None:
    names = names_of([("Taylor Kemp", TITLE, 1), ("Taylor Eric Kemp", NAME, 1)])
    assert len(propose_middle_names(names, {row: {7, row} for row in range(len(names))})) == 1
    assert propose_middle_names(names, {row: {row} for row in range(len(names))}) == []


POOL = [
    "The Beatles",
    "Beatles",
    "data set",
    "data sets",
    "dataset",
    "King Louis XI",
    "Louis XI",
    "Sir Louis XI",
]


@given(st.lists(st.sampled_from(POOL), unique=True), st.randoms(use_true_random=False))
def test_the_log_is_flat_complete_and_independent_of_order(pool: list[str], random: object) -> None:
    names = names_of([(text, NAME | TERM, len(text)) for text in pool])
    proposals = propose_aliases(names, frozenset({"set", "sets"}))
    merged = merge_names(names, proposals)
    shuffled = proposals[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merge_names(names, shuffled) == merged
    assert undone(merged) == set(range(len(names)))


def undone(merged: AliasMerge) -> set[int]:
    """All names again: those that stand, and those the log says were folded into one that
    stands.
    """
    standing = {row for row, canonical in enumerate(merged.canonical) if row == canonical}
    folded = {one.alias for one in merged.log}
    assert all(one.canonical in standing for one in merged.log)
    assert not folded & standing
    return standing | folded
