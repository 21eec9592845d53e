"""Vectors as signs, one bit a dimension: where a vector lies from the centre of its cell, in directions of a rotation.

A vector is its centre plus a rest. The rest is turned by a rotation, which spreads its length over all dimensions, and
only the signs are kept, with a number that makes the product with them right on average (`reach`). So the product of a
question with a vector is that with the centre, known for the whole cell, plus `reach` times the sum of the question's
parts with these signs (Gao and Long 2024, "RaBitQ"). A scan reads an eighth of what 8-bit codes take, and the few
best are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
Words = NDArray[np.uint64]

PLANES = 3  # bits of each part of a question; a fourth finds no more
_WORD = 64
_ROUNDS = 2
_SEED = 17


@dataclass(frozen=True)
class SignedRows:
    """(n, words) signs of the rests, a set bit for a positive part; (n,) what a sum with these signs is worth."""

    signs: Words
    reaches: Singles


@dataclass(frozen=True)
class SignedQuestion:
    """The parts of a turned question as `low + step * integer`, the integers by bits; `total` is the parts' sum.

    More coarsely the parts are `size` times their signs, off by a vector of length `rest`.
    """

    planes: Words  # (PLANES, words)
    low: float
    step: float
    total: float
    signs: Words  # (words,)
    size: float
    rest: float
    dimension: int


def sign_rows(rows: Singles, centres: Singles) -> SignedRows:
    """Signs of rows of length 1, each beside the centre of its cell."""
    rest = rotate(rows - centres)
    sums = np.abs(rest).sum(axis=1)
    squares = np.square(rest).sum(axis=1)
    reaches = np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0.0)
    return SignedRows(_pack(rest > 0.0), reaches.astype(np.float32))


def sign_question(unit: Singles) -> SignedQuestion:
    """A question of length 1 for a scan of signs."""
    turned = np.einsum("ij,j->i", _rotation_by_part(len(unit)), unit)  # rows that lie together are added fastest
    low, high = float(turned.min()), float(turned.max())
    step = (high - low) / (2**PLANES - 1) or 1.0
    parts = np.rint((turned - low) / step).astype(np.uint8)
    planes = _pack(np.stack([(parts >> bit) & 1 for bit in range(PLANES)]).astype(np.bool_))
    sizes = np.abs(turned)
    size = float(sizes.mean())
    rest = float(np.linalg.norm(sizes - np.float32(size)))
    signs = _pack((turned > 0.0)[None])[0]
    return SignedQuestion(planes, low, step, float(turned.sum()), signs, size, rest, len(unit))


def rotate(rows: Singles) -> Singles:
    """Rows turned; lengths and products stay."""
    turned: Singles = rows @ _rotation(rows.shape[1])
    return turned


@cache
def _rotation(dimension: int) -> Singles:
    """Parts change sign by chance and are mixed, twice: as good as a rotation drawn at random, made by sums alone."""
    turned = np.eye(dimension, dtype=np.float32)
    width = 1 << (dimension.bit_length() - 1)  # the largest power of two that fits; two of them cover the row
    for flips in np.random.default_rng(_SEED).integers(0, 2, (_ROUNDS, dimension)) * 2 - 1:
        turned *= flips.astype(np.float32)
        turned[:, :width] = _mix(turned[:, :width])
        if width < dimension:
            turned[:, -width:] = _mix(turned[:, -width:])
    return turned


@cache
def _rotation_by_part(dimension: int) -> Singles:
    """The rotation with a row for each part that it makes."""
    return np.ascontiguousarray(_rotation(dimension).T)


def _mix(rows: Singles) -> Singles:
    """The Walsh-Hadamard transform of each row, at the same length."""
    count, width = rows.shape
    half = 1
    while half < width:
        pairs = rows.reshape(count, width // (2 * half), 2, half)
        rows = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        half *= 2
    mixed: Singles = rows.reshape(count, width) * np.float32(width**-0.5)
    return mixed


def _pack(bits: NDArray[np.bool_]) -> Words:
    """(n, words): the bits of each row, filled up with zeros to whole words."""
    words = -(-bits.shape[1] // _WORD)
    packed = np.zeros((len(bits), words * _WORD // 8), np.uint8)
    given = np.packbits(bits, axis=1, bitorder="little")
    packed[:, : given.shape[1]] = given
    found: Words = packed.view("<u8")
    return found
