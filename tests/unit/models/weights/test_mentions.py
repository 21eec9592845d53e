"""What a mention weighs: repetition saturates, a title counts for several, a plain term for little."""

import numpy as np

from models.weights import weigh_mentions


def weight(count: int, in_title: bool = False, is_term: bool = False) -> float:
    found = weigh_mentions(np.array([count]), np.array([in_title]), np.array([is_term]))
    return round(float(found[0]), 6)


def test_the_first_mention_weighs_one_half_and_more_of_them_approach_one() -> None:
    assert [weight(1), weight(3), weight(99)] == [0.5, 0.75, 0.99]


def test_a_title_stands_for_several_mentions() -> None:
    assert weight(1, in_title=True) == weight(3)
    assert weight(2, in_title=True) == weight(4)


def test_a_plain_term_weighs_a_fifth_of_a_name() -> None:
    assert weight(1, is_term=True) == 0.1
    assert weight(3, is_term=True) == 0.15
