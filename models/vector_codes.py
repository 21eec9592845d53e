"""8-bit codes, sign bits, cells, and the scan over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.kernels import compile_loop, inline

# Vectors as 8-bit integers with a bound on their error, so that a scan of them loses nothing. A row of length 1 is
# `step * code` plus an error whose length is at most `slack`. By Cauchy and Schwarz the product of the row with a
# question of length 1 then differs from that of its code by at most `slack`, plus what rounding the question itself
# costs. Rows that cannot be among the best by these bounds are left out; the others are compared exactly.


Singles = NDArray[np.float32]
_LARGEST_CODE = 127
_LARGEST_SUM = 2**31 - 1
_LARGEST_PART = 2**15 - 1
ROUNDING = np.float32(2e-6)  # sums of a few hundred float32 products of unit rows differ by less


@dataclass(frozen=True)
class CodedRows:
    """(n, dimension) int8 codes; (n,) float32 steps and error bounds."""

    codes: NDArray[np.int8]
    steps: Singles
    slacks: Singles


@dataclass(frozen=True)
class CodedQuestion:
    """A question of length 1 as 16-bit integers: `parts * step`, off by a vector whose length is at most `slack`."""

    parts: NDArray[np.int16]
    step: float
    slack: float


def code_rows(values: Singles, norms: Singles) -> CodedRows:
    """Codes of rows at length 1; a row of zeros has zeros."""
    unit = values.astype(np.float64) / np.where(norms == 0, 1.0, norms)[:, None]
    steps = code_steps(unit)
    codes = np.rint(unit / steps[:, None].astype(np.float64)).clip(-_LARGEST_CODE, _LARGEST_CODE).astype(np.int8)
    error = unit - codes * steps[:, None].astype(np.float64)
    slacks = np.nextafter(np.linalg.norm(error, axis=1).astype(np.float32), np.float32(np.inf))
    return CodedRows(codes, steps, slacks)


def code_steps(rows: NDArray[np.floating[Any]]) -> Singles:
    """(n,) what one unit of a code is worth in each row, so that its largest part has the largest code."""
    most = np.abs(rows).max(axis=1, initial=0.0)
    return np.where(most > 0.0, most / _LARGEST_CODE, 1.0).astype(np.float32)


def code_question(unit: Singles) -> CodedQuestion:
    """The question with as many bits as a 32-bit sum over its dimension holds."""
    largest = min(_LARGEST_PART, _LARGEST_SUM // (_LARGEST_CODE * len(unit)))
    exact = unit.astype(np.float64)
    step = float(np.abs(exact).max()) / largest or 1.0
    parts = np.rint(exact / step).clip(-largest, largest).astype(np.int16)
    return CodedQuestion(parts, step, float(np.linalg.norm(exact - parts * step)))


def bounds(question: CodedQuestion, products: NDArray[np.int32], rows: CodedRows) -> tuple[Singles, Singles]:
    """(n,) the cosine that the codes give, and how far the exact one may lie from it."""
    near: Singles = products.astype(np.float32) * (rows.steps * np.float32(question.step))
    off: Singles = rows.slacks + np.float32(question.slack) * (1 + rows.slacks) + ROUNDING
    return near, off


# Vectors as signs, one bit a dimension: where a vector lies from the centre of its cell, in directions of a
# rotation. A vector is its centre plus a rest. The rest is turned by a rotation, which spreads its length over all
# dimensions, and only the signs are kept, with a number that makes the product with them right on average
# (`reach`). So the product of a question with a vector is that with the centre, known for the whole cell, plus
# `reach` times the sum of the question's parts with these signs (Gao and Long 2024, "RaBitQ"). A scan reads an
# eighth of what 8-bit codes take, and the few best are compared exactly.


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


# Vectors in cells around centres, by k-means in two levels; a search scans the cells nearest to its question. The
# first level cuts all vectors into about the square root of the wanted number of cells, the second cuts each of
# them. So a vector is compared with two square roots of centres instead of all. Everything is seeded: the same
# vectors give the same cells.


Longs = NDArray[np.int64]
ReadRows = Callable[[Longs], Singles]  # (places) -> rows of length 1
_CELL_ROUNDS = 6
_PER_CENTRE = 64  # vectors that a centre is fitted on
_BLOCK = 16_384
_NEAR = 4  # coarse centres whose fine centres a vector is compared with


@dataclass(frozen=True)
class Cells:
    """(cells, dimension) centres of length 1; `places` in the order of their cells, `starts[c]:starts[c + 1]` of c."""

    centres: Singles
    places: NDArray[np.int32]
    starts: Longs


def cells_for(n_vectors: int) -> int:
    """How many cells suit this number of vectors: four times the square root."""
    return max(1, round(4.0 * math.sqrt(n_vectors)))


def fit_cells(read: ReadRows, n_vectors: int, n_cells: int, seed: int = 7) -> Cells:
    """Cut vectors into about `n_cells` cells; `read` hands out rows, so that they need not lie in memory."""
    chance = np.random.default_rng(seed)
    n_coarse = max(1, round(math.sqrt(n_cells)))
    sample = np.sort(chance.choice(n_vectors, min(n_vectors, 4 * _PER_CENTRE * n_coarse), replace=False))
    coarse = fit_centres(read(sample), n_coarse, chance)
    label = _assign_coarse(read, n_vectors, coarse)
    fine: list[Singles] = []
    for cell in range(len(coarse)):
        members = np.flatnonzero(label == cell)
        wanted = max(1, round(n_cells * len(members) / n_vectors))
        chosen = np.sort(chance.choice(members, min(len(members), _PER_CENTRE * wanted), replace=False))
        fine.append(fit_centres(read(chosen), wanted, chance) if len(members) else coarse[cell : cell + 1])
    own = _assign_fine(read, n_vectors, coarse, fine)
    counts = np.bincount(own, minlength=sum(map(len, fine)))
    starts = np.concatenate(([0], np.cumsum(counts[counts > 0]))).astype(np.int64)
    return Cells(np.concatenate(fine)[counts > 0], np.argsort(own, kind="stable").astype(np.int32), starts)


def fit_centres(rows: Singles, count: int, chance: np.random.Generator) -> Singles:
    """Spherical k-means from rows drawn at random; a centre that loses all its rows keeps its place."""
    count = min(count, len(rows))
    centres = rows[np.sort(chance.choice(len(rows), count, replace=False))].copy()
    for _ in range(_CELL_ROUNDS if count > 1 else 0):
        label = nearest_centre(rows, centres)
        sums = np.zeros_like(centres, dtype=np.float64)
        order = np.argsort(label, kind="stable")
        held, first = np.unique(label[order], return_index=True)
        sums[held] = np.add.reduceat(rows[order].astype(np.float64), first, axis=0)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = length[:, 0] > 0.0
        centres[moved] = (sums[moved] / length[moved]).astype(np.float32)
    return centres


def nearest_centre(rows: Singles, centres: Singles) -> Longs:
    """(n,) the centre with the greatest product; the first of equals."""
    nearest: Longs = np.argmax(rows @ centres.T, axis=1)
    return nearest


def _assign_coarse(read: ReadRows, n_vectors: int, coarse: Singles) -> Longs:
    return np.concatenate([nearest_centre(read(places), coarse) for places in _blocks(n_vectors)])


def _assign_fine(read: ReadRows, n_vectors: int, coarse: Singles, fine: list[Singles]) -> Longs:
    """The nearest fine centre among those of the few nearest coarse ones; most vectors near a border need them."""
    firsts = np.concatenate(([0], np.cumsum([len(one) for one in fine])))
    looked_at = min(_NEAR, len(coarse))
    labels = []
    for places in _blocks(n_vectors):
        rows = read(places)
        near = np.argpartition(rows @ coarse.T, len(coarse) - looked_at, axis=1)[:, len(coarse) - looked_at :]
        best, label = np.full(len(rows), -np.inf, np.float32), np.zeros(len(rows), np.int64)
        for cell, centres in enumerate(fine):
            mine = np.flatnonzero((near == cell).any(axis=1))
            if len(mine):
                products = rows[mine] @ centres.T
                nearest = np.argmax(products, axis=1)
                most = products[np.arange(len(mine)), nearest]
                better = most > best[mine]
                best[mine[better]], label[mine[better]] = most[better], firsts[cell] + nearest[better]
        labels.append(label)
    return np.concatenate(labels)


def _blocks(n_vectors: int) -> Iterator[Longs]:
    return (np.arange(first, min(first + _BLOCK, n_vectors)) for first in range(0, n_vectors, _BLOCK))


# The products of questions with many codes or signs, as machine code; loaded when a search first needs it.


_DEVIATIONS = 2.0  # of what signs alone say of a product; a row that is that far below the least kept is passed over


def multiply(codes: NDArray[np.int8], parts: NDArray[np.int16]) -> NDArray[np.int32]:
    """(questions, n) integer products of every code with each question, whose parts are the rows of `parts`.

    Each code is read from memory once for all questions.
    """
    products = np.empty((len(parts), len(codes)), np.int32)
    _multiply(codes, parts, products)
    return products


def best_in_ranges(
    rows: SignedRows, question: SignedQuestion, starts: Longs, ends: Longs, towards: NDArray[np.float32], count: int
) -> Longs:
    """The `count` rows of the ranges with the greatest product by their signs; `towards` is that of each centre.

    A row is not weighed where the number of signs that differ from the question's makes it unlikely to be one of them.
    """
    scores, best = np.full(count, -np.inf, np.float32), np.full(count, -1, np.int64)
    ways = (question.low, question.step, question.total)
    most = question.size * question.dimension + _DEVIATIONS * question.rest
    coarse = (np.float32(most), np.float32(2.0 * question.size))
    _keep_best(
        rows.signs, rows.reaches, question.planes, ways, question.signs, coarse, starts, ends, towards, scores, best
    )
    return best[best >= 0]


@inline
def _count_bits(word: Any) -> Any:  # pragma: no cover
    """How many bits of a word are set; the compiler knows this form and uses the processor's own instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


