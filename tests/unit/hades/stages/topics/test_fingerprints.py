"""When an entity is placed again: when its vector or its relations differ, and not otherwise."""

from __future__ import annotations

import numpy as np

from hades.build.topics.inputs import basis_of, key_hashes

KEYS = key_hashes(["a", "b", "c"])
KINDS = key_hashes(["cites", "refers_to"])
VECTORS = np.eye(3, 4, dtype=np.float32)


def basis(
    vectors: np.ndarray = VECTORS, tails: tuple[int, ...] = (0, 1), heads: tuple[int, ...] = (1, 2),
    kinds: tuple[int, ...] = (0, 1), strength: tuple[float, ...] = (1.0, 0.5),
) -> list[str]:  # fmt: skip
    return basis_of(
        vectors, KEYS, np.array(tails, int), np.array(heads, int), KINDS[list(kinds)], np.array(strength, np.float32)
    )


def test_the_order_of_relations_does_not_matter() -> None:
    assert basis() == basis(tails=(1, 0), heads=(2, 1), kinds=(1, 0), strength=(0.5, 1.0))


def test_a_vector_matters_to_its_entity_only() -> None:
    other = VECTORS.copy()
    other[0, 3] = 1e-3
    assert [left == right for left, right in zip(basis(), basis(other), strict=True)] == [False, True, True]


def test_a_relation_matters_to_both_its_ends() -> None:
    for changed in (
        basis(kinds=(1, 1)),
        basis(strength=(0.9, 0.5)),
        basis(tails=(1,), heads=(2,), kinds=(1,), strength=(0.5,)),
    ):
        assert [left == right for left, right in zip(basis(), changed, strict=True)] == [False, False, True]
