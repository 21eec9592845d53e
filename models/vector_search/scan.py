"""The products of questions with many codes or signs, as machine code; loaded when a search first needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop, inline
from models.vector_search.signs import PLANES, SignedQuestion, SignedRows

Longs = NDArray[np.int64]

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
