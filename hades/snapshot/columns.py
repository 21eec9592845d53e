"""Arrow columns as the arrays that are written; nulls become the value that means absence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.snapshot.domains import LABEL_SEPARATOR
from hades.snapshot.heaps import HeapWriter

NOWHERE = -1


def integers(column: pa.Array, absent: int) -> NDArray[np.int64]:
    """Numbers or moments (microseconds since 1970) as int64."""
    values = column.cast(pa.int64()) if column.type != pa.int64() else column
    filled: NDArray[np.int64] = pc.fill_null(values, absent).to_numpy(zero_copy_only=False)
    return filled


def floats(column: pa.Array) -> NDArray[np.float64]:
    """Numbers as float64, NaN where there is none."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def texts(column: pa.Array) -> list[str]:
    """Texts, empty where there is none."""
    values: list[str] = pc.fill_null(column, "").to_pylist()
    return values


def spans(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends of [start, end) lists; -1 for both where there is no such pair."""
    lengths = integers(pc.list_value_length(column), 0)
    whole = lengths == 2
    flat = column.flatten().to_numpy(zero_copy_only=False)
    place = (np.cumsum(lengths) - lengths)[whole]
    starts, ends = (np.full(len(column), NOWHERE, np.int64) for _ in range(2))
    if len(place):
        starts[whole], ends[whole] = flat[place], flat[place + 1]
    return starts, ends


def join_labels(column: pa.Array) -> pa.Array:
    """Lists of labels as one text each; null where there is none."""
    joined = pc.binary_join(column, LABEL_SEPARATOR)
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, joined.type), joined)


def append_texts(heap: HeapWriter, column: pa.Array) -> None:
    """Copy a column of texts into a heap without making Python strings of it."""
    whole = pc.fill_null(column, "").cast(pa.large_string())
    _, ends, text = whole.buffers()
    if not len(whole):
        return
    bounds = np.frombuffer(ends, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    joined: Any = b"" if text is None else memoryview(text)[bounds[0] : bounds[-1]]
    heap.append_bytes(np.diff(bounds), joined)


class Coder:
    """Gives each distinct text a number in the order of first appearance."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.codes: dict[str, int] = {text: number for number, text in enumerate(known)}

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each text, -1 where there is none."""
        coded = pc.dictionary_encode(column)
        seen = coded.dictionary.to_pylist()
        numbers = np.array([self.codes.setdefault(text, len(self.codes)) for text in seen] + [NOWHERE], np.int64)
        places = integers(coded.indices, NOWHERE)
        result: NDArray[np.int64] = numbers[places]
        return result