def _keep_best_in_python(
    signs: Any,
    reaches: Any,
    planes: Any,
    ways: Any,
    own: Any,
    coarse: Any,
    starts: Any,
    ends: Any,
    towards: Any,
    scores: Any,
    best: Any,
) -> None:  # pragma: no cover
    """Fill `scores` and `best`, a heap whose first entry is the least of them."""
    low, step, total = ways
    most, less = coarse
    words, bar = signs.shape[1], scores[0]
    for place in range(len(starts)):
        for row in range(starts[place], ends[place]):
            if words == 6:  # 384 dimensions: a loop whose length is known costs a quarter less
                unlike = np.int64(_count_bits(signs[row, 0] ^ own[0])) + np.int64(_count_bits(signs[row, 1] ^ own[1]))
                unlike += np.int64(_count_bits(signs[row, 2] ^ own[2])) + np.int64(_count_bits(signs[row, 3] ^ own[3]))
                unlike += np.int64(_count_bits(signs[row, 4] ^ own[4])) + np.int64(_count_bits(signs[row, 5] ^ own[5]))
            else:
                unlike = np.int64(0)
                for word in range(words):
                    unlike += np.int64(_count_bits(signs[row, word] ^ own[word]))
            if towards[place] + reaches[row] * (most - less * np.float32(unlike)) <= bar:
                continue
            ones, weighted = np.int64(0), np.int64(0)
            for word in range(words):
                bits = signs[row, word]
                ones += np.int64(_count_bits(bits))
                for plane in range(PLANES):
                    weighted += np.int64(_count_bits(bits & planes[plane, word])) << plane
            score = np.float32(towards[place] + reaches[row] * (2.0 * (low * ones + step * weighted) - total))
            if score <= bar:
                continue
            at, child = 0, 1
            while child < len(scores):
                if child + 1 < len(scores) and scores[child + 1] < scores[child]:
                    child += 1
                if scores[child] >= score:
                    break
                scores[at], best[at] = scores[child], best[child]
                at, child = child, 2 * child + 1
            scores[at], best[at] = score, row
            bar = scores[0]


def _multiply_in_python(codes: Any, parts: Any, products: Any) -> None:  # pragma: no cover
    dimension = parts.shape[1]
    for row in range(len(codes)):
        for place in range(len(parts)):
            total = np.int32(0)
            for column in range(dimension):
                total += np.int32(codes[row, column]) * np.int32(parts[place, column])
            products[place, row] = total


_multiply = compile_loop(_multiply_in_python)
_keep_best = compile_loop(_keep_best_in_python)
