"""Signatures tell things apart by all that goes into them."""

from __future__ import annotations

import numpy as np

from hades.ingest.entities.corpus import Signatures, join_all, sign_numbers, sign_texts


def pairs(signed: Signatures) -> list[tuple[int, int]]:
    return list(zip(signed.high.tolist(), signed.low.tolist(), strict=True))


def test_a_signature_with_a_number_is_another() -> None:
    one = sign_texts(["a", "b"])
    assert len({*pairs(one), *pairs(one.mix(np.array([1, 1]))), *pairs(one.mix(np.array([2, 2])))}) == 6


def test_what_is_joined_counts_in_its_order() -> None:
    one, other = sign_texts(["a"]), sign_texts(["b"])
    assert pairs(one.join(other)) != pairs(other.join(one))


def test_the_signature_of_a_group_does_not_depend_on_its_order_but_on_how_often_a_thing_is_there() -> None:
    signed = sign_texts(["a", "b", "a"])
    group = np.zeros(3, dtype=np.int64)
    together = pairs(signed.add_up(group, 2))
    assert together == pairs(signed.take(np.array([2, 1, 0])).add_up(group, 2))
    assert together[0] != pairs(signed.take(np.array([0, 1])).add_up(group[:2], 1))[0]
    assert together[1] == (0, 0)


def test_equal_things_have_equal_signatures() -> None:
    both = join_all([sign_numbers(np.array([1, 2])), sign_numbers(np.array([1, 3]))])
    assert both.take(np.array([0, 1])).equal(both.take(np.array([2, 3]))).tolist() == [True, False]
